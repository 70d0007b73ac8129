//! The scheduling classes of cells.

/// Scheduling class of a cell's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CellClass {
    /// SCHED_FIFO, with priorities of the cell's band.
    Fifo,
    /// SCHED_RR, with priorities of the cell's band: threads of one priority take turns.
    RoundRobin,
    /// SCHED_DEADLINE, with a runtime for each task.
    Deadline,
    /// SCHED_OTHER: best effort, nothing is guaranteed.
    Other,
}

impl CellClass {
    /// All classes, with their names in files.
    pub const NAMES: [(&'static str, CellClass); 4] = [
        ("fifo", CellClass::Fifo),
        ("rr", CellClass::RoundRobin),
        ("deadline", CellClass::Deadline),
        ("other", CellClass::Other),
    ];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            CellClass::Fifo => "fifo",
            CellClass::RoundRobin => "rr",
            CellClass::Deadline => "deadline",
            CellClass::Other => "other",
        }
    }

    /// The class as which it is analysed and held: SCHED_RR as SCHED_FIFO, since only threads of one priority take turns, and no
    /// two tasks on a cpu have one.
    #[must_use]
    pub const fn analysed(self) -> CellClass {
        match self {
            CellClass::RoundRobin => CellClass::Fifo,
            other => other,
        }
    }
}
