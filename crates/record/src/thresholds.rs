//! `thresholds.json`: what a run is judged by. It stands beside the record and is no part of it: what was measured
//! stays as it is, and may be judged by other thresholds at any time.

use crate::RecordError;
use crate::run::{Run, read_json, write_json};
use serde::{Deserialize, Serialize};

/// Schema of `thresholds.json`.
pub const THRESHOLDS_SCHEMA: u64 = 1;

const FILE: &str = "thresholds.json";

/// What was asked when the run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// [`THRESHOLDS_SCHEMA`].
    pub schema: u64,
    /// Conditions that must not hold, as `--fail-if` takes them.
    pub fail_if: Vec<String>,
    /// Directory of the run that ratios are to; `None`: the run's own baseline trial.
    pub baseline: Option<String>,
}

impl Run {
    /// Keeps the thresholds beside the record, in place of earlier ones.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_thresholds(&self, thresholds: &Thresholds) -> Result<(), RecordError> {
        write_json(&self.dir().join(FILE), thresholds)
    }

    /// The thresholds kept beside the record; `None` where none were given.
    ///
    /// # Errors
    /// When the file cannot be read, is malformed, or is of a newer schema.
    pub fn thresholds(&self) -> Result<Option<Thresholds>, RecordError> {
        let path = self.dir().join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        read_json(&path, THRESHOLDS_SCHEMA).map(Some)
    }
}
