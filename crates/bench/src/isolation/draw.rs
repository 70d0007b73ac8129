//! Random task sets for two cells, and the budgets they need of each enforcer. Pure: the same seed and the same room give the same sets.

use analysis::generate::{Random, rand_fixed_sum_within};
use analysis::inside::fixed_priority;
use analysis::linux::{
    DeadlineParams, Means, RootDomain, least_budget, less_bandwidth, reservation_periods,
    thread_of, threads_hold,
};
use analysis::reservation::Dedicated;
use analysis::{Ns, Task};
use model::Enforcer;
use record::isolation::{DrawnCell, DrawnSet, DrawnTask, Draws, Role};
use record::{Budget, NotMeasured};

/// Tasks of each cell.
pub(super) const TASKS: usize = 3;
/// Periods are spread evenly over the orders of magnitude between these, ms.
pub(super) const PERIODS_MS: (f64, f64) = (100.0, 1_000.0);
/// The least utilisation of a task.
const LEAST_SHARE: f64 = 0.01;
/// After so many sets in a row that an enforcer cannot hold, it takes no part.
const PATIENCE: u32 = 200;

/// The room of the machine, as far as that decides which sets are drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Room {
    /// Each enforcer that holds whole cells.
    pub by_cell: Vec<ByCell>,
    /// The scheduler's tick, ns, for the runtimes of SCHED_DEADLINE: 0 where they end by a timer.
    pub deadline_tick_ns: Ns,
    /// The root domain that the threads of SCHED_DEADLINE are admitted to.
    pub domain: RootDomain,
    /// How long the attacker's jobs are when it overruns, in thousandths.
    pub overrun_permille: u32,
    /// Priority of the attacker's most urgent task.
    pub priority: u8,
}

/// An enforcer that holds whole cells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ByCell {
    pub enforcer: Enforcer,
    /// How it does.
    pub means: Means,
    /// Free bandwidth for both cells, us in every second.
    pub free_us: u64,
}

/// The tasks of two cells, the most urgent of each first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pair {
    attacker: Vec<Task>,
    victim: Vec<Task>,
}

impl Pair {
    /// The set of this number under a seed: half of the utilisation for each cell.
    fn draw(seed: u64, permille: u32, number: u64) -> Option<Pair> {
        let mut random = Random::of_set(seed, (u64::from(permille) << 32) | number);
        let share = f64::from(permille) / 2_000.0;
        Some(Pair {
            attacker: tasks(share, &mut random)?,
            victim: tasks(share, &mut random)?,
        })
    }
}

fn tasks(share: f64, random: &mut Random) -> Option<Vec<Task>> {
    let shares = rand_fixed_sum_within(TASKS, share, LEAST_SHARE, 1.0, random)?;
    let (low, high) = PERIODS_MS;
    let mut tasks: Vec<Task> = (shares.into_iter())
        .map(|share| {
            let period_ms = random.between(low.ln(), high.ln()).exp().round();
            Task::new((share * period_ms * 1e6) as Ns, (period_ms * 1e6) as Ns)
        })
        .collect();
    tasks.sort_by_key(|task| task.period);
    Some(tasks)
}

/// The budgets of two cells, (budget, period) in ns: the attacker's and the victim's.
type Budgets = ((Ns, Ns), (Ns, Ns));

