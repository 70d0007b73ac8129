//! How far an exact EDF test has to look.

use std::cmp::Ordering;

use crate::budget::Budget;
use crate::{Ns, Task, Undecided, utilization};

/// No horizon is longer than this: instants beyond are out of range.
const FARTHEST: u128 = 1 << 62;

/// A horizon so long that it is worth computing the busy period to see whether that ends before.
const LONG: u128 = 64;

/// An instant such that a deadline that can be missed can be missed before it. `load` is at most 1.
pub(super) fn horizon(
    tasks: &[Task],
    load: Ordering,
    budget: &mut Budget,
) -> Result<Ns, Undecided> {
    let by_load = if load == Ordering::Less {
        by_utilization(tasks)
    } else {
        by_hyperperiod(tasks)
    };
    let longest = tasks.iter().map(|task| task.period).max().unwrap_or(0);
    let short = by_load.filter(|&instant| u128::from(instant) <= LONG * u128::from(longest));
    if let Some(instant) = short {
        return Ok(instant);
    }
    // Half of the steps: the other half may still go the long way.
    let mut part = budget.part(u64::MAX);
    let busy = busy_period(tasks, load, by_load, &mut part);
    budget.join(part);
    match (by_load, busy) {
        (Some(by_load), Ok(busy)) => Ok(by_load.min(busy)),
        (Some(instant), Err(_)) | (None, Ok(instant)) => Ok(instant),
        (None, Err(why)) => Err(why),
    }
}

/// Zhang & Burns (2009), La, with jitter and blocking: a violation `dbf(t) + B > t` implies
/// `t < (B + sum of max(0, T - D + J) U) / (1 - U)`. Rounded up; `None` if it is out of range, or if U is so near 1 that
/// 1 - U vanishes in 64 bits.
fn by_utilization(tasks: &[Task]) -> Option<Ns> {
    let blocking = tasks.iter().map(|task| task.blocking).max().unwrap_or(0);
    let mut load = 0u128;
    let mut excess = u128::from(blocking);
    for task in tasks {
        let share = (u128::from(task.wcet) << 64).div_ceil(u128::from(task.period));
        load += share;
        let early = (u128::from(task.period) + u128::from(task.jitter))
            .saturating_sub(u128::from(task.deadline));
        // Both factors fit: `early` is at most 2^61 and the share, of a set whose load is below 1, 2^64.
        excess += (early * share).div_ceil(1 << 64);
    }
    let idle = (1u128 << 64).checked_sub(load).filter(|&idle| idle > 0)?;
    if excess >> 63 > 0 {
        return None;
    }
    let instant = (excess << 64).div_ceil(idle);
    (instant <= FARTHEST).then_some(instant as Ns)
}

/// At full load demand repeats: `dbf(t + H) = dbf(t) + H` from the longest deadline on.
fn by_hyperperiod(tasks: &[Task]) -> Option<Ns> {
    let longest = tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
    let instant = u128::from(utilization::hyperperiod(tasks)?) + u128::from(longest) + 1;
    (instant <= FARTHEST).then_some(instant as Ns)
}

/// Ripoll, Crespo & Mok (1996), Spuri (1996), Lb: the least `L = B + sum of ceil((L + J) / T) C`, or an instant beyond
/// `enough`. A deadline missed after it could be missed before: by sub-additivity of the demand.
fn busy_period(
    tasks: &[Task],
    load: Ordering,
    enough: Option<Ns>,
    budget: &mut Budget,
) -> Result<Ns, Undecided> {
    let blocking = tasks.iter().map(|task| task.blocking).max().unwrap_or(0);
    if load == Ordering::Equal && (blocking > 0 || tasks.iter().any(|task| task.jitter > 0)) {
        // It has no end.
        return Err(Undecided::Overflow);
    }
    let enough = enough.map_or(FARTHEST, u128::from);
    let mut busy = 1u128;
    loop {
        budget.spend(tasks.len())?;
        let mut sum = u128::from(blocking);
        for task in tasks {
            let span = (busy + u128::from(task.jitter)) as Ns;
            sum += u128::from(span.div_ceil(task.period)) * u128::from(task.wcet);
        }
        if sum <= busy {
            return Ok(busy as Ns);
        }
        if sum > enough {
            return if enough == FARTHEST {
                Err(Undecided::Overflow)
            } else {
                Ok(enough as Ns)
            };
        }
        busy = sum;
    }
}
