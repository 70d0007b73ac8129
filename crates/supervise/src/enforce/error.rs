//! Why a cell cannot be held as it was admitted.

use host::hcbs::HcbsError;
use host::rtgroup::RtGroupError;
use host::sched::SchedError;

/// Why a cell cannot be held as it was admitted.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// The kernel refused a budget, or a process in its group.
    #[error(transparent)]
    Group(#[from] RtGroupError),
    /// The kernel refused a budget of cgroup v2, or has none.
    #[error(transparent)]
    Hcbs(#[from] HcbsError),
    /// EVL refused a quota group, or a schedule of time partitions.
    #[error(transparent)]
    Quota(#[from] host::evl_quota::QuotaError),
    /// The same, for one cell.
    #[error("cell `{0}`: {1}")]
    OfCell(String, host::evl_quota::QuotaError),
    /// EVL has no such quota.
    #[error("{0}")]
    Percent(String),
    /// Cells have no frame of time partitions.
    #[error("cpu {0}: {1}")]
    Frames(u32, analysis::linux::FramesError),
    /// The kernel refused a class or cpus.
    #[error(transparent)]
    Class(#[from] SchedError),
    /// It cannot be kept to its cpus.
    #[error(transparent)]
    Cpus(#[from] host::confine::ConfineError),
    /// There is no group that the freezer could hold.
    #[error(transparent)]
    Held(#[from] freezer::hold::HoldError),
    /// Those who hold budgets by the freezer refused, or do not answer.
    #[error(transparent)]
    Place(#[from] freezer::process::PlaceError),
    /// A partition of cpus cannot be created or removed.
    #[error(transparent)]
    Partition(#[from] host::Error),
    /// A group that is to be released.
    #[error("{}: processes remain in it, so it stays held", .0.display())]
    Populated(std::path::PathBuf),
    /// The grant is not for this mechanism.
    #[error("`{cell}` was granted no {what}")]
    NotGranted {
        /// The cell.
        cell: String,
        /// The missing part of the grant.
        what: &'static str,
    },
}
