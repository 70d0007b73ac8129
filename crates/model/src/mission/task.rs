use crate::taskset::CellTask;

/// A task of a cell, and how to recognise its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Name and times, as the analysis takes them. `wcet_high` is there for every task of a cell of high criticality, and for no
    /// other.
    pub timing: CellTask,
    /// Name of its thread (`comm`, 1 to 15 bytes), by which it is found where each task is held by itself; `None`: its own.
    pub thread: Option<String>,
}

impl Task {
    /// Its name; unique in its cell.
    pub fn name(&self) -> &str {
        &self.timing.name
    }
}
