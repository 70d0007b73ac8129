//! The least budget of a cell by any supply that a kernel gives for it: a search over periods and a grid of budgets. The
//! exact least budgets of textbook supplies are in [`least_budget`](crate::least_budget).

use crate::{Ns, Task};

/// Budgets are whole multiples of this, ns.
pub const BUDGET_GRID_NS: Ns = 100_000;
/// Periods are whole multiples of this, ns.
const PERIOD_STEP_NS: Ns = 1_000_000;
/// Periods that are tried, at most.
const PERIODS: Ns = 128;

/// The periods, ns, that are worth trying for a cell of these tasks, ascending: whole milliseconds up to twice the shortest
/// of their deadlines and periods, 128 at most. A longer one leaves a window of that deadline without any budget.
///
/// ```
/// use timecell_analysis::{Task, linux::reservation_periods};
///
/// let ms = 1_000_000;
/// assert_eq!(reservation_periods(&[Task::new(ms, 2 * ms)]), [ms, 2 * ms, 3 * ms, 4 * ms]);
/// assert!(reservation_periods(&[]).is_empty());
/// ```
pub fn reservation_periods(tasks: &[Task]) -> Vec<Ns> {
    let shortest = tasks
        .iter()
        .map(|task| task.deadline.min(task.period))
        .min();
    let Some(shortest) = shortest else {
        return Vec::new();
    };
    let most = (shortest.saturating_mul(2) / PERIOD_STEP_NS).max(1);
    let step = usize::try_from(most.div_ceil(PERIODS)).unwrap_or(usize::MAX);
    (1..=most)
        .step_by(step)
        .map(|period| period * PERIOD_STEP_NS)
        .collect()
}

