//! A study of temporal isolation: whether a cell keeps its deadlines beside one that runs longer than it declared, and
//! whether cells receive the budgets that they were granted.
//!
//! `isolation.json` says what was drawn and how each trial went ([`IsolationRecord`]); `trials/<n>/` holds the raw samples
//! of each task of a contest, or the raw gaps of each spinning cell; `summary.json` what they amount to
//! ([`IsolationSummary`]), which is computed from the other two.

mod arm;
mod draw;
mod summary;
mod trial;

use std::path::{Path, PathBuf};

use host::provenance::Provenance;
use serde::{Deserialize, Serialize};

pub use arm::{Arm, Attacker};
pub use draw::{DrawnCell, DrawnSet, DrawnTask, Draws};
pub use summary::{
    Against, ArmSummary, IsolationSummary, Misses, PeriodShares, ReceivedSummary, ReceivedVerdict,
    Standing,
};
pub use trial::{ContestTrial, ReceivedCell, ReceivedTrial, Role};

use crate::RecordError;
use crate::run::{Manifest, Run, read_json, write_json};
use crate::samples::copy_samples;
use crate::samples::{self, Samples};
use crate::series::Condition;
use crate::summary::NotMeasured;
use crate::supply::Machine;
use crate::supply::gaps::{self, Gaps};

/// Schema of `isolation.json`. Those of 1 may have fields `budget_ns` and `freezer_ns` of each cell in the place of `budgets`, and are read
/// as those of now.
pub const ISOLATION_SCHEMA: u64 = 2;
/// Schema of the `summary.json` of a study of isolation.
pub const ISOLATION_SUMMARY_SCHEMA: u64 = 1;

/// The file that tells a study of isolation from other runs.
pub(crate) const ISOLATION: &str = "isolation.json";

/// `isolation.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationRecord {
    /// [`ISOLATION_SCHEMA`].
    pub schema: u64,
    /// The question it answers, one sentence.
    pub question: String,
    /// What the machine was, as far as budgets depend on it.
    pub machine: Machine,
    /// Under what conditions it was measured, in the order of the report.
    pub conditions: Vec<Condition>,
    /// How many sets of each utilisation were to be run.
    pub rounds_planned: u32,
    /// Seed of the sets.
    pub seed: u64,
    /// How long an overrunning attacker's jobs are, in thousandths of what it declared.
    pub overrun_permille: u32,
    /// How the sets of each utilisation came about.
    pub draws: Vec<Draws>,
    /// The sets that were run.
    pub sets: Vec<DrawnSet>,
    /// Contests that took place, in the order of execution.
    pub contests: Vec<ContestTrial>,
    /// Trials of received budgets that took place, in the order of execution.
    pub received: Vec<ReceivedTrial>,
    /// What was not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
}

impl Run {
    /// Makes `base/<time>-isolation/` with the record as it is before the first trial.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn create_isolation(
        base: &Path,
        time: &str,
        record: &IsolationRecord,
        provenance: &Provenance,
        manifest: &Manifest,
    ) -> Result<Run, RecordError> {
        let run = Run::make_with_trials(base, time, "isolation")?;
        run.write_isolation(record)?;
        write_json(&run.dir().join("provenance.json"), provenance)?;
        run.write_manifest(manifest)?;
        Ok(run)
    }

    /// Whether the run is a study of isolation.
    pub fn is_isolation(&self) -> bool {
        self.dir().join(ISOLATION).is_file()
    }

    /// Replaces `isolation.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_isolation(&self, record: &IsolationRecord) -> Result<(), RecordError> {
        write_json(&self.dir().join(ISOLATION), record)
    }

    /// Reads `isolation.json`.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn isolation(&self) -> Result<IsolationRecord, RecordError> {
        read_json(&self.dir().join(ISOLATION), ISOLATION_SCHEMA)
    }

    /// Keeps what a task of a trial measured, copied from `from`: the records written, not the room for more.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written.
    pub fn keep_task(&self, trial: u32, task: &str, from: &Path) -> Result<(), RecordError> {
        copy_samples(from, &self.made(trial)?.join(format!("{task}.samples")))
    }

    /// Reads what a task of a trial measured.
    ///
    /// # Errors
    /// As [`samples::read`].
    pub fn task_samples(&self, trial: u32, task: &str) -> Result<Samples, RecordError> {
        samples::read(&self.of_isolation(trial).join(format!("{task}.samples")))
    }

    /// Keeps the gaps of a spinning cell of a trial, copied from `from`.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written.
    pub fn keep_cell_gaps(&self, trial: u32, cell: u32, from: &Path) -> Result<(), RecordError> {
        gaps::copy(from, &self.made(trial)?.join(format!("{cell}.gaps")))
    }

    /// Reads the gaps of a spinning cell of a trial.
    ///
    /// # Errors
    /// As [`gaps::read`].
    pub fn cell_gaps(&self, trial: u32, cell: u32) -> Result<Gaps, RecordError> {
        gaps::read(&self.of_isolation(trial).join(format!("{cell}.gaps")))
    }

    fn of_isolation(&self, trial: u32) -> PathBuf {
        self.dir().join("trials").join(trial.to_string())
    }

    fn made(&self, trial: u32) -> Result<PathBuf, RecordError> {
        let dir = self.of_isolation(trial);
        host::writer::create_dir_all(&dir).map_err(RecordError::io(&dir, "make the directory"))?;
        Ok(dir)
    }

    /// Writes `summary.json` of a study of isolation.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_isolation_summary(&self, summary: &IsolationSummary) -> Result<(), RecordError> {
        write_json(&self.dir().join("summary.json"), summary)
    }

    /// Reads `summary.json` of a study of isolation.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn isolation_summary(&self) -> Result<IsolationSummary, RecordError> {
        read_json(&self.dir().join("summary.json"), ISOLATION_SUMMARY_SCHEMA)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_of_the_first_schema_is_read_as_one_of_now() {
        let cell = |field: &str| json!({"tasks": [], field: [2, 10]});
        let former = json!({
            "schema": 1,
            "question": "?",
            "machine": Machine::here(),
            "conditions": [],
            "rounds_planned": 1,
            "seed": 1,
            "overrun_permille": 1,
            "draws": [],
            "sets": [{
                "number": 1,
                "round": 1,
                "utilisation_permille": 500,
                "draw": 0,
                "attacker": cell("budget_ns"),
                "victim": cell("freezer_ns"),
                "late_without": false,
            }],
            "contests": [],
            "received": [],
            "not_measured": [],
        });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ISOLATION);
        let read = || read_json::<IsolationRecord>(&path, ISOLATION_SCHEMA);
        std::fs::write(&path, former.to_string()).unwrap();
        let mut record = read().unwrap();
        let set = &record.sets[0];
        let of = |cell: &DrawnCell| cell.budgets.first().map(|held| held.enforcer);
        assert_eq!(of(&set.attacker), Some(model::Enforcer::RtCgroup));
        assert_eq!(of(&set.victim), Some(model::Enforcer::Freezer));
        // A timecell that knows only the first schema refuses what it would read without its budgets.
        record.schema = ISOLATION_SCHEMA;
        std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
        assert!(matches!(
            read_json::<IsolationRecord>(&path, 1),
            Err(RecordError::Newer {
                found: 2,
                known: 1,
                ..
            })
        ));
        assert_eq!(read().unwrap(), record);
    }
}
