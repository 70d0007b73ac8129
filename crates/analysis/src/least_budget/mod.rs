//! The least budget: how little cpu time a cell must reserve so that its deadlines hold. For one period the least
//! budget on a grid, over a range of periods the reservation of least bandwidth. Whether deadlines hold in a given
//! reservation is asked of [`inside`](crate::inside); where cells go is decided in [`design`](crate::design).
//!
//! ```
//! use timecell_analysis::{Task, inside::Policy, least_budget::least_budget};
//!
//! let ms = 1_000_000;
//! let tasks = [Task::new(7 * ms, 50 * ms), Task::new(9 * ms, 75 * ms)];
//! let least = least_budget(&tasks, Policy::FixedPriority, 10 * ms, 1_000)?; // every 10 ms, on a grid of 1 us
//! assert_eq!(least, Some(3_500_000)); // 3.5 ms
//! # Ok::<(), timecell_analysis::Undecided>(())
//! ```

mod bandwidth;
mod bisection;
mod earliest_deadline;
mod fixed_priority;
mod needed;

pub use bandwidth::{Periods, Search, least_bandwidth};
pub use bisection::least_budget_by_bisection;
pub use needed::needed_budget;

use crate::budget::{Budget, STEPS};
use crate::inside::{Policy, in_range};
use crate::{Ns, Task, Undecided};

/// The grid of budgets that [`Search`] uses when none is given: 1 us, in ns.
pub const DEFAULT_GRID: Ns = 1_000;

/// The least budget Q in ns, a multiple of `grid` ns, with which the tasks meet their deadlines in the periodic model
/// of Q every `period` ns; `None` if no multiple up to the period suffices.
///
/// Exact: with the budget found the test of [`inside`](crate::inside) succeeds, and with any smaller multiple of the
/// grid it fails. Sets of constrained deadlines under fixed priorities are searched by the closed form of
/// [`needed_budget`]: starting from a budget that suffices, the response time with the next smaller one shows at which
/// instant a still smaller one would do, until the next smaller one fails. Other fixed-priority sets are bisected,
/// which is right because more budget is never less supply. Under EDF every instant with too little supply tells the
/// least budget that fixes it. (Model and tests: Shin and Lee, RTSS 2003 and TECS 2008; the search of budgets by
/// scheduling points: Lipari and Bini, JEC 2005.)
///
/// # Errors
/// [`Undecided`] when a test on the way is; a `period` or `grid` of 0 or beyond [`MAX_NS`](crate::MAX_NS) is not
/// covered.
///
/// ```
/// use timecell_analysis::{Task, inside::Policy, least_budget::least_budget};
///
/// // The example of Shin and Lee, in ns: (50, 7) and (75, 9) ms every 10 ms.
/// let tasks = [Task::new(7_000_000, 50_000_000), Task::new(9_000_000, 75_000_000)];
/// assert_eq!(least_budget(&tasks, Policy::Edf, 10_000_000, 100_000)?, Some(2_800_000));
/// assert_eq!(least_budget(&tasks, Policy::FixedPriority, 10_000_000, 1_000)?, Some(3_500_000));
/// # Ok::<(), timecell_analysis::Undecided>(())
/// ```
pub fn least_budget(
    tasks: &[Task],
    policy: Policy,
    period: Ns,
    grid: Ns,
) -> Result<Option<Ns>, Undecided> {
    within(tasks, policy, period, grid, &mut Budget::new(STEPS))
}

fn within(
    tasks: &[Task],
    policy: Policy,
    period: Ns,
    grid: Ns,
    steps: &mut Budget,
) -> Result<Option<Ns>, Undecided> {
    check(tasks, period, grid)?;
    match policy {
        Policy::FixedPriority => fixed_priority::least(tasks, period, grid, steps),
        Policy::Edf => earliest_deadline::least(tasks, period, grid, steps),
    }
}

fn check(tasks: &[Task], period: Ns, grid: Ns) -> Result<(), Undecided> {
    for (name, time) in [("period", period), ("grid of budgets", grid)] {
        if time == 0 || time > crate::MAX_NS {
            return Err(Undecided::NotCovered(format!(
                "the {name} of {time} ns is out of range"
            )));
        }
    }
    in_range(tasks)
}

/// The largest multiple of the grid within a period.
const fn most(period: Ns, grid: Ns) -> Ns {
    period / grid * grid
}