/// The least budget up to `cap` ns with which a cell `holds`, on a grid of [`BUDGET_GRID_NS`] or the whole `period`; `None`:
/// not even with the largest. By bisection, so that a larger budget must hold wherever a smaller one does.
///
/// ```
/// use timecell_analysis::linux::least_budget;
///
/// let ms = 1_000_000;
/// assert_eq!(least_budget(10 * ms, 10 * ms, |budget| budget >= 2_340_000), Some(2_400_000));
/// assert_eq!(least_budget(10 * ms, 2 * ms, |budget| budget >= 2_340_000), None);
/// ```
pub fn least_budget(period: Ns, cap: Ns, holds: impl Fn(Ns) -> bool) -> Option<Ns> {
    let budget = |grains: Ns| (grains * BUDGET_GRID_NS).min(period);
    let (mut low, mut high) = match cap < period {
        true => (0, cap / BUDGET_GRID_NS),
        false => (0, period.div_ceil(BUDGET_GRID_NS)),
    };
    if high == 0 || !holds(budget(high)) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(budget(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(budget(high))
}

/// The (budget, period), ns, of least bandwidth with which a cell of these tasks `holds`, no more than the `share` (part,
/// whole) of a cpu; of equal ones that of the longest period, which is enforced most exactly.
///
/// ```
/// use timecell_analysis::{Task, inside::{Policy, holds}, linux::{TickSupply, least_reservation}};
///
/// let ms = 1_000_000;
/// let tasks = [Task::new(20 * ms, 200 * ms)];
/// let found = least_reservation(&tasks, (95, 100), |budget, period| {
///     TickSupply::rt_cgroup(budget, period, 4 * ms)
///         .is_ok_and(|supply| holds(&tasks, Policy::FixedPriority, &supply.cautious) == Ok(true))
/// });
/// let (budget, period) = found.unwrap();
/// assert!(budget * 200 > 20 * period); // more than it uses
/// ```
pub fn least_reservation(
    tasks: &[Task],
    share: (Ns, Ns),
    holds: impl Fn(Ns, Ns) -> bool,
) -> Option<(Ns, Ns)> {
    let mut best: Option<(Ns, Ns)> = None;
    for period in reservation_periods(tasks) {
        // A larger budget would take more than the best found already: most periods cost one question.
        let cap = part(period, share).min(best.map_or(Ns::MAX, |best| part(period, best)));
        let found = least_budget(period, cap, |budget| holds(budget, period));
        let found = found.map(|budget| (budget, period));
        best = match (found, best) {
            (Some(found), Some(best)) if !less_bandwidth(found, best) => Some(best),
            (found, best) => found.or(best),
        };
    }
    best
}

/// Whether a (budget, period) takes less bandwidth than another, or the same with a longer period.
///
/// ```
/// use timecell_analysis::linux::less_bandwidth;
///
/// assert!(less_bandwidth((1, 10), (2, 10)) && less_bandwidth((2, 20), (1, 10)));
/// assert!(!less_bandwidth((1, 10), (1, 10)));
/// ```
pub fn less_bandwidth(new: (Ns, Ns), old: (Ns, Ns)) -> bool {
    let [new_share, old_share] = [(new.0, old.1), (old.0, new.1)]
        .map(|(budget, period)| u128::from(budget) * u128::from(period));
    new_share < old_share || (new_share == old_share && new.1 > old.1)
}

/// A share of a period, rounded down.
fn part(period: Ns, (part, whole): (Ns, Ns)) -> Ns {
    let whole = u128::from(whole.max(1));
    Ns::try_from(u128::from(period) * u128::from(part) / whole).unwrap_or(Ns::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_budget_holds_and_one_grain_less_does_not(
            period in 1u64..1_000_000_000, cap in 0u64..1_000_000_000, needed in 1u64..1_000_000_000,
        ) {
            let holds = |budget: Ns| budget >= needed;
            match least_budget(period, cap, holds) {
                Some(budget) => {
                    prop_assert!(holds(budget) && budget <= period && budget <= cap.max(period.min(cap)));
                    prop_assert!(budget <= BUDGET_GRID_NS || !holds(budget - BUDGET_GRID_NS.min(budget - 1)) || budget == period);
                }
                None => prop_assert!(
                    cap.min(period) / BUDGET_GRID_NS * BUDGET_GRID_NS < needed,
                    "no budget of the grid holds"
                ),
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_found_is_the_least_of_all_periods_for_few_questions(
            period_ms in 1u64..60, part in 1u64..100, more_us in 0u64..5_000, whole in 100u64..120,
        ) {
            let tasks = [Task::new(1, period_ms * 1_000_000)];
            let needed = |period: Ns| period * part / 100 + more_us * 1_000;
            let of = |period: Ns| {
                let budget = least_budget(period, super::part(period, (95, whole)), |budget| budget >= needed(period))?;
                Some((budget, period))
            };
            let all = reservation_periods(&tasks).into_iter().filter_map(of);
            let least = all.reduce(|best, found| match less_bandwidth(found, best) {
                true => found,
                false => best,
            });
            let found = least_reservation(&tasks, (95, whole), |budget, period| budget >= needed(period));
            prop_assert_eq!(found, least);
        }
    }

    #[test]
    fn most_periods_cost_one_question() {
        let tasks = [Task::new(1, 64_000_000)];
        let asked = std::cell::Cell::new(0);
        let found = least_reservation(&tasks, (95, 100), |budget, period| {
            asked.set(asked.get() + 1);
            budget >= period / 10 + 1_000_000
        });
        assert_eq!(found, Some((13_800_000, 128_000_000)));
        // By the longest period of all, so that each is better than those before.
        let of_falling = asked.replace(0);
        least_reservation(&tasks, (95, 100), |budget, period| {
            asked.set(asked.get() + 1);
            budget >= period / 10 + period / 50
        });
        assert!(
            asked.get() < of_falling / 2,
            "{} of {of_falling}",
            asked.get()
        );
    }

    #[test]
    fn of_equal_bandwidths_the_longest_period_is_taken() {
        let tasks = [Task::new(1, 20_000_000)];
        // A tenth of any period.
        let found = least_reservation(&tasks, (1, 1), |budget, period| budget * 10 >= period);
        assert_eq!(found, Some((4_000_000, 40_000_000)));
        assert_eq!(
            least_reservation(&tasks, (5, 100), |budget, period| budget * 10 >= period),
            None
        );
        assert_eq!(least_reservation(&[], (1, 1), |_, _| true), None);
    }
}
