//! The least budget for EDF inside a reservation.

use std::cmp::Ordering;

use super::{most, needed_budget, on_grid};
use crate::budget::Budget;
use crate::inside::{Terms, search};
use crate::reservation::Periodic;
use crate::utilization::compare_fractions_with_one;
use crate::{Ns, Task, Undecided};

/// From the least budget whose rate bears the load upwards: each excess is fixed by the least budget that fixes it,
/// so no budget that suffices is passed over.
pub(super) fn least(
    tasks: &[Task],
    period: Ns,
    grid: Ns,
    steps: &mut Budget,
) -> Result<Option<Ns>, Undecided> {
    let most = most(period, grid);
    let Some(mut budget) = least_rate(tasks, period, grid) else {
        return Ok(None);
    };
    let mut terms = Terms::new(tasks);
    loop {
        let Ok(supply) = Periodic::new(budget, period) else {
            return Ok(None);
        };
        let Some(excess) = search(&mut terms, &supply, steps)? else {
            return Ok(Some(budget));
        };
        match needed_budget(period, excess.instant, excess.demand) {
            Some(needed) if needed <= most => {
                // An excess proves that this budget is too small, so the next is on the grid above it.
                budget = on_grid(needed, grid).max(budget + grid);
                if budget > most {
                    return Ok(None);
                }
            }
            _ => return Ok(None),
        }
    }
}

/// The least budget on the grid whose rate bears the load, or exceeds it where it must.
///
/// If the rate equals the load, and no job has more than its task's period between release and deadline, then demand
/// at the end of a hyperperiod is all the rate gives, and a reservation below the whole cpu gives less.
fn least_rate(tasks: &[Task], period: Ns, grid: Ns) -> Option<Ns> {
    let tight = tasks
        .iter()
        .all(|task| task.deadline.saturating_sub(task.jitter) <= task.period);
    let bears = |steps: Ns| {
        let spare = (period - steps * grid, period);
        let loads = tasks.iter().map(|task| (task.wcet, task.period));
        match compare_fractions_with_one(loads.chain([spare])) {
            Ordering::Less => true,
            Ordering::Equal => !tight || steps * grid == period,
            Ordering::Greater => false,
        }
    };
    // Rounded down term by term this stays below the load by less than 1 ns for each task.
    let floor = tasks.iter().fold(0u128, |sum, task| {
        sum.saturating_add(u128::from(task.wcet) * u128::from(period) / u128::from(task.period))
    });
    let most = period / grid;
    let mut short = Ns::try_from(floor / u128::from(grid))
        .ok()?
        .saturating_sub(1);
    let mut long = short.saturating_add(4 + tasks.len() as Ns / grid).min(most);
    if long <= short || !bears(long) {
        return None;
    }
    while long - short > 1 {
        let middle = short.midpoint(long);
        if bears(middle) {
            long = middle;
        } else {
            short = middle;
        }
    }
    Some(long * grid)
}
