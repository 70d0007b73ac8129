//! A task of a cell.

use crate::taskset::CellTask;

/// A task of a cell, and how to recognise its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Name and times, as the analysis takes them. `wcet_high` is set for every task of a cell of high criticality, and for no
    /// other.
    pub timing: CellTask,
    /// Name of its thread (`comm`, 1 to 15 bytes), which identifies it where each task is enforced separately; `None`: the
    /// task's name.
    pub thread: Option<String>,
    /// When its jobs are released.
    pub arrivals: Arrivals,
}

choice! {
    /// When the jobs of a task are released, which decides whether one can be missing.
    #[derive(Default)]
    pub enum Arrivals {
        /// One in every period: a skipped release is a missed deadline.
        #[default]
        Periodic = "periodic",
        /// Released by events, at least a period apart.
        Sporadic = "sporadic",
    }
}

impl Task {
    /// Its name; unique in its cell.
    pub fn name(&self) -> &str {
        &self.timing.name
    }
}
