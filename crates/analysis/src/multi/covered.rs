//! The task sets that each global test covers.

use crate::{Ns, Part, Task, TaskError, Undecided, Verdict, Witness};

/// The parameters a global test takes besides wcet, period and deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extras {
    /// Release jitter and blocking.
    JitterAndBlocking,
    /// Neither.
    None,
}

/// Refuses sets that no global test of this folder covers, so that each of them may assume 1 <= C <= D <= T <= 2^60.
pub(super) fn covered(tasks: &[Task], cpus: u32, extras: Extras) -> Result<(), Verdict> {
    for (index, task) in tasks.iter().enumerate() {
        match task.check() {
            Ok(()) => {}
            Err(TaskError::BeyondDeadline { wcet, deadline }) => {
                return Err(alone(index, wcet, deadline, deadline));
            }
            Err(error) => {
                return Err(not_covered(format!("task {index}: {error}")));
            }
        }
    }
    for (index, task) in tasks.iter().enumerate() {
        if !task.is_constrained() {
            return Err(not_covered(format!(
                "task {index} has a deadline beyond its period; the global tests cover only constrained deadlines"
            )));
        }
        if extras == Extras::None && (task.jitter > 0 || task.blocking > 0) {
            return Err(not_covered(format!(
                "task {index} has jitter or blocking, which this test does not cover; the BCL tests do"
            )));
        }
    }
    match tasks.first() {
        Some(task) if cpus == 0 => Err(alone(0, task.wcet, task.deadline, 0)),
        _ => Ok(()),
    }
}

fn not_covered(why: String) -> Verdict {
    Verdict::Undecided(Undecided::NotCovered(why))
}

fn alone(task: usize, wcet: Ns, instant: Ns, supply: Ns) -> Verdict {
    Verdict::Unschedulable(Witness {
        task,
        instant,
        demand: wcet,
        supply,
        parts: vec![Part {
            task,
            jobs: 1,
            demand: wcet,
        }],
    })
}

/// A total as nanoseconds for a witness; more than the range reads as the end of the range.
pub(super) fn clamp(total: u128) -> Ns {
    Ns::try_from(total).unwrap_or(Ns::MAX)
}
