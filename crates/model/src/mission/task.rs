//! A task of a cell.

use crate::taskset::CellTask;

/// A task of a cell, and how to recognise its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Name and times, as the analysis takes them. `wcet_high` is there for every task of a cell of high criticality, and for no
    /// other.
    pub timing: CellTask,
    /// Name of its thread (`comm`, 1 to 15 bytes), by which it is found where each task is held by itself; `None`: its own.
    pub thread: Option<String>,
    /// When its jobs come.
    pub arrivals: Arrivals,
}

/// When the jobs of a task come, which decides what of them can be missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// One in every period: one that does not come is a missed deadline.
    #[default]
    Periodic,
    /// Whenever something happens, with at least a period between two.
    Sporadic,
}

impl Arrivals {
    /// Both and their names in files.
    pub const NAMES: [(&'static str, Arrivals); 2] = [
        ("periodic", Arrivals::Periodic),
        ("sporadic", Arrivals::Sporadic),
    ];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Arrivals::Periodic => "periodic",
            Arrivals::Sporadic => "sporadic",
        }
    }
}

impl Task {
    /// Its name; unique in its cell.
    pub fn name(&self) -> &str {
        &self.timing.name
    }
}
