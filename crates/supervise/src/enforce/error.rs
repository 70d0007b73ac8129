//! Why a cell cannot be held as it was admitted.

use host::rtgroup::RtGroupError;
use host::sched::SchedError;

/// Why a cell cannot be held as it was admitted.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// The kernel refused a budget, or a process in its group.
    #[error(transparent)]
    Group(#[from] RtGroupError),
    /// The kernel refused a class or cpus.
    #[error(transparent)]
    Class(#[from] SchedError),
    /// It cannot be kept to its cpus.
    #[error(transparent)]
    Cpus(#[from] host::confine::ConfineError),
    /// The grant is not for this mechanism.
    #[error("`{cell}` was granted no {what}")]
    NotGranted {
        /// The cell.
        cell: String,
        /// What is missing.
        what: &'static str,
    },
}
