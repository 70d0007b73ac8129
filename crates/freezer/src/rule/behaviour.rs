//! The rule against groups of any behaviour and enforcers of any bounded lateness.

use super::*;
use proptest::prelude::*;

const US: i64 = 1_000;

/// The parameters of a run of the simulation.
#[derive(Debug, Clone)]
struct World {
    reservation: Reservation,
    notice: Notice,
    grid_ns: i64,
    /// Spans in which the group sleeps and wants the cpu, in turns, ns.
    spans: Vec<(i64, i64)>,
    /// After those it wants the cpu for ever.
    always: bool,
    /// How late looks are, in turns, ns.
    late: Vec<i64>,
    /// How long the group runs on when it is frozen, in turns, ns.
    freezing: Vec<i64>,
    periods: i64,
}

/// When a group ran, and the server's answers.
struct Run {
    ran: Vec<(i64, i64)>,
    until_ns: i64,
    /// The beginning of the want that does not end.
    always_from_ns: i64,
    ended: Vec<Ended>,
    looks: usize,
}

impl World {
    fn worst_late(&self) -> i64 {
        self.late.iter().copied().max().unwrap_or(0)
    }

    /// The same world with looks late by at most P−Q.
    fn in_time(mut self) -> World {
        let most = self.reservation.period_ns - self.reservation.budget_ns;
        self.late
            .iter_mut()
            .for_each(|late| *late = (*late).min(most));
        self
    }

    /// `O` of the module's statements.
    fn overrun(&self) -> i64 {
        let server = Server::new(self.reservation, self.notice, self.grid_ns, 0, 0);
        let freezing = self.freezing.iter().copied().max().unwrap_or(0);
        self.worst_late() + freezing + server.coarseness_ns()
    }

    fn run(&self) -> Run {
        let until_ns = self.periods * self.reservation.period_ns;
        let mut wants = Vec::new();
        let mut at = 0;
        for &(sleeps, runs) in &self.spans {
            wants.push((at + sleeps, at + sleeps + runs));
            at += sleeps + runs;
        }
        let always_from_ns = at;
        if self.always {
            wants.push((at, i64::MAX / 4));
        }
        let mut ran: Vec<(i64, i64)> = Vec::new();
        let mut run = |from: i64, to: i64| {
            for &(begins, ends) in &wants {
                let (begin, end) = (begins.max(from), ends.min(to));
                if begin < end {
                    match ran.last_mut() {
                        Some(last) if last.1 == begin => last.1 = end,
                        _ => ran.push((begin, end)),
                    }
                }
            }
        };
        let in_wants = |from: i64, to: i64| -> i64 {
            let inside = |&(begins, ends): &(i64, i64)| (ends.min(to) - begins.max(from)).max(0);
            wants.iter().map(inside).sum()
        };
        // When use of `after` from `from` on is reached.
        let reached = |from: i64, after: i64| {
            let mut missing = after;
            for &(begins, ends) in &wants {
                let begin = begins.max(from);
                if begin < ends {
                    if ends - begin >= missing {
                        return begin + missing;
                    }
                    missing -= ends - begin;
                }
            }
            i64::MAX / 4
        };
        let mut server = Server::new(self.reservation, self.notice, self.grid_ns, 0, 0);
        let (mut now, mut used, mut thawed) = (0, 0, true);
        let mut ended = Vec::new();
        let mut looks = 0;
        while now < until_ns {
            let said = server.look(now, used);
            looks += 1;
            ended.extend(said.ended);
            assert_eq!(said.thawed, server.left_ns() > 0);
            let by_use = said.look_after_use_ns.filter(|_| said.thawed);
            assert!(self.notice == Notice::Use || by_use.is_none());
            let due = (said.look_at_ns.unwrap_or(i64::MAX / 4))
                .min(by_use.map_or(i64::MAX / 4, |after| reached(now, after)));
            assert!(due > now, "a look that is due at once: {said:?}");
            let next = (due + self.late[looks % self.late.len()]).min(until_ns);
            let to = match (thawed, said.thawed) {
                (_, true) => next,
                (true, false) => (now + self.freezing[looks % self.freezing.len()]).min(next),
                (false, false) => now,
            };
            run(now, to);
            used += in_wants(now, to);
            (now, thawed) = (next, said.thawed);
        }
        Run {
            ran,
            until_ns,
            always_from_ns,
            ended,
            looks,
        }
    }
}

impl Run {
    fn used(&self, from: i64, to: i64) -> i64 {
        let inside = |&(begin, end): &(i64, i64)| (end.min(to) - begin.max(from)).max(0);
        self.ran.iter().map(inside).sum()
    }