/// The two budgets of least total bandwidth with whose minimum supply both cells meet all deadlines, the attacker's before the victim's,
/// the cost of holding both before either, of at most so many us together in every second.
fn budgets(pair: &Pair, means: Means, free_us: u64) -> Option<Budgets> {
    let of = |tasks: &[Task]| -> Vec<(Ns, Ns)> {
        (reservation_periods(tasks).into_iter())
            .filter_map(|period| {
                let cap = Ns::try_from(u128::from(period) * u128::from(free_us) / 1_000_000);
                let keeps = |budget: Ns| means.keeps(tasks, budget, period);
                let budget = least_budget(period, cap.ok()?, keeps)?;
                Some((budget, period))
            })
            .collect()
    };
    // The cost of holding a cell counts as if it were budget.
    let taken = |(budget, period): (Ns, Ns)| (budget + means.cost(), period);
    let victims = of(&pair.victim);
    let mut best: Option<Budgets> = None;
    for above in of(&pair.attacker) {
        for &own in &victims {
            // As one budget of a common period, so that pairs can be compared by their bandwidth.
            let both = |above, own| sum(taken(above), taken(own));
            let better =
                best.is_none_or(|best| less_bandwidth(both(above, own), both(best.0, best.1)));
            if better
                && per_second_us(taken(above)) + per_second_us(taken(own)) <= free_us
                && means.comes(above, &[], &[own])
                && means.comes(own, &[above], &[])
            {
                best = Some((above, own));
            }
        }
    }
    best
}

fn sum(a: (Ns, Ns), b: (Ns, Ns)) -> (Ns, Ns) {
    (
        a.0 * (b.1 / 1_000) + b.0 * (a.1 / 1_000),
        a.1 * (b.1 / 1_000),
    )
}

/// As the kernel counts it, rounded up.
fn per_second_us((budget, period): (Ns, Ns)) -> u64 {
    u64::try_from((u128::from(budget) * 1_000_000).div_ceil(u128::from(period.max(1))))
        .unwrap_or(u64::MAX)
}

/// The runtimes of the threads of SCHED_DEADLINE, ns: of the attacker's tasks and then of the victim's.
fn runtimes(pair: &Pair, room: &Room) -> Option<Vec<Ns>> {
    let threads: Vec<DeadlineParams> = (pair.attacker.iter().chain(&pair.victim))
        .map(thread_of)
        .collect();
    let fit = threads_hold(&threads, room.deadline_tick_ns)
        .verdict
        .is_schedulable()
        && room.domain.admits(&threads).is_ok();
    fit.then(|| threads.iter().map(|thread| thread.runtime).collect())
}

/// Whether the victim misses a deadline in the worst case when the attacker overruns and nothing holds it (response time analysis, all
/// tasks released together).
fn late_without(pair: &Pair, room: &Room) -> bool {
    let longer = |task: &Task| {
        let wcet = u128::from(task.wcet) * u128::from(room.overrun_permille) / 1_000;
        Task::new(Ns::try_from(wcet).unwrap_or(Ns::MAX), task.period)
    };
    let all: Vec<Task> = (pair.attacker.iter().map(longer))
        .chain(pair.victim.iter().copied())
        .collect();
    let responses = fixed_priority(&all, &Dedicated).responses;
    responses[pair.attacker.len()..].contains(&None)
}

/// The grants of the enforcers to a set.
#[derive(Debug, Clone)]
struct Assessed {
    pair: Pair,
    /// Of those that hold whole cells.
    budgets: Vec<(Enforcer, Budgets)>,
    runtimes: Option<Vec<Ns>>,
}

impl Assessed {
    fn of(pair: Pair, enforcers: &[Enforcer], room: &Room) -> Assessed {
        let asked = |enforcer| enforcers.contains(&enforcer);
        Assessed {
            budgets: (room.by_cell.iter())
                .filter(|by| asked(by.enforcer))
                .filter_map(|by| Some((by.enforcer, budgets(&pair, by.means, by.free_us)?)))
                .collect(),
            runtimes: asked(Enforcer::Deadline)
                .then(|| runtimes(&pair, room))
                .flatten(),
            pair,
        }
    }

    fn held_by(&self, enforcer: Enforcer) -> bool {
        match enforcer {
            Enforcer::Deadline => self.runtimes.is_some(),
            by_cell => self.budgets.iter().any(|(by, _)| *by == by_cell),
        }
    }
}

