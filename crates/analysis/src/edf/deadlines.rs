//! Walking the deadlines of a task set in order.

use crate::{Ns, Task};

/// The instants at which jobs can be due, in order, and the work due by each, blocking included. No task's jitter reaches
/// its deadline, and no period is 0.
pub(crate) struct Deadlines<'a> {
    tasks: &'a [Task],
    next: Vec<Ns>,
    demand: Ns,
    held: Ns,
}

impl Deadlines<'_> {
    pub(crate) fn of(tasks: &[Task]) -> Deadlines<'_> {
        Deadlines {
            tasks,
            next: tasks
                .iter()
                .map(|task| task.deadline.saturating_sub(task.jitter))
                .collect(),
            demand: 0,
            held: 0,
        }
    }
}

impl Iterator for Deadlines<'_> {
    type Item = (Ns, Ns);

    /// Ends before an instant that is out of range.
    #[inline]
    fn next(&mut self) -> Option<(Ns, Ns)> {
        let now = self.next.iter().copied().min()?;
        if now == Ns::MAX {
            return None;
        }
        for (next, task) in self.next.iter_mut().zip(self.tasks) {
            if *next == now {
                self.demand = self.demand.saturating_add(task.wcet);
                self.held = self.held.max(task.blocking);
                *next = now.saturating_add(task.period);
            }
        }
        Some((now, self.demand.saturating_add(self.held)))
    }
}
