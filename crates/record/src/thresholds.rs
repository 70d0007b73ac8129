//! `thresholds.json`: the thresholds by which a run is judged. It lies beside the record and is not part of it:
//! the measurements stay as they are, and can be judged by other thresholds at any time.

use model::Threshold;
use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Schema of `thresholds.json`.
pub const THRESHOLDS_SCHEMA: u64 = 1;

/// The thresholds given when the run was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// [`THRESHOLDS_SCHEMA`].
    pub schema: u64,
    /// Conditions that must not hold, as given with `--fail-if`.
    pub fail_if: Vec<Threshold>,
    /// Directory of the run to which ratios refer; `None`: the run's own baseline trial.
    pub baseline: Option<String>,
}

impl Document for Thresholds {
    const FILE: &'static str = "thresholds.json";
    const SCHEMA: u64 = THRESHOLDS_SCHEMA;
}
