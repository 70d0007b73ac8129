//! The scheduling classes of cells.

choice! {
    /// Scheduling class of a cell's threads.
    pub enum CellClass {
        /// SCHED_FIFO, with priorities of the cell's band.
        Fifo = "fifo",
        /// SCHED_RR, with priorities of the cell's band: threads of one priority take turns.
        RoundRobin = "rr",
        /// SCHED_DEADLINE, with a runtime for each task.
        Deadline = "deadline",
        /// SCHED_OTHER: best effort, nothing is guaranteed.
        Other = "other",
    }
}

impl CellClass {
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
