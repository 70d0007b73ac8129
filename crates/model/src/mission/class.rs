//! The scheduling classes of cells.

/// Scheduling class of a cell's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CellClass {
    /// SCHED_FIFO, with priorities of the cell's band.
    Fifo,
    /// SCHED_DEADLINE, with a runtime for each task.
    Deadline,
    /// SCHED_OTHER: best effort, nothing is guaranteed.
    Other,
}

impl CellClass {
    /// All classes, with their names in files.
    pub const NAMES: [(&'static str, CellClass); 3] = [
        ("fifo", CellClass::Fifo),
        ("deadline", CellClass::Deadline),
        ("other", CellClass::Other),
    ];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            CellClass::Fifo => "fifo",
            CellClass::Deadline => "deadline",
            CellClass::Other => "other",
        }
    }
}