/// The sets of one utilisation, one for each round, that every enforcer which takes part can hold; `first` is the number of
/// the first.
pub(super) fn draw(
    seed: u64,
    permille: u32,
    rounds: u32,
    enforcers: &[Enforcer],
    room: &Room,
    first: u32,
) -> (Draws, Vec<DrawnSet>) {
    let mut seen: Vec<Assessed> = Vec::new();
    let mut part = enforcers.to_vec();
    let mut without = Vec::new();
    loop {
        let chosen = choose(&mut seen, &part, enforcers, seed, permille, rounds, room);
        let refused = |enforcer: &Enforcer| -> u32 {
            seen.iter().filter(|one| !one.held_by(*enforcer)).count() as u32
        };
        let drawn = seen.len() as u32;
        let enough = chosen.len() == rounds as usize;
        if enough || part.is_empty() {
            let draws = Draws {
                utilisation_permille: permille,
                drawn,
                refused: (enforcers.iter())
                    .map(|enforcer| (enforcer.name().to_owned(), refused(enforcer)))
                    .collect(),
                without,
            };
            let part = &part;
            let sets = (chosen.iter().zip(1..))
                .filter(|_| enough)
                .map(|(&at, round)| set(&seen[at], part, room, permille, at, round, first))
                .collect();
            return (draws, sets);
        }
        let worst = part.iter().copied().max_by_key(refused);
        if let Some(worst) = worst {
            without.push(NotMeasured {
                trial: format!(
                    "{} at utilisation {}",
                    worst.name(),
                    f64::from(permille) / 1_000.0
                ),
                reason: why(room, worst, refused(&worst), drawn),
                fix: "lower --utilisation".to_owned(),
            });
            part.retain(|enforcer| *enforcer != worst);
        }
    }
}

/// Why an enforcer takes no part that cannot hold so many of the sets.
fn why(room: &Room, enforcer: Enforcer, refused: u32, drawn: u32) -> String {
    let by_cell = room.by_cell.iter().find(|by| by.enforcer == enforcer);
    let (supplied, free) = match by_cell {
        // How late it looks here has not been measured.
        Some(by) if matches!(by.means, Means::Freezer(_)) => {
            ("the freezer supplied on another machine", String::new())
        }
        Some(by) => (
            "this kernel supplies",
            format!(
                ", with {} ms of real-time budget free in every second",
                by.free_us / 1_000
            ),
        ),
        None => ("this kernel supplies", String::new()),
    };
    format!("the analysis of what {supplied} refuses {refused} of {drawn} drawn sets{free}")
}

/// Draws until there is a set for each round or patience runs out; returns those chosen.
fn choose(
    seen: &mut Vec<Assessed>,
    part: &[Enforcer],
    enforcers: &[Enforcer],
    seed: u64,
    permille: u32,
    rounds: u32,
    room: &Room,
) -> Vec<usize> {
    let (mut chosen, mut in_vain) = (Vec::new(), 0);
    let mut at = 0;
    while chosen.len() < rounds as usize && in_vain < PATIENCE && !part.is_empty() {
        if at == seen.len() {
            let Some(pair) = Pair::draw(seed, permille, at as u64) else {
                break;
            };
            seen.push(Assessed::of(pair, enforcers, room));
        }
        if part.iter().all(|enforcer| seen[at].held_by(*enforcer)) {
            chosen.push(at);
            in_vain = 0;
        } else {
            in_vain += 1;
        }
        at += 1;
    }
    chosen
}

