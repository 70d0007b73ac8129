//! Why an experiment could not be completed.

use std::path::{Path, PathBuf};

/// Why an experiment could not be completed. Each prints as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The user's input is at fault.
    #[error(transparent)]
    Input(#[from] model::InputError),
    /// A file of the user's is at fault, with all of its faults.
    #[error(transparent)]
    Inputs(#[from] model::InputErrors),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] record::RecordError),
    /// An engine could not make or remove a cell.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// There is no root filesystem for the cells.
    #[error(transparent)]
    Rootfs(#[from] engine::rootfs::RootfsError),
    /// A place in shared memory could not be made.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Place {
        /// File or directory.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A trial is measured and cannot be written to its run; its samples stay in shared memory.
    #[error(
        "{source}; the samples of trial {number} stay in {} until `timecell clean` or the next `timecell bench` can write \
         them to the run", place.display()
    )]
    Unwritten {
        /// The trial.
        number: u32,
        /// Why it could not be written.
        source: record::RecordError,
        /// Where its samples are.
        place: PathBuf,
    },
    /// An unmet requirement of the experiment.
    #[error("{0}")]
    Unmet(String),
    /// Ctrl-C or a termination signal.
    #[error("interrupted; every cell was removed")]
    Interrupted,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// The error of a failed operation (`doing`) on a file of a place.
pub(crate) fn failed(
    path: &Path,
    doing: &'static str,
) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.to_owned();
    move |source| BenchError::Place {
        path,
        doing,
        source,
    }
}