/// The least multiple of the grid that is no less; both at most [`MAX_NS`](crate::MAX_NS).
const fn on_grid(budget: Ns, grid: Ns) -> Ns {
    budget.div_ceil(grid) * grid
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MAX_NS;
    use crate::inside::{holds, holds_by};
    use crate::reservation::Periodic;

    /// Every budget on the grid, from the least.
    fn exhaustive(tasks: &[Task], policy: Policy, period: Ns, grid: Ns) -> Option<Ns> {
        (1..=period / grid)
            .map(|steps| steps * grid)
            .find(|&budget| {
                let supply = Periodic::new(budget, period).unwrap();
                holds(tasks, policy, &supply).unwrap()
            })
    }

    fn sets(longest: u64) -> impl Strategy<Value = Vec<Task>> {
        let periods =
            prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60, 120]);
        let task = (1..12u64, periods, 0..=longest, 0..6u64, 0..5u64).prop_map(
            |(wcet, period, deadline, jitter, blocking)| {
                Task::new(wcet, period)
                    .due((wcet + deadline).max(period / 2))
                    .jittered(jitter)
                    .blocked(blocking)
            },
        );
        prop::collection::vec(task, 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn equals_exhaustive_search(
            tasks in sets(120), period in 1..30u64, grid in 1..4u64, constrained in any::<bool>(),
        ) {
            let tasks: Vec<Task> = tasks
                .iter()
                .map(|task| if constrained { task.due(task.deadline.min(task.period)) } else { *task })
                .collect();
            for policy in [Policy::FixedPriority, Policy::Edf] {
                let least = exhaustive(&tasks, policy, period, grid);
                prop_assert_eq!(least_budget(&tasks, policy, period, grid), Ok(least), "{:?}", policy);
            }
            let least = exhaustive(&tasks, Policy::FixedPriority, period, grid);
            prop_assert_eq!(
                least_budget_by_bisection(&tasks, Policy::FixedPriority, period, grid),
                Ok(least)
            );
        }

        /// Times as they are in practice, where exhaustive search is too slow: the budget suffices, one step less not.
        #[test]
        fn suffices_and_is_least(
            raw in prop::collection::vec((1..2_000u64, 3_000..200_000u64, 50..=100u64, 0..2_000u64), 1..8),
            period in 500..20_000u64,
            grid in prop::sample::select(vec![1u64, 7, 1_000]),
            unit in prop::sample::select(vec![1u64, 1_000, 1_000_000]),
        ) {
            let tasks: Vec<Task> = raw
                .iter()
                .map(|&(wcet, period, due, jitter)| {
                    Task::new(wcet * unit, period * unit)
                        .due((period * unit / 100 * due).max(wcet * unit))
                        .jittered(jitter * unit)
                })
                .collect();
            let (period, grid) = (period * unit, grid * unit.min(1_000));
            for policy in [Policy::FixedPriority, Policy::Edf] {
                let holds = |budget: Ns| {
                    budget > 0
                        && holds(&tasks, policy, &Periodic::new(budget, period).unwrap()) == Ok(true)
                };
                match least_budget(&tasks, policy, period, grid) {
                    Ok(Some(least)) => {
                        prop_assert!(least.is_multiple_of(grid) && least <= period);
                        prop_assert!(holds(least), "{:?}: {} does not suffice", policy, least);
                        prop_assert!(!holds(least - grid), "{:?}: {} is not least", policy, least);
                    }
                    Ok(None) => prop_assert!(!holds(most(period, grid))),
                    // A budget that is a millionth of a millionth above the utilisation lets periods without a common
                    // divisor run on for longer than numbers are, and only so fine a grid has such budgets.
                    Err(reason) => prop_assert!(
                        policy == Policy::Edf && period / grid > 1_000_000,
                        "{:?}: {}", policy, reason
                    ),
                }
            }
        }

        #[test]
        fn no_input_panics(
            raw in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..5),
            shift in 4..60u32,
            period in any::<u64>(),
            grid in any::<u64>(),
            grid_shift in 0..64u32,
        ) {
            let tasks: Vec<Task> = raw
                .iter()
                .map(|&(wcet, period, deadline, jitter)| Task {
                    wcet: wcet >> shift >> 4, period: period >> shift, deadline: deadline >> shift,
                    jitter: jitter >> shift >> 3, blocking: 0,
                })
                .filter(|task| task.deadline <= task.period)
                .collect();
            for policy in [Policy::FixedPriority, Policy::Edf] {
                let mut steps = Budget::new(10_000);
                if let Ok(Some(least)) = within(&tasks, policy, period, grid >> grid_shift, &mut steps) {
                    let supply = Periodic::new(least, period).unwrap();
                    let mut steps = Budget::new(10_000);
                    prop_assert_ne!(holds_by(&tasks, policy, &supply, &mut steps), Ok(false));
                }
            }
        }
    }

    #[test]
    fn more_than_the_fast_path_holds() {
        let tasks: Vec<Task> = (0..100)
            .map(|i| Task::new(1_000, 1_000_000 + 10_000 * i))
            .collect();
        let fast = least_budget(&tasks, Policy::FixedPriority, 50_000, 1).unwrap();
        let plain = least_budget_by_bisection(&tasks, Policy::FixedPriority, 50_000, 1).unwrap();
        assert_eq!(fast, plain);
        assert!(fast.is_some());
    }

    #[test]
    fn edges() {
        let whole = [Task::new(10, 10)];
        for policy in [Policy::FixedPriority, Policy::Edf] {
            assert_eq!(least_budget(&whole, policy, 5, 1), Ok(Some(5)));
            assert_eq!(least_budget(&whole, policy, 5, 2), Ok(None));
            assert_eq!(least_budget(&whole, policy, 5, 6), Ok(None));
            assert_eq!(least_budget(&[], policy, 5, 2), Ok(Some(2)));
            assert_eq!(least_budget(&[Task::new(11, 10)], policy, 5, 1), Ok(None));
            assert!(least_budget(&whole, policy, 0, 1).is_err());
            assert!(least_budget(&whole, policy, 5, 0).is_err());
            assert!(least_budget(&whole, policy, MAX_NS + 1, 1).is_err());
            assert!(least_budget(&[Task::new(0, 10)], policy, 5, 1).is_err());
        }
    }
}
