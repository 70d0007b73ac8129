//! Task sets: which tasks run in which cells, and the reservation of each cell. The types are here, next to
//! reading and writing the TOML file. Whether the deadlines hold is decided in crate `analysis`.

mod fault;
mod keys;
mod policy;
mod read;
mod server;
mod write;

pub use fault::Fault;
pub use policy::{Order, Policy};
#[cfg(test)]
pub(crate) use read::FORMAT;
pub use server::{CellServer, Refill, ServerKind};

use crate::{Duration, Enforcer};

/// Version of the task-set file that this timecell reads and writes.
pub const SCHEMA: i64 = 1;

/// Bounds on the contents of a task set.
pub struct Limits;

impl Limits {
    /// Tasks in one file, over all cells.
    pub const TASKS: usize = 100_000;
    /// Cells in one file.
    pub const CELLS: usize = 10_000;
    /// Cpus of a machine.
    pub const CPUS: std::ops::RangeInclusive<i64> = 1..=4_096;
    /// The longest time of a task or a reservation in ns: 2^60, 36 years, the range of exact analysis.
    pub const LONGEST_NS: i64 = crate::file::LONGEST_NS;
}

/// Cells and their tasks, every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSet {
    /// Cpus that the cells share; `None`: the file does not say, so whether the cells fit together is not checked.
    pub cpus: Option<u32>,
    /// How the refills of servers are aligned.
    pub refill: Refill,
    /// Mechanism that would hold the cells to their reservations; `None`: the file does not say.
    pub enforcer: Option<Enforcer>,
    /// The cells, in the order of the file.
    pub cells: Vec<TaskCell>,
}

/// One cell: tasks that one scheduler schedules within one reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCell {
    /// Name; unique in the set.
    pub name: String,
    /// How its tasks are scheduled.
    pub policy: Policy,
    /// The cpu time that the cell is guaranteed; `None`: a whole cpu.
    pub reservation: Option<Reservation>,
    /// The server that keeps the reservation among others on its cpu; `None`: its supply does not depend on the other
    /// cells.
    pub server: Option<CellServer>,
    /// Its tasks, in the order of the file.
    pub tasks: Vec<CellTask>,
}

/// Budget Q in every period P, supplied at the latest by `deadline` after the period begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Cpu time in each period; for a cell on several cpus, the sum over them.
    pub budget: Duration,
    /// Time between refills.
    pub period: Duration,
    /// Time after a refill by which the budget has been supplied; at most the period.
    pub deadline: Duration,
}

/// One task of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellTask {
    /// Name; unique in its cell.
    pub name: String,
    /// Worst-case execution time.
    pub wcet: Duration,
    /// Minimum time between arrivals.
    pub period: Duration,
    /// Relative deadline, counted from the arrival.
    pub deadline: Duration,
    /// Release jitter.
    pub jitter: Duration,
    /// The longest time for which less urgent work can delay a job.
    pub blocking: Duration,
    /// Static priority; a larger number is more urgent; used with [`Order::Priority`].
    pub priority: Option<i64>,
    /// Execution time in high mode of a task of high criticality, at least `wcet`; `None`: of low criticality.
    pub wcet_high: Option<Duration>,
}

impl CellTask {
    /// A task with an implicit deadline, without jitter, blocking and priority.
    pub fn new(name: impl Into<String>, wcet: Duration, period: Duration) -> CellTask {
        CellTask {
            name: name.into(),
            wcet,
            period,
            deadline: period,
            jitter: Duration::from_ns(0),
            blocking: Duration::from_ns(0),
            priority: None,
            wcet_high: None,
        }
    }
}

impl TaskCell {
    /// Indices of the tasks, the most urgent first; the order of the file under EDF (above priorities, if any), and by deadline if the order has yet to
    /// be found.
    pub fn by_urgency(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        let Some(by) = self.policy.order() else {
            if self.policy == Policy::EdfOverFixed {
                let rank =
                    |task: &CellTask| (task.priority.is_some(), std::cmp::Reverse(task.priority));
                order.sort_by_key(|&i| rank(&self.tasks[i]));
            }
            return order;
        };
        // The sort is stable, so ties stay in the order of the file.
        match by {
            Order::Listed => {}
            Order::Rate => order.sort_by_key(|&i| self.tasks[i].period),
            Order::Deadline | Order::Audsley => {
                order.sort_by_key(|&i| self.tasks[i].deadline);
            }
            Order::Priority => order.sort_by_key(|&i| std::cmp::Reverse(self.tasks[i].priority)),
        }
        order
    }
}

impl TaskSet {
    /// Number of tasks over all cells.
    pub fn tasks(&self) -> usize {
        self.cells.iter().map(|cell| cell.tasks.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_follows_the_order() {
        let task = |wcet, period, deadline, priority| CellTask {
            deadline: Duration::from_ns(deadline),
            priority: Some(priority),
            ..CellTask::new("t", Duration::from_ns(wcet), Duration::from_ns(period))
        };
        let mut cell = TaskCell {
            name: "c".to_owned(),
            policy: Policy::Edf,
            reservation: None,
            server: None,
            tasks: vec![task(1, 30, 10, 1), task(1, 20, 20, 3), task(1, 20, 5, 2)],
        };
        for (policy, order) in [
            (Policy::Edf, [0, 1, 2]),
            (Policy::Fixed(Order::Listed), [0, 1, 2]),
            (Policy::Fixed(Order::Rate), [1, 2, 0]),
            (Policy::Fixed(Order::Deadline), [2, 0, 1]),
            (Policy::Fixed(Order::Priority), [1, 2, 0]),
        ] {
            cell.policy = policy;
            assert_eq!(cell.by_urgency(), order, "{policy:?}");
        }
    }
}
