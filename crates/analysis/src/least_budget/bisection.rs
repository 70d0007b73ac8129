//! The least budget by plain bisection, to check the others by.

use super::{check, most};
use crate::budget::{Budget, STEPS};
use crate::inside::{Policy, holds_by};
use crate::reservation::Periodic;
use crate::{Ns, Task, Undecided};

/// [`least_budget`](super::least_budget) by plain bisection over the grid: the same answer, slower.
///
/// Right because the supply-bound function grows with the budget at every t, and every test here is a set of
/// conditions demand <= supply. It asks for as many tests as the number of budgets has binary digits. Fixed priorities
/// with deadlines beyond the period, which the closed form does not cover, are searched so; for the others the faster
/// search is compared with it.
///
/// # Errors
/// As [`least_budget`](super::least_budget).
///
/// ```
/// use timecell_analysis::{Task, inside::Policy, least_budget::least_budget_by_bisection};
///
/// let tasks = [Task::new(1, 10), Task::new(3, 20)];
/// assert_eq!(least_budget_by_bisection(&tasks, Policy::FixedPriority, 5, 1)?, Some(2));
/// # Ok::<(), timecell_analysis::Undecided>(())
/// ```
pub fn least_budget_by_bisection(
    tasks: &[Task],
    policy: Policy,
    period: Ns,
    grid: Ns,
) -> Result<Option<Ns>, Undecided> {
    check(tasks, period, grid)?;
    within(tasks, policy, period, grid, &mut Budget::new(STEPS))
}

pub(super) fn within(
    tasks: &[Task],
    policy: Policy,
    period: Ns,
    grid: Ns,
    steps: &mut Budget,
) -> Result<Option<Ns>, Undecided> {
    let mut fits = |budgets: Ns| match Periodic::new(budgets * grid, period) {
        Ok(supply) => holds_by(tasks, policy, &supply, steps),
        Err(_) => Ok(false),
    };
    let (mut short, mut long) = (0, most(period, grid) / grid);
    if long == 0 || !fits(long)? {
        return Ok(None);
    }
    while long - short > 1 {
        let middle = short.midpoint(long);
        if fits(middle)? {
            long = middle;
        } else {
            short = middle;
        }
    }
    Ok(Some(long * grid))
}