    /// Windows of a length at which use is largest or smallest: they begin or end where a stretch does.
    fn windows(&self, length: i64) -> impl Iterator<Item = (i64, i64)> {
        let edges = self.ran.iter().flat_map(|&(begin, end)| [begin, end]);
        edges
            .flat_map(move |edge| [(edge, edge + length), (edge - length, edge)])
            .filter(|&(from, to)| from >= 0 && to <= self.until_ns)
    }
}

fn reservations() -> impl Strategy<Value = Reservation> {
    let periods = prop_oneof![Just(1_000), Just(10_000), Just(50_000), 100i64..100_000];
    (periods, 1i64..=1000).prop_map(|(period, permille)| {
        let budget = (period * permille / 1000).max(1);
        Reservation::new(budget * US, period * US).unwrap()
    })
}

fn worlds(always: bool, spans: usize) -> impl Strategy<Value = World> {
    let notice = prop_oneof![Just(Notice::Clock), Just(Notice::Use)];
    // Worst cases in parts of a period, up to more than one.
    let worst = (0i64..1_500, 0i64..1_500, any::<bool>());
    (
        reservations(),
        notice,
        worst,
        prop::collection::vec((0i64..2_500, 1i64..2_500, 0i64..4), 0..=spans),
        prop::collection::vec((0i64..=1000, 0i64..=1000), 1..9),
    )
        .prop_map(move |(reservation, notice, worst, spans, late)| {
            let period = reservation.period_ns;
            // Mostly as exact as a real enforcer.
            let scale = |permille: i64| match worst.2 {
                true => period * permille / 1000,
                false => period * permille / 100_000,
            };
            let (worst_late, worst_freezing) = (scale(worst.0), scale(worst.1));
            World {
                reservation,
                notice,
                grid_ns: if always && spans.is_empty() {
                    0
                } else {
                    late[0].0 * period / 1000 - period / 3
                },
                spans: (spans.iter())
                    .map(|&(sleeps, runs, shrink)| {
                        let shrink = 10i64.pow(shrink as u32);
                        (
                            period * sleeps / 1000 / shrink,
                            (period * runs / 1000 / shrink).max(1),
                        )
                    })
                    .collect(),
                always,
                late: late.iter().map(|part| worst_late * part.0 / 1000).collect(),
                freezing: (late.iter())
                    .map(|part| worst_freezing * part.1 / 1000)
                    .collect(),
                periods: 40,
            }
        })
}

proptest! {
    #[test]
    fn no_window_holds_more_than_a_budget_more_than_its_periods(world in worlds(true, 12)) {
        let run = world.run();
        let Reservation { budget_ns, period_ns } = world.reservation;
        for k in [1, 2, 3, 7, 20] {
            for (from, to) in run.windows(k * period_ns) {
                let bound = (k + 1) * budget_ns + world.overrun();
                prop_assert!(run.used(from, to) <= bound, "{} in [{from}, {to}), at most {bound}", run.used(from, to));
            }
        }
    }

    #[test]
    fn who_always_wants_gets_its_share_and_no_more(world in worlds(true, 0)) {
        let world = world.in_time();
        let run = world.run();
        let Reservation { budget_ns, period_ns } = world.reservation;
        let most = world.periods * budget_ns + world.overrun();
        let used = run.used(0, run.until_ns);
        prop_assert!(used <= most, "{used} in all, at most {most}");
        for k in [1, 2, 3, 7, 20] {
            let length = k * period_ns + world.worst_late() + world.overrun();
            for (from, to) in run.windows(length) {
                let bound = k * budget_ns - world.overrun();
                prop_assert!(run.used(from, to) >= bound, "{} in [{from}, {to}), at least {bound}", run.used(from, to));
            }
        }
    }

    /// An overrun of many budgets keeps a group waiting for as many periods, and nothing else does.
    #[test]
    fn the_longest_gap_is_that_of_the_longest_overrun(world in worlds(true, 0)) {
        let world = world.in_time();
        let run = world.run();
        let Reservation { budget_ns, period_ns } = world.reservation;
        let periods = world.overrun() / budget_ns + 1;
        let kept = (budget_ns - world.overrun()).max(0);
        let bound = periods * period_ns - (periods - 1) * budget_ns - kept + world.worst_late();
        for pair in run.ran.windows(2) {
            let gap = pair[1].0 - pair[0].1;
            prop_assert!(gap <= bound, "{gap}, at most {bound}");
        }
    }

    #[test]
    fn who_begins_to_want_is_served_as_if_it_had_always(world in worlds(true, 12)) {
        let world = world.in_time();
        let run = world.run();
        let Reservation { budget_ns, period_ns } = world.reservation;
        for k in [1, 2, 5] {
            let length = k * period_ns + world.worst_late() + world.overrun();
            let own = (run.always_from_ns, run.always_from_ns + length);
            for (from, to) in run.windows(length).chain([own]) {
                if from >= run.always_from_ns && to <= run.until_ns {
                    let bound = k * budget_ns - world.overrun() - world.worst_late();
                    prop_assert!(run.used(from, to) >= bound, "{} in [{from}, {to}), at least {bound}", run.used(from, to));
                }
            }
        }
    }

    #[test]
    fn nothing_is_used_that_is_not_told(world in worlds(false, 12)) {
        let run = world.run();
        let told: i64 = run.ended.iter().map(|ended| ended.used_ns).sum();
        let used = run.used(0, run.until_ns);
        prop_assert!(told <= used);
        for ended in &run.ended {
            prop_assert!(ended.overrun_ns <= world.overrun().max(ended.used_ns - world.reservation.budget_ns));
        }
    }

    #[test]
    fn looks_are_few(world in worlds(true, 12)) {
        let run = world.run();
        // A look in every hundredth part of a period at most; with notice of use four in a period besides.
        let most = match world.notice {
            Notice::Clock => 2 * STEPS_IN_PERIOD + 8,
            Notice::Use => 8 + 2 * world.spans.len() as i64,
        };
        prop_assert!(run.looks as i64 <= most * (world.periods + 1), "{} looks", run.looks);
    }
}

