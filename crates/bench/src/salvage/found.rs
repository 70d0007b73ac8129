//! The findings of a salvage.

/// Findings, over all trials of a place.
#[derive(Default)]
pub(super) struct Found {
    pub sentences: Vec<String>,
    /// End of the last job of all, CLOCK_MONOTONIC ns.
    pub last_ns: Option<i64>,
}
