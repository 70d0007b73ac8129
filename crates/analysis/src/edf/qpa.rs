//! Processor demand analysis: the exact EDF test, and the earliest violation where it fails.

use std::cmp::Ordering;

use crate::budget::{Budget, STEPS};
use crate::fp::legal;
use crate::{Ns, Task, Undecided, Verdict, Witness, utilization};

use super::deadlines::Deadlines;
use super::demand::{blocking, demand, parts};
use super::fast::look;
use super::horizon::horizon;

/// Points looked at, times tasks, to show the earliest violation rather than any.
const EARLIEST: u64 = 1 << 20;

/// Whether every deadline of a set holds under EDF on a dedicated cpu. Exact for sporadic and periodic tasks with release
/// jitter and deadlines of any length; with blocking sufficient (see below), and exact if all tasks have the same.
///
/// The processor demand criterion of Baruah, Mok & Rosier (RTSS 1990), decided by QPA (Zhang & Burns, IEEE TC 2009): from
/// the end of a horizon backwards, `t := dbf(t)` while that is less than `t`. With jitter D is D - J. With blocking
/// (Baker 1991) the demand includes the largest blocking of a task that can be due by then: a lock's holder due earlier
/// counts although it might not block. The utilisation is compared with 1 exactly; the horizon is the shorter of La,
/// rounded up, and the busy period, or the hyperperiod at a utilisation of exactly 1.
///
/// The witness of a refusal: more is `demand`ed in an interval of `instant` ns than the cpu can do; the difference
/// between `demand` and the parts is blocking; `task` is one that is due at the instant. The earliest such instant unless
/// that takes long to find.
///
/// Times out of range ([`Task::check`]) or a search of more than [`STEPS`](crate::STEPS) are [`Undecided`]; so is a
/// utilisation above 1 by so little that no instant before 2^62 ns shows it.
///
/// ```
/// use timecell_analysis::{Task, Verdict, edf};
///
/// let tasks = [Task::new(331, 15_000).due(2_688), Task::new(3_654, 77_000).due(3_849)];
/// let Verdict::Unschedulable(witness) = edf::verdict(&tasks) else { panic!() };
/// assert_eq!((witness.instant, witness.demand), (3_849, 3_985));
/// ```
pub fn verdict(tasks: &[Task]) -> Verdict {
    verdict_within(tasks, STEPS)
}

/// [`verdict`] with another limit on the steps.
///
/// ```
/// use timecell_analysis::{Task, Undecided, Verdict, edf};
///
/// let tasks = [Task::new(999_999_999, 1_000_000_000), Task::new(1, 1_000_000_001).due(1_000_000_000)];
/// let verdict = edf::verdict_within(&tasks, 3);
/// assert_eq!(verdict, Verdict::Undecided(Undecided::TooManySteps { steps: 3 }));
/// ```
pub fn verdict_within(tasks: &[Task], steps: u64) -> Verdict {
    let found = match look(tasks) {
        Some(found) => Ok(found),
        None => violation(tasks, &mut Budget::new(steps)),
    };
    match found {
        Ok(None) => Verdict::Schedulable,
        Ok(Some(instant)) => {
            let (instant, due) = earliest(tasks, instant);
            Verdict::Unschedulable(witness(tasks, instant, due))
        }
        Err(why) => Verdict::Undecided(why),
    }
}

/// An instant by which more is demanded than can be done, or none.
fn violation(tasks: &[Task], budget: &mut Budget) -> Result<Option<Ns>, Undecided> {
    for task in tasks {
        legal(task)?;
    }
    // A job that is due before it may be released, or too short a time after.
    let hopeless = tasks
        .iter()
        .filter(|task| task.deadline < task.jitter.saturating_add(task.wcet))
        .map(|task| task.deadline.saturating_sub(task.jitter))
        .min();
    if hopeless.is_some() {
        return Ok(hopeless);
    }
    let first = tasks.iter().map(|task| task.deadline - task.jitter).min();
    let Some(first) = first else {
        return Ok(None);
    };
    let load = utilization::compare_with_one(tasks);
    if load == Ordering::Greater {
        return overload(tasks).map(Some).ok_or(Undecided::Overflow);
    }
    // Then demand stays below t times the utilisation.
    if tasks
        .iter()
        .all(|task| task.deadline - task.jitter >= task.period && task.blocking == 0)
    {
        return Ok(None);
    }
    let mut instant = horizon(tasks, load, budget)?.saturating_sub(1);
    while instant >= first {
        budget.spend(tasks.len())?;
        let due = due_by(tasks, instant);
        if due > instant {
            return Ok(Some(instant));
        }
        if due <= first {
            break;
        }
        // Between two deadlines nothing changes: the instant before is as good as the last deadline before.
        instant = if due < instant { due } else { instant - 1 };
    }
    Ok(None)
}

