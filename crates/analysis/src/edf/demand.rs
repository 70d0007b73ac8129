//! Demand under EDF: the work that is due by an instant.

use crate::{Ns, Part, Task};

/// Demand-bound function: the most work, in ns, of jobs that are both released and due in an interval of `t` ns,
/// blocking not included. Exact; saturates at the largest [`Ns`].
///
/// Baruah, Mok & Rosier (RTSS 1990), with release jitter as in Spuri (1996):
/// `dbf(t) = sum of max(0, floor((t + J - D) / T) + 1) C`. Tasks whose period is 0 count for nothing.
///
/// ```
/// use timecell_analysis::{Task, edf::demand};
///
/// let tasks = [Task::new(2, 5).due(4), Task::new(3, 9).due(7)];
/// assert_eq!([3, 4, 7, 9].map(|t| demand(&tasks, t)), [0, 2, 5, 7]);
/// ```
pub fn demand(tasks: &[Task], t: Ns) -> Ns {
    let sum = tasks
        .iter()
        .map(|task| u128::from(jobs(task, t)).saturating_mul(u128::from(task.wcet)))
        .fold(0u128, u128::saturating_add);
    Ns::try_from(sum).unwrap_or(Ns::MAX)
}

/// Jobs that can be released and due within `t`.
pub(super) fn jobs(task: &Task, t: Ns) -> u64 {
    if let Some(span) = t.checked_add(task.jitter)
        && task.period > 0
    {
        let rest = span.checked_sub(task.deadline);
        return rest.map_or(0, |rest| (rest / task.period).saturating_add(1));
    }
    let span = u128::from(t) + u128::from(task.jitter);
    match span.checked_sub(u128::from(task.deadline)) {
        Some(rest) if task.period > 0 => {
            Ns::try_from(rest / u128::from(task.period) + 1).unwrap_or(Ns::MAX)
        }
        _ => 0,
    }
}

/// Blocking that a job due within `t` may suffer.
pub(super) fn blocking(tasks: &[Task], t: Ns) -> Ns {
    tasks
        .iter()
        .filter(|task| u128::from(task.deadline) <= u128::from(t) + u128::from(task.jitter))
        .map(|task| task.blocking)
        .max()
        .unwrap_or(0)
}

/// The parts of the demand in `t`.
pub(super) fn parts(tasks: &[Task], t: Ns) -> Vec<Part> {
    let mut parts = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let jobs = jobs(task, t);
        if jobs > 0 {
            parts.push(Part {
                task: index,
                jobs,
                demand: jobs.saturating_mul(task.wcet),
            });
        }
    }
    parts
}
