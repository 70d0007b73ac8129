//! Whether some deadline is in excess, and which: the search alone, without bounds and reasons.

use std::cmp::Ordering;

use super::required;
use super::terms::Terms;
use crate::budget::Budget;
use crate::inside::in_range;
use crate::utilization::{compare_fractions_with_one, gcd};
use crate::{Ns, Supply, Task, Undecided};

/// An instant by which more is required than supplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) instant: Ns,
    pub(crate) demand: Ns,
}

/// No deadline beyond this is looked at.
const FARTHEST: Ns = 1 << 62;

/// Whether there is no excess. Where the load equals the rate it may know of one that [`excess`] cannot place.
pub(crate) fn holds(
    tasks: &[Task],
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<bool, Undecided> {
    in_range(tasks)?;
    let mut terms = Terms::new(tasks);
    if !terms.is_empty()
        && terms.compare_with_rate(supply).is_eq()
        && is_short_at_the_rate(tasks, supply)
    {
        return Ok(false);
    }
    search(&mut terms, supply, steps).map(|excess| excess.is_none())
}

/// Some deadline by which more is required than supplied; `None` when there is none.
pub(crate) fn excess(
    tasks: &[Task],
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Option<Excess>, Undecided> {
    in_range(tasks)?;
    search(&mut Terms::new(tasks), supply, steps)
}

/// [`excess`] of a set that is in range and has been made ready.
pub(crate) fn search(
    terms: &mut Terms,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Option<Excess>, Undecided> {
    let tasks = terms.tasks();
    if tasks.is_empty() {
        return Ok(None);
    }
    if terms.is_hopeless() {
        return Ok(Some(Excess {
            instant: 0,
            demand: required(tasks, 0),
        }));
    }
    let end = match terms.compare_with_rate(supply) {
        Ordering::Greater => return overload(tasks, supply, steps).map(Some),
        Ordering::Less => match terms.horizon(supply) {
            Some(end) => end,
            None => idle_instant(tasks, supply, steps)?,
        },
        Ordering::Equal => {
            // sbf(1) = 1 means supply at every instant, and then demand at rate 1 is supplied in time.
            let implicit = tasks
                .iter()
                .all(|task| task.deadline - task.jitter >= task.period && task.blocking == 0);
            if supply.sbf(1) == 1 && implicit {
                return Ok(None);
            }
            let end = repetition(tasks, supply)?;
            // The excess may be near the end only.
            let near_end = terms.walk(supply, 0..end, 64, steps)?;
            if near_end.is_some() {
                return Ok(near_end);
            }
            end
        }
    };
    // Where load is close to rate, `end` is far, and an excess mostly near; so windows of doubling length.
    let last = end.min(FARTHEST);
    let latest = tasks.iter().map(|task| task.deadline).max();
    let mut window = 0..latest.unwrap_or_default().saturating_add(1).min(last);
    loop {
        let excess = terms.walk(supply, window.clone(), u64::MAX, steps)?;
        if excess.is_some() {
            return Ok(excess);
        }
        if window.end == end {
            return Ok(None);
        }
        if window.end == last {
            return Err(Undecided::Overflow);
        }
        window = window.end..window.end.saturating_mul(2).min(last);
        terms.narrow(supply, window.start);
    }
}

/// Whether demand at exactly the rate is certain to be in excess: at a multiple of all periods and the cycle at least
/// the rate is demanded, since no job has longer than a period, and the supply there lags behind its rate as it does
/// at its first whole cycle.
fn is_short_at_the_rate(tasks: &[Task], supply: &impl Supply) -> bool {
    let tight = tasks
        .iter()
        .all(|task| task.deadline.saturating_sub(task.jitter) <= task.period);
    let settled = || {
        let cycle = supply.cycle()?;
        supply.inverse(1)?.div_ceil(cycle).checked_mul(cycle)
    };
    let (supplied, per) = supply.rate();
    tight
        && settled().is_some_and(|t| {
            u128::from(supply.sbf(t)) * u128::from(per) < u128::from(t) * u128::from(supplied)
        })
}

/// Utilisation against the long-run rate of the supply, exactly.
pub(super) fn compare_with_rate(tasks: &[Task], supply: &impl Supply) -> Ordering {
    let (supplied, per) = supply.rate();
    let spare = (per.saturating_sub(supplied), per);
    let loads = tasks.iter().map(|task| (task.wcet, task.period));
    compare_fractions_with_one(loads.chain([spare]))
}

/// With more load than rate, demand passes supply some time; doubling finds an instant.
fn overload(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Result<Excess, Undecided> {
    let mut instant = tasks
        .iter()
        .map(|task| task.deadline)
        .max()
        .unwrap_or_default();
    loop {
        steps.spend(tasks.len())?;
        let demand = required(tasks, instant);
        if demand > supply.sbf(instant) {
            return Ok(Excess { instant, demand });
        }
        instant = instant.checked_mul(2).ok_or(Undecided::Overflow)?;
    }
}

/// An instant t > 0 by which all work that can be released before t is done, under any schedule.
fn idle_instant(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Result<Ns, Undecided> {
    let longest = tasks.iter().map(|task| task.blocking).max().unwrap_or(0);
    let mut t = 1;
    loop {
        steps.spend(tasks.len())?;
        let work = released(tasks, t).saturating_add(longest);
        if supply.sbf(t) >= work {
            return Ok(t);
        }
        let next = supply.inverse(work).ok_or(Undecided::Overflow)?;
        // Any such instant will do, and doubling reaches one in a few steps.
        t = next.max(t.checked_mul(2).ok_or(Undecided::Overflow)?);
    }
}

/// Work that can be released in the first `t` ns of a busy window.
pub(super) fn released(tasks: &[Task], t: Ns) -> Ns {
    tasks.iter().fold(0, |sum: Ns, task| {
        let jobs = t.saturating_add(task.jitter).div_ceil(task.period);
        sum.saturating_add(jobs.saturating_mul(task.wcet))
    })
}

/// The instant from which demand and supply at equal rates only repeat themselves.
pub(super) fn repetition(tasks: &[Task], supply: &impl Supply) -> Result<Ns, Undecided> {
    let cycle = supply.cycle().ok_or_else(|| {
        Undecided::NotCovered(
            "the load equals the rate of a supply that is not known to repeat".to_owned(),
        )
    })?;
    let together = tasks
        .iter()
        .map(|task| task.period)
        .try_fold(cycle.max(1), |lcm: Ns, period| {
            (lcm / gcd(lcm, period)).checked_mul(period)
        });
    let settled = tasks
        .iter()
        .map(|task| task.deadline)
        .chain(supply.inverse(1))
        .max()
        .unwrap_or_default();
    together
        .and_then(|lcm| lcm.checked_add(settled))
        .and_then(|end| end.checked_add(1))
        .ok_or(Undecided::Overflow)
}

/// The last instant before `end` at which a job can be due. No task's jitter reaches its deadline.
pub(super) fn last_deadline(tasks: &[Task], end: Ns) -> Option<Ns> {
    tasks
        .iter()
        .filter_map(|task| {
            let first = task.deadline - task.jitter;
            let room = end.checked_sub(1)?.checked_sub(first)?;
            Some(first + room / task.period * task.period)
        })
        .max()
}
