//! The freezer's modelled supply, against the rule of the crate `freezer` itself, enforced by a thread that is late in any way within
//! bounds, of a group that others on its cpu keep waiting in any way within bounds.

use freezer::Reservation;
use freezer::rule::{Notice, Server};
use proptest::prelude::*;
use timecell_analysis::Supply;
use timecell_analysis::linux::{FreezerSupply, Reaction};
use timecell_analysis::reservation::BoundedDelay;

const US: i64 = 1_000;

/// A run of the rule. All times in ns.
#[derive(Debug, Clone)]
struct World {
    budget: i64,
    period: i64,
    notice: Notice,
    /// When a period of the grid begins.
    grid: i64,
    /// How late looks are, in turns.
    late: Vec<i64>,
    /// How long the group goes on when it is frozen, in turns.
    freezing: Vec<i64>,
    /// From when to when after the beginning of a period others have the cpu, period by period, in turns; empty: never.
    others: Vec<(i64, i64)>,
}

const PERIODS: i64 = 40;

impl World {
    fn server(&self) -> Server {
        let reservation = Reservation::new(self.budget, self.period).unwrap();
        Server::new(reservation, self.notice, self.grid, 0, 0)
    }

    fn reaction(&self) -> Reaction {
        let most = |of: &[i64]| of.iter().copied().max().unwrap_or(0);
        let late = most(&self.late);
        let overrun = late + most(&self.freezing) + self.server().coarseness_ns();
        Reaction {
            late: late.unsigned_abs(),
            overrun: overrun.unsigned_abs(),
            noticed: self.notice == Notice::Use,
        }
    }

    /// When others leave the cpu to the group.
    fn free(&self) -> Vec<(i64, i64)> {
        let first = self.grid.rem_euclid(self.period) - self.period;
        let (mut free, mut at) = (Vec::new(), 0);
        for place in 0..=PERIODS + 1 {
            let begin = first + place * self.period;
            let Some(&(from, to)) = self.others.iter().cycle().nth(place as usize) else {
                break;
            };
            let (from, to) = ((begin + from).max(0), (begin + to).max(0));
            if at < from {
                free.push((at, from));
            }
            at = at.max(to);
        }
        free.push((at, i64::MAX / 4));
        free
    }

    /// When the group ran.
    fn run(&self) -> Vec<(i64, i64)> {
        let (free, until) = (self.free(), PERIODS * self.period);
        let inside = |from: i64, to: i64| -> i64 {
            let part = |&(begin, end): &(i64, i64)| (end.min(to) - begin.max(from)).max(0);
            free.iter().map(part).sum()
        };
        let reached = |from: i64, mut missing: i64| {
            for &(begin, end) in free.iter().filter(|(_, end)| *end > from) {
                let begin = begin.max(from);
                if end - begin >= missing {
                    return begin + missing;
                }
                missing -= end - begin;
            }
            i64::MAX / 4
        };
        let mut ran: Vec<(i64, i64)> = Vec::new();
        let mut server = self.server();
        let (mut now, mut used, mut thawed) = (0, 0, true);
        for turn in 1.. {
            if now >= until {
                break;
            }
            let said = server.look(now, used);
            let by_use = said.look_after_use_ns.filter(|_| said.thawed);
            let due = (said.look_at_ns.unwrap_or(i64::MAX / 4))
                .min(by_use.map_or(i64::MAX / 4, |after| reached(now, after)));
            let next = (due + self.late[turn % self.late.len()]).min(until);
            let to = match (thawed, said.thawed) {
                (_, true) => next,
                (true, false) => (now + self.freezing[turn % self.freezing.len()]).min(next),
                (false, false) => now,
            };
            for &(begin, end) in &free {
                let (begin, end) = (begin.max(now), end.min(to));
                match ran.last_mut() {
                    _ if begin >= end => {}
                    Some(last) if last.1 == begin => last.1 = end,
                    _ => ran.push((begin, end)),
                }
            }
            used += inside(now, to);
            (now, thawed) = (next, said.thawed);
        }
        ran
    }

    /// The window, from the end of one stretch to the beginning of another, in which the group got least against `supply`, with its supply there.
    fn least(&self, supply: &impl Supply) -> Option<(i64, i64, i64)> {
        let ran = self.run();
        let mut worst: Option<(i64, i64, i64)> = None;
        let mut lack = i64::MAX;
        for first in 0..ran.len() {
            let mut got = 0;
            for next in first + 1..ran.len() {
                let (from, to) = (ran[first].1, ran[next].0);
                let promised = supply.sbf((to - from).unsigned_abs()).cast_signed();
                if got - promised < lack {
                    (worst, lack) = (Some((from, to, got)), got - promised);
                }
                got += ran[next].1 - ran[next].0;
            }
        }
        worst
    }

