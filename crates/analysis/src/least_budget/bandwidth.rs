//! The period at which a reservation needs the least bandwidth.

use super::{DEFAULT_GRID, most, within};
use crate::budget::{Budget, STEPS};
use crate::inside::{Policy, in_range};
use crate::reservation::Periodic;
use crate::{MAX_NS, Ns, Task, Undecided};

/// The periods that a search tries: from, to (inclusive) and step, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// The shortest period, ns.
    pub from: Ns,
    /// The longest period, ns.
    pub to: Ns,
    /// From one period to the next, ns.
    pub step: Ns,
}

impl Periods {
    /// One period only.
    ///
    /// ```
    /// use timecell_analysis::least_budget::Periods;
    ///
    /// assert_eq!(Periods::only(5_000_000).to, 5_000_000);
    /// ```
    pub const fn only(period: Ns) -> Periods {
        Periods {
            from: period,
            to: period,
            step: 1,
        }
    }

    /// From `from` to twice the longest period of the tasks. Constrained deadlines let no longer period do with less
    /// than three quarters of the cpu.
    ///
    /// ```
    /// use timecell_analysis::{Task, least_budget::Periods};
    ///
    /// let periods = Periods::for_tasks(&[Task::new(1, 40), Task::new(1, 60)], 10, 5);
    /// assert_eq!((periods.from, periods.to, periods.step), (10, 120, 5));
    /// ```
    pub fn for_tasks(tasks: &[Task], from: Ns, step: Ns) -> Periods {
        let longest = tasks.iter().map(|task| task.period).max().unwrap_or(0);
        Periods {
            from,
            to: longest.saturating_mul(2).clamp(from, MAX_NS.max(from)),
            step,
        }
    }
}

/// The periods to search for a reservation, and the cost of each of its switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Periods to try.
    pub periods: Periods,
    /// Budgets are multiples of this, ns.
    pub grid: Ns,
    /// Cpu time that each period costs besides the budget (switching to the cell and away), ns.
    pub overhead: Ns,
}

impl Search {
    /// These periods, budgets on [`DEFAULT_GRID`], no overhead.
    ///
    /// ```
    /// use timecell_analysis::least_budget::{Periods, Search};
    ///
    /// assert_eq!(Search::over(Periods::only(5_000_000)).grid, 1_000);
    /// ```
    pub const fn over(periods: Periods) -> Search {
        Search {
            periods,
            grid: DEFAULT_GRID,
            overhead: 0,
        }
    }
}

/// Periods that a search tries before it is undecided.
const MOST_PERIODS: u64 = 1 << 20;

/// The reservation of least bandwidth (Q + overhead)/P over a range of periods, with the least budget of each; `None`
/// if no period has one with Q + overhead <= P.
///
/// Exact on its grids: bandwidths are compared as fractions, and among equal ones the largest period wins, as it
/// switches least often. Periods that cannot win are left out: before its first ns of supply a task may wait twice the
/// gap P - Q, so Q is at least P - (D - J - B - C)/2 for every task. With periods from 10 ms in steps of 1 ms and
/// budgets on 0.5 ms this finds all six reservations of Abeni, "Real-time workloads in containers and virtual
/// machines" (2024), section 4.3.
///
/// # Errors
/// [`Undecided`] when a test on the way is, or after 2^20 periods that could not be left out; a step or grid of 0, or
/// a period out of range, is not covered.
///
/// ```
/// use timecell_analysis::{Task, inside::Policy, least_budget::{Periods, Search, least_bandwidth}};
///
/// // Times in us. τ3 and τ7 of the paper's table 4 need 2 ms every 11 ms.
/// let tasks = [Task::new(1_720, 90_000), Task::new(23_266, 164_000)];
/// let search = Search {
///     grid: 500,
///     ..Search::over(Periods::for_tasks(&tasks, 10_000, 1_000))
/// };
/// let least = least_bandwidth(&tasks, Policy::FixedPriority, &search)?.unwrap();
/// assert_eq!((least.budget(), least.period()), (2_000, 11_000));
/// # Ok::<(), timecell_analysis::Undecided>(())
/// ```
pub fn least_bandwidth(
    tasks: &[Task],
    policy: Policy,
    search: &Search,
) -> Result<Option<Periodic>, Undecided> {
    in_range(tasks)?;
    let Search {
        periods: Periods { from, to, step },
        grid,
        overhead,
    } = *search;
    if from == 0 || to > MAX_NS || step == 0 || grid == 0 || grid > MAX_NS {
        return Err(Undecided::NotCovered(
            "the periods and the grid of budgets must be 1 ns to 36 years".to_owned(),
        ));
    }
    let Some(slack) = longest_gap(tasks) else {
        return Ok(None);
    };
    let mut best: Option<Periodic> = None;
    let mut tried = 0;
    let mut steps = Budget::new(STEPS);
    // Shorter periods have no room for any budget besides the overhead.
    let short = overhead
        .saturating_add(1)
        .saturating_sub(from)
        .div_ceil(step);
    let mut next = short
        .checked_mul(step)
        .and_then(|skip| from.checked_add(skip));
    while let Some(period) = next.filter(|&period| period <= to) {
        next = period.checked_add(step);
        let floor = period.saturating_sub(slack).max(1);
        let room = period - overhead;
        let ceiling = best.map_or(room, |best| room.min(allowance(&best, overhead, period)));
        if floor > ceiling {
            // (P - slack + overhead)/P only grows from here on.
            if best.is_some() && slack >= overhead {
                break;
            }
        } else if most(ceiling, grid) >= floor
            && let Some(budget) = within(tasks, policy, period, grid, &mut steps)?
            && budget <= ceiling
        {
            best = Periodic::new(budget, period).ok();
        }
        tried += 1;
        if tried > MOST_PERIODS {
            return Err(Undecided::TooManySteps { steps: tried });
        }
    }
    Ok(best)
}