fn due_by(tasks: &[Task], t: Ns) -> Ns {
    demand(tasks, t).saturating_add(blocking(tasks, t))
}

/// At a utilisation above 1 some instant shows it; look at ever longer ones.
fn overload(tasks: &[Task]) -> Option<Ns> {
    (0..=62).map(|bit| 1 << bit).find(|&t| due_by(tasks, t) > t)
}

/// The earliest violation if it can be found soon, else the last deadline up to the given one; and the work due by it.
fn earliest(tasks: &[Task], violation: Ns) -> (Ns, Ns) {
    // Jobs that are due before they may be released are all late at once.
    if tasks.iter().any(|task| task.jitter > task.deadline) {
        return (0, due_by(tasks, 0));
    }
    let points = EARLIEST / (tasks.len() as u64).max(1);
    Deadlines::of(tasks)
        .take(usize::try_from(points).unwrap_or(usize::MAX))
        .take_while(|&(t, _)| t <= violation)
        .find(|&(t, due)| due > t)
        .unwrap_or_else(|| {
            let last = last_due(tasks, violation).unwrap_or(violation);
            (last, due_by(tasks, last))
        })
}

/// The last instant up to `t` at which a job can be due.
fn last_due(tasks: &[Task], t: Ns) -> Option<Ns> {
    tasks
        .iter()
        .filter_map(|task| {
            let first = task.deadline.saturating_sub(task.jitter);
            let past = t.checked_sub(first)?;
            Some(t - past % task.period)
        })
        .max()
}

fn witness(tasks: &[Task], instant: Ns, due: Ns) -> Witness {
    let due_now = |task: &Task| {
        let first = task.deadline.saturating_sub(task.jitter);
        instant
            .checked_sub(first)
            .is_some_and(|past| past % task.period == 0)
    };
    Witness {
        task: tasks.iter().position(due_now).unwrap_or(0),
        instant,
        demand: due,
        supply: instant,
        parts: parts(tasks, instant),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edf::decide;

    proptest! {
        #[test]
        fn the_fast_path_says_the_same(
            tasks in prop::collection::vec(
                (1u64..1 << 28, 0u32..4, 0u64..100, 0u64..100).prop_map(|(wcet, bits, early, jitter)| {
                    let period = (wcet << 2) + ((wcet * 13) >> bits);
                    Task::new(wcet, period)
                        .due(period - period * early / 140)
                        .jittered(wcet * jitter / 200)
                        .blocked(77)
                }),
                1..9,
            ),
        ) {
            if let Some(answer) = decide(&tasks) {
                let mut budget = Budget::new(100_000);
                match violation(&tasks, &mut budget) {
                    Ok(found) => prop_assert_eq!(answer, found.is_none()),
                    Err(why) => prop_assert_ne!(why, Undecided::Overflow),
                }
            }
        }
    }

    #[test]
    fn jitter_beyond_the_deadline_counts_every_job_that_is_late() {
        let late = Task::new(1, 2).due(1).jittered(3);
        let Verdict::Unschedulable(witness) = verdict(&[late]) else {
            panic!("not refused");
        };
        // Of three releases in 3 ns two are due by then.
        assert_eq!((witness.instant, witness.demand), (0, 2));
        assert_eq!(witness.parts[0].demand, 2);
    }

    #[test]
    fn most_sets_take_the_fast_path() {
        let tasks = [
            Task::new(300_000, 1_000_000).due(700_000),
            Task::new(30_000_000, 100_000_000).due(60_000_000),
            Task::new(200_000_000, 1_000_000_000).jittered(1_000),
        ];
        assert_eq!(decide(&tasks), Some(true));
    }
}