    /// Whether the rule gives this in every window.
    fn keeps(&self, supply: &impl Supply) -> Result<(), String> {
        match self.least(supply) {
            Some((from, to, got))
                if supply.sbf((to - from).unsigned_abs()) > got.unsigned_abs() =>
            {
                let promised = supply.sbf((to - from).unsigned_abs());
                Err(format!("{got} in [{from}, {to}), not {promised}"))
            }
            _ => Ok(()),
        }
    }
}

fn worlds(behind: bool) -> impl Strategy<Value = World> {
    let periods = prop_oneof![Just(1_000), Just(10_000), 100i64..100_000];
    let notice = prop_oneof![Just(Notice::Clock), Just(Notice::Use)];
    let parts = || prop::collection::vec((0i64..=1000, 0i64..=1000, any::<bool>()), 1..9);
    (
        periods,
        1i64..=1000,
        notice,
        0i64..1000,
        0i64..1000,
        parts(),
        parts(),
        0i64..1000,
    )
        .prop_map(
            move |(period, permille, notice, late, freezing, reaction, others, grid)| {
                let period = period * US;
                let budget = (period * permille / 1000).max(1);
                // Within the lateness that leaves the group its budget after the latest thaw.
                let late = (period - budget) * late / 1000 / 4;
                let freezing = period * freezing / 2000;
                let room = (period - budget - late).max(0);
                // From the latest thaw on they leave it its budget; before that it runs only if the thaw comes sooner.
                let block = |&(length, place, whole): &(i64, i64, bool)| {
                    let length = if whole { room } else { room * length / 1000 };
                    let place = if whole { place / 501 * 1000 } else { place };
                    match (period - late - length) * place / 1000 {
                        0 => (0, late + length),
                        from => (late + from, late + from + length),
                    }
                };
                let tardy =
                    |part: &(i64, i64, bool)| if part.2 { late } else { late * part.0 / 1000 };
                World {
                    budget,
                    period,
                    notice,
                    grid: period * grid / 1000,
                    late: reaction.iter().map(tardy).collect(),
                    freezing: reaction
                        .iter()
                        .map(|part| freezing * part.1 / 1000)
                        .collect(),
                    others: match behind {
                        true => others.iter().map(block).collect(),
                        false => Vec::new(),
                    },
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn alone_it_gives_at_least_what_is_counted_on(world in worlds(false)) {
        let (budget, period) = (world.budget.unsigned_abs(), world.period.unsigned_abs());
        if let Ok(supply) = FreezerSupply::new(budget, period, world.reaction()) {
            prop_assert_eq!(world.keeps(&supply.alone), Ok(()));
            prop_assert_eq!(world.keeps(&supply.behind), Ok(()));
            let ran = world.run();
            let gaps = ran.windows(2).map(|two| (two[1].0 - two[0].1).unsigned_abs());
            prop_assert!(gaps.max().unwrap_or(0) <= supply.longest_gap, "{}", supply.longest_gap);
        }
    }

    #[test]
    fn behind_others_it_gives_at_least_what_is_counted_on(world in worlds(true)) {
        let (budget, period) = (world.budget.unsigned_abs(), world.period.unsigned_abs());
        if let Ok(supply) = FreezerSupply::new(budget, period, world.reaction()) {
            prop_assert_eq!(world.keeps(&supply.behind), Ok(()));
        }
    }
}

/// 3 ms every 10 ms, of which the first is overrun by 1 ms.
fn overrun_once(others: &[(i64, i64)]) -> World {
    World {
        budget: 3_000 * US,
        period: 10_000 * US,
        notice: Notice::Use,
        grid: 0,
        late: vec![0],
        freezing: [vec![0, 0, 0], vec![1_000 * US], vec![0; 200]].concat(),
        others: others
            .iter()
            .map(|&(from, to)| (from * US, to * US))
            .collect(),
    }
}

#[test]
fn an_overrun_takes_as_long_to_pay_back_as_its_rate_says() {
    let (ms, alone) = (1_000_000, overrun_once(&[]));
    // The freeze took effect at 4 ms; the excess is missing at 10 ms and in every window from then on.
    assert_eq!(alone.run()[0].1, 4_010 * US);
    let overrun = alone.reaction().overrun;
    let plain = |delay| BoundedDelay::new(3 * ms, 10 * ms, delay).unwrap();
    assert!(alone.keeps(&plain(7 * ms + overrun)).is_err());
    let behind = overrun_once(&[vec![(0, 0), (0, 0)], vec![(0, 7_000); 48]].concat());
    assert!(behind.keeps(&plain(14 * ms + overrun)).is_err());
    for world in [alone, behind] {
        let supply = FreezerSupply::new(3 * ms, 10 * ms, world.reaction()).unwrap();
        assert_eq!(world.keeps(&supply.behind), Ok(()));
    }
}
