//! What runs in a trial, and why it ended.

use engine::Cell;
use host::isolate::Isolation;

use super::ahead::Ahead;
use crate::BenchError;
use crate::held::Held;
use crate::load::Running;

pub(super) struct Live {
    pub cell: Box<dyn Cell>,
    pub pid: i32,
}

/// What runs in a trial.
#[derive(Default)]
pub(super) struct Members {
    /// `None`: a cell that could not be created.
    pub cells: Vec<Option<Live>>,
    pub loads: Vec<Running>,
    pub isolation: Option<Isolation>,
    pub ahead: Option<Ahead>,
    /// What holds cells, each with the first entry of its cell.
    pub holds: Vec<(usize, Box<dyn Held>)>,
}

/// Why the steps ended before their end.
pub(super) enum Ended {
    /// The trial failed; the run goes on.
    Failed(String),
    /// The run cannot go on.
    Error(BenchError),
}

impl From<BenchError> for Ended {
    fn from(error: BenchError) -> Ended {
        Ended::Error(error)
    }
}