#[test]
fn an_idle_group_is_not_looked_at_where_use_is_noticed() {
    let reservation = Reservation::new(3_000 * US, 10_000 * US).unwrap();
    let mut server = Server::new(reservation, Notice::Use, 4_000 * US, 0, 0);
    let idle = server.look(0, 0);
    assert_eq!(
        (idle.look_at_ns, idle.look_after_use_ns),
        (None, Some(20 * US))
    );
    // 30 us of use until the notice is acted on, across the beginning of a period: it counts in the one before.
    let first = server.look(5_004_010 * US, 30 * US);
    assert_eq!(server.period_end_ns(), Some(5_014_000 * US));
    assert_eq!(first.ended.unwrap().used_ns, 20 * US);
    assert_eq!(first.look_at_ns, Some(5_007_010 * US));
    // It slept at 1.5 ms: the kernel tells when the other half is used.
    let second = server.look(5_007_010 * US, 1_520 * US);
    assert_eq!(second.look_at_ns, Some(5_014_000 * US));
    assert_eq!(second.look_after_use_ns, Some(1_500 * US));
    let end = server.look(5_014_002 * US, 1_520 * US);
    assert_eq!((end.look_at_ns, server.period_end_ns()), (None, None));
    let ended = end.ended.unwrap();
    assert_eq!(
        (ended.periods, ended.used_ns, ended.exhausted),
        (1, 1_500 * US, false)
    );
}

#[test]
fn an_overrun_of_several_budgets_costs_several_periods() {
    let reservation = Reservation::new(3_000 * US, 10_000 * US).unwrap();
    let mut server = Server::new(reservation, Notice::Clock, 0, 0, 0);
    server.look(0, 0);
    // A look at 3 ms that comes at 9.5 ms, after 9.5 ms of use: 6.5 ms too much.
    let frozen = server.look(9_500 * US, 9_500 * US);
    assert!(!frozen.thawed);
    assert_eq!(
        frozen.look_at_ns,
        Some(30_000 * US),
        "two budgets are owed whole"
    );
    let thawed = server.look(30_000 * US, 9_500 * US);
    assert!(thawed.thawed);
    assert_eq!(server.left_ns(), 2_500 * US);
    let ended = thawed.ended.unwrap();
    assert_eq!((ended.periods, ended.overrun_ns), (3, 6_500 * US));
}

#[test]
fn budgets_that_cannot_be_held_are_refused() {
    for (budget, period) in [
        (0, 1_000),
        (-1, 1_000),
        (1_001, 1_000),
        (10, 99),
        (5, i64::MAX / 2_000),
    ] {
        assert!(
            Reservation::new(budget * US, period * US).is_err(),
            "{budget} {period}"
        );
    }
    assert!(Reservation::new(100 * US, 100 * US).is_ok());
    let unsigned = Reservation::of_unsigned;
    let own = Reservation::new(3, 100 * US);
    assert_eq!(unsigned(3, (100 * US).unsigned_abs()), own);
    for (budget, period) in [(0, 100_000), (3, 1 << 63), (u64::MAX, u64::MAX)] {
        assert!(unsigned(budget, period).is_err(), "{budget} {period}");
    }
}
