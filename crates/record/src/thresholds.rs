//! `thresholds.json`: what a run is judged by. It stands beside the record and is no part of it: what was measured
//! stays as it is, and may be judged by other thresholds at any time.

use model::Threshold;
use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Schema of `thresholds.json`.
pub const THRESHOLDS_SCHEMA: u64 = 1;

/// What was asked when the run was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// [`THRESHOLDS_SCHEMA`].
    pub schema: u64,
    /// Conditions that must not hold, as `--fail-if` takes them.
    pub fail_if: Vec<Threshold>,
    /// Directory of the run that ratios are to; `None`: the run's own baseline trial.
    pub baseline: Option<String>,
}

impl Document for Thresholds {
    const FILE: &'static str = "thresholds.json";
    const SCHEMA: u64 = THRESHOLDS_SCHEMA;
}