/// The longest gap P - Q that every task can wait for twice before its first ns, and still be done in time. `None` if
/// some task cannot be done in time even on a whole cpu.
fn longest_gap(tasks: &[Task]) -> Option<Ns> {
    tasks.iter().try_fold(MAX_NS, |least, task| {
        let spare = task
            .deadline
            .checked_sub(task.jitter)?
            .checked_sub(task.wcet)?;
        Some(least.min(spare / 2))
    })
}

/// The largest budget with which this period has no more bandwidth than the best so far.
fn allowance(best: &Periodic, overhead: Ns, period: Ns) -> Ns {
    let used = u128::from(best.budget()) + u128::from(overhead);
    let same = used * u128::from(period) / u128::from(best.period());
    // At most the period, as the best uses at most its own.
    (same as Ns).saturating_sub(overhead)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::least_budget::least_budget;

    /// All periods, compared as the definition says.
    fn exhaustive(tasks: &[Task], policy: Policy, search: &Search) -> Option<Periodic> {
        let mut best: Option<Periodic> = None;
        let periods = search.periods;
        for period in (periods.from..=periods.to).step_by(periods.step as usize) {
            let Ok(Some(budget)) = least_budget(tasks, policy, period, search.grid) else {
                continue;
            };
            let used = budget + search.overhead;
            if used <= period
                && best.is_none_or(|best| {
                    used * best.period() <= (best.budget() + search.overhead) * period
                })
            {
                best = Some(Periodic::new(budget, period).unwrap());
            }
        }
        best
    }

    /// One by one they would take a quarter of an hour.
    #[test]
    fn periods_within_the_overhead_are_passed_over_at_once() {
        let overhead = 1 << 40;
        let search = Search {
            grid: 1,
            overhead,
            ..Search::over(Periods {
                from: 1,
                to: overhead + 3,
                step: 1,
            })
        };
        let task = Task::new(1, 1 << 59);
        let least = least_bandwidth(&[task], Policy::FixedPriority, &search);
        assert_eq!(least, Ok(Periodic::new(1, overhead + 3).ok()));
        let beyond = Search {
            overhead: MAX_NS,
            ..search
        };
        let least = least_bandwidth(&[task], Policy::FixedPriority, &beyond);
        assert_eq!(least, Ok(None));
    }

    proptest! {
        #[test]
        fn equals_exhaustive_search(
            raw in prop::collection::vec((1..10u64, 8..60u64, 0..4u64), 0..4),
            from in 1..20u64, length in 0..80u64, step in 1..4u64, grid in 1..4u64, overhead in 0..4u64,
            edf in any::<bool>(),
        ) {
            let tasks: Vec<Task> = raw
                .iter()
                .map(|&(wcet, period, jitter)| Task::new(wcet, period).jittered(jitter))
                .collect();
            let policy = if edf { Policy::Edf } else { Policy::FixedPriority };
            let search = Search {
                periods: Periods { from, to: from + length, step },
                grid,
                overhead,
            };
            prop_assert_eq!(
                least_bandwidth(&tasks, policy, &search),
                Ok(exhaustive(&tasks, policy, &search))
            );
        }
    }

    #[test]
    fn long_ranges_end() {
        let tasks = [Task::new(1_000, MAX_NS / 4)];
        let search = Search::over(Periods::for_tasks(&tasks, 1_000_000, 1_000_000));
        // No period up to 2^59 ns can be left out.
        let few = Search {
            periods: Periods {
                to: 50_000_000,
                ..search.periods
            },
            ..search
        };
        assert!(
            least_bandwidth(&tasks, Policy::Edf, &few)
                .unwrap()
                .is_some()
        );
        let none = Search { grid: 0, ..search };
        assert!(least_bandwidth(&tasks, Policy::Edf, &none).is_err());
        let late = [Task::new(5, 10).jittered(6)];
        assert_eq!(least_bandwidth(&late, Policy::Edf, &few), Ok(None));
    }

    #[test]
    fn overhead_prefers_longer_periods() {
        let tasks = [Task::new(10_000, 100_000), Task::new(30_000, 300_000)];
        let periods = Periods {
            from: 1_000,
            to: 60_000,
            step: 1_000,
        };
        let search = Search {
            periods,
            grid: 1,
            overhead: 0,
        };
        let free = least_bandwidth(&tasks, Policy::Edf, &search)
            .unwrap()
            .unwrap();
        let search = Search {
            overhead: 200,
            ..search
        };
        let costly = least_bandwidth(&tasks, Policy::Edf, &search)
            .unwrap()
            .unwrap();
        assert!(free.period() < costly.period());
    }
}
