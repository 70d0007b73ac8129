//! Response times under EDF.

use std::cmp::Ordering;

use super::excess::{compare_with_rate, released, repetition};
use super::{blocking, jobs};
use crate::budget::Budget;
use crate::{Ns, Supply, Task, Undecided};

/// The longest time for which there can be work without pause: the least t > 0 with all released work supplied.
pub(crate) fn busy_window(
    tasks: &[Task],
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Ns, Undecided> {
    let longest = tasks.iter().map(|task| task.blocking).max().unwrap_or(0);
    // At a load of the rate it ends within one repetition or never.
    let end = match compare_with_rate(tasks, supply) {
        Ordering::Less => Ns::MAX,
        Ordering::Equal => repetition(tasks, supply)?,
        Ordering::Greater => return Err(Undecided::Overflow),
    };
    let mut t = 1;
    while t <= end {
        steps.spend(tasks.len())?;
        let work = released(tasks, t).saturating_add(longest);
        let next = supply.inverse(work).ok_or(Undecided::Overflow)?;
        if next <= t {
            return Ok(t);
        }
        t = next;
    }
    Err(Undecided::Overflow)
}

/// The bound of one task, `None` if it exceeds the deadline: the largest over all places of its job in the busy window
/// that can be the worst, which are those where its deadline meets that of another job.
pub(crate) fn response(
    tasks: &[Task],
    task: &Task,
    window: Ns,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Option<Ns>, Undecided> {
    let mut worst = task
        .wcet
        .checked_add(task.jitter)
        .ok_or(Undecided::Overflow)?;
    // `place` is the job's arrival, counted from the earliest that still lets it be released in the window.
    let end = window.checked_add(task.jitter).ok_or(Undecided::Overflow)?;
    for other in tasks {
        let aligned =
            i128::from(other.deadline) - i128::from(other.jitter) - i128::from(task.deadline)
                + i128::from(task.jitter);
        let period = i128::from(other.period);
        let first = if aligned < 0 {
            aligned.rem_euclid(period)
        } else {
            aligned
        };
        let mut place = Ns::try_from(first).map_err(|_| Undecided::Overflow)?;
        while place < end {
            let finish = finish(tasks, task, place, supply, steps)?;
            let late = finish.checked_add(task.jitter).ok_or(Undecided::Overflow)?;
            worst = worst.max(late.saturating_sub(place));
            // More than the deadline is no bound, however much.
            if worst > task.deadline {
                return Ok(None);
            }
            place = place.checked_add(other.period).ok_or(Undecided::Overflow)?;
        }
    }
    Ok((worst <= task.deadline).then_some(worst))
}

/// When the job at `place` is done at the latest, counted from the start of its busy window.
fn finish(
    tasks: &[Task],
    task: &Task,
    place: Ns,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Ns, Undecided> {
    let due = place
        .checked_add(task.deadline)
        .ok_or(Undecided::Overflow)?
        .saturating_sub(task.jitter);
    let held = blocking(tasks, due);
    let own = place / task.period + 1;
    let mut t: Ns = 1;
    loop {
        steps.spend(2 * tasks.len())?;
        let mut demand = held;
        for other in tasks {
            let count = if std::ptr::eq(other, task) {
                own
            } else {
                let released = t.saturating_add(other.jitter).div_ceil(other.period);
                released.min(jobs(other, due))
            };
            demand = demand.saturating_add(count.saturating_mul(other.wcet));
        }
        let next = supply.inverse(demand).ok_or(Undecided::Overflow)?;
        if next <= t {
            return Ok(t);
        }
        t = next;
    }
}