fn set(
    assessed: &Assessed,
    part: &[Enforcer],
    room: &Room,
    permille: u32,
    at: usize,
    round: u32,
    first: u32,
) -> DrawnSet {
    let pair = &assessed.pair;
    let runtimes = (assessed.runtimes.as_ref()).filter(|_| part.contains(&Enforcer::Deadline));
    let budgets = |own: fn(&Budgets) -> (Ns, Ns)| {
        let of = (assessed.budgets.iter()).filter(|(enforcer, _)| part.contains(enforcer));
        let held = of.map(|(enforcer, both)| {
            let (budget_ns, period_ns) = own(both);
            Budget {
                enforcer: *enforcer,
                budget_ns,
                period_ns,
            }
        });
        held.collect()
    };
    let cell = |role: Role, tasks: &[Task], before: usize, budgets| DrawnCell {
        tasks: (tasks.iter().enumerate())
            .map(|(place, task)| DrawnTask {
                name: format!("{}-{}", role.name(), place + 1),
                wcet_ns: task.wcet,
                period_ns: task.period,
                runtime_ns: runtimes.map(|runtimes| runtimes[before + place]),
                priority: room.priority.saturating_sub((before + place) as u8),
            })
            .collect(),
        budgets,
    };
    DrawnSet {
        number: first + round - 1,
        round,
        utilisation_permille: permille,
        draw: at as u64,
        attacker: cell(Role::Attacker, &pair.attacker, 0, budgets(|both| both.0)),
        victim: cell(
            Role::Victim,
            &pair.victim,
            pair.attacker.len(),
            budgets(|both| both.1),
        ),
        late_without: late_without(pair, room),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::inside::{Policy, holds};
    use analysis::linux::Reaction;
    use proptest::prelude::*;

    const BOTH: [Enforcer; 2] = [Enforcer::RtCgroup, Enforcer::Deadline];

    /// Every enforcer of whole cells, each with so much free.
    fn by_cell(tick_ms: Ns, free_us: u64) -> Vec<ByCell> {
        let tick = tick_ms * 1_000_000;
        let all = [
            (Enforcer::RtCgroup, Means::RtCgroup(tick)),
            (Enforcer::Hcbs, Means::Hcbs(tick)),
            (Enforcer::Freezer, Means::Freezer(Reaction::MEASURED)),
        ];
        all.map(|(enforcer, means)| ByCell {
            enforcer,
            means,
            free_us,
        })
        .to_vec()
    }

    fn room(tick_ms: Ns) -> Room {
        Room {
            by_cell: by_cell(tick_ms, 950_000),
            deadline_tick_ns: tick_ms * 1_000_000,
            domain: RootDomain::of_cpus(1).with_fair_server(),
            overrun_permille: 1_800,
            priority: 80,
        }
    }

    fn declared(cell: &DrawnCell) -> f64 {
        (cell.tasks.iter())
            .map(|task| task.wcet_ns as f64 / task.period_ns as f64)
            .sum()
    }

    #[test]
    fn every_set_has_its_utilisation_and_is_held_by_all_that_take_part() {
        let (draws, sets) = draw(7, 500, 4, &BOTH, &room(4), 11);
        assert!(draws.without.is_empty(), "{draws:?}");
        assert!(draws.drawn >= 4);
        assert_eq!(
            sets.iter().map(|set| set.number).collect::<Vec<_>>(),
            [11, 12, 13, 14]
        );
        for set in &sets {
            assert!((declared(&set.attacker) - 0.25).abs() < 1e-6);
            assert!((declared(&set.victim) - 0.25).abs() < 1e-6);
            let budget = |cell: &DrawnCell| {
                let held = cell.budget_of(Enforcer::RtCgroup).unwrap();
                held.budget_ns as f64 / held.period_ns as f64
            };
            assert!(budget(&set.attacker) > 0.25 && budget(&set.victim) > 0.25);
            assert!(budget(&set.attacker) + budget(&set.victim) <= 0.95);
            let lowest = set.attacker.tasks.iter().map(|task| task.priority).min();
            let highest = set.victim.tasks.iter().map(|task| task.priority).max();
            assert!(lowest > highest);
            for task in set.attacker.tasks.iter().chain(&set.victim.tasks) {
                assert!(task.runtime_ns.unwrap() > task.wcet_ns);
            }
        }
        assert_eq!(draw(7, 500, 4, &BOTH, &room(4), 11), (draws, sets));
    }

    #[test]
    fn an_enforcer_that_can_hold_none_takes_no_part_and_the_reason_is_told() {
        let (draws, sets) = draw(1, 800, 2, &BOTH, &room(4), 1);
        let [without] = draws.without.as_slice() else {
            panic!("{draws:?}");
        };
        assert_eq!(without.trial, "rt-cgroup at utilisation 0.8");
        assert!(without.reason.contains("refuses"), "{}", without.reason);
        assert_eq!(sets.len(), 2);
        for set in &sets {
            assert_eq!(set.victim.budgets, []);
            assert!(
                set.victim
                    .tasks
                    .iter()
                    .all(|task| task.runtime_ns.is_some())
            );
        }
        assert!(without.reason.contains("this kernel supplies"));
        let crowded = Room {
            by_cell: by_cell(4, 100_000),
            ..room(4)
        };
        let reason = |enforcer| {
            let (draws, _) = draw(1, 800, 2, &[enforcer], &crowded, 1);
            draws.without[0].reason.clone()
        };
        let frozen = reason(Enforcer::Freezer);
        assert!(frozen.contains("on another machine"), "{frozen}");
        let served = reason(Enforcer::Hcbs);
        assert!(
            served.ends_with("with 100 ms of real-time budget free in every second"),
            "{served}"
        );
        let (draws, sets) = draw(1, 800, 2, &BOTH[..1], &room(4), 1);
        assert!(sets.is_empty());
        assert_eq!((draws.without.len(), draws.drawn), (1, PATIENCE));
        assert_eq!(draws.refused, [("rt-cgroup".to_owned(), PATIENCE)]);
    }

    #[test]
    fn a_victim_that_the_overrun_starves_is_foretold() {
        let ms = 1_000_000;
        let pair = |attack: Ns| Pair {
            attacker: vec![Task::new(attack * ms, 500 * ms)],
            victim: vec![Task::new(20 * ms, 100 * ms)],
        };
        assert!(late_without(&pair(50), &room(4)));
        assert!(!late_without(&pair(40), &room(4)));
    }

    #[test]
    fn each_enforcer_of_whole_cells_has_its_own_budgets_of_a_set() {
        let all = [Enforcer::RtCgroup, Enforcer::Hcbs, Enforcer::Freezer];
        let (draws, sets) = draw(3, 400, 2, &all, &room(4), 1);
        assert!(draws.without.is_empty() && sets.len() == 2, "{draws:?}");
        for set in &sets {
            for cell in [&set.attacker, &set.victim] {
                let by: Vec<Enforcer> = cell.budgets.iter().map(|held| held.enforcer).collect();
                assert_eq!(by, all);
            }
            let both = [&set.attacker, &set.victim].map(|cell| {
                let held = cell.budget_of(Enforcer::Hcbs).unwrap();
                (held.budget_ns, held.period_ns)
            });
            let means = Means::Hcbs(4_000_000);
            assert!(means.comes(both[0], &[both[1]], &[]), "{both:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn what_is_granted_holds_again(seed in 0u64..1 << 40, permille in 200u32..600, tick in 1u64..10) {
            let room = room(tick);
            let Some(pair) = Pair::draw(seed, permille, 0) else { return Ok(()) };
            for ByCell { means, free_us, .. } in room.by_cell {
                let Some((above, own)) = budgets(&pair, means, free_us) else { continue };
                for (tasks, (budget, period)) in [(&pair.attacker, above), (&pair.victim, own)] {
                    let supply = means.certain(budget, period).unwrap();
                    prop_assert_eq!(holds(tasks, Policy::FixedPriority, &supply), Ok(true));
                }
                prop_assert!(means.comes(above, &[], &[own]) && means.comes(own, &[above], &[]));
                prop_assert!(per_second_us(above) + per_second_us(own) <= free_us);
            }
        }
    }
}
