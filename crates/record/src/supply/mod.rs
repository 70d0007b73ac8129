//! A supply study: what the kernel's enforcers really give to a cell that always wants the cpu.
//!
//! `supply.json` says what was asked and how each trial went ([`SupplyRecord`]); `trials/<n>.gaps` holds the raw gaps of
//! one trial ([`gaps`]), or `trials/<n>/` the samples of the tasks that were run inside a budget ([`Tried`]); `summary.json`
//! what they amount to ([`SupplySummary`]), which is computed from the others.

pub mod gaps;
mod lookup;
mod machine;
mod reaction;
mod summary;
mod trial;
mod tried;

use std::path::{Path, PathBuf};

use host::provenance::Provenance;
use serde::{Deserialize, Serialize};

pub use lookup::{Unfit, find, load};
pub use machine::Machine;
pub use reaction::{MeasuredReaction, Reacted, Spread, Times, WorstReaction};
pub use summary::{
    Between, Kept, MeasuredSupply, Periods, Promise, Share, SupplyHost, SupplyPoint, SupplySummary,
};
pub use trial::{Budget, SupplyTrial};
pub use tried::{
    ChosenBy, Foretold, Tried, TriedOutcome, TriedSet, TriedSummary, TriedTask, TriedTrial,
    TriedWitness,
};

use crate::RecordError;
use crate::run::{Manifest, Run, read_json, write_json};
use crate::series::Condition;
use crate::summary::NotMeasured;
use gaps::Gaps;

/// Schema of `supply.json`.
pub const SUPPLY_SCHEMA: u64 = 1;
/// Schema of the `summary.json` of a supply study.
pub const SUPPLY_SUMMARY_SCHEMA: u64 = 1;

/// The file that tells a supply study from other runs.
pub(crate) const SUPPLY: &str = "supply.json";

/// `supply.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupplyRecord {
    /// [`SUPPLY_SCHEMA`].
    pub schema: u64,
    /// The question it answers, one sentence.
    pub question: String,
    /// What the machine was, as far as the supply depends on it.
    pub machine: Machine,
    /// Under what conditions the gaps were recorded, in the order of the report.
    pub conditions: Vec<Condition>,
    /// How often every budget was to be measured.
    pub rounds_planned: u32,
    /// What took place, in the order of execution.
    pub trials: Vec<SupplyTrial>,
    /// Budgets that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Task sets that were run inside the budgets; empty in runs that tried none.
    #[serde(default)]
    pub tried: Tried,
}

impl Run {
    /// Makes `base/<time>-supply/` with the record as it is before the first trial.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn create_supply(
        base: &Path,
        time: &str,
        record: &SupplyRecord,
        provenance: &Provenance,
        manifest: &Manifest,
    ) -> Result<Run, RecordError> {
        let run = Run::make_with_trials(base, time, "supply")?;
        run.write_supply(record)?;
        write_json(&run.dir().join("provenance.json"), provenance)?;
        run.write_manifest(manifest)?;
        Ok(run)
    }

    /// Whether the run is a supply study.
    pub fn is_supply(&self) -> bool {
        self.dir().join(SUPPLY).is_file()
    }

    /// Replaces `supply.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_supply(&self, record: &SupplyRecord) -> Result<(), RecordError> {
        write_json(&self.dir().join(SUPPLY), record)
    }

    /// Reads `supply.json`.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn supply(&self) -> Result<SupplyRecord, RecordError> {
        read_json(&self.dir().join(SUPPLY), SUPPLY_SCHEMA)
    }

    /// Keeps the gaps of a trial, copied from `from`: the header and the records written, not the room for more.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written; nothing of it stays.
    pub fn keep_gaps(&self, trial: u32, from: &Path) -> Result<(), RecordError> {
        gaps::copy(from, &self.gaps_path(trial))
    }

    /// Reads the gaps of a trial.
    ///
    /// # Errors
    /// As [`gaps::read`].
    pub fn gaps(&self, trial: u32) -> Result<Gaps, RecordError> {
        gaps::read(&self.gaps_path(trial))
    }

    /// Where the gaps of a trial are.
    fn gaps_path(&self, trial: u32) -> PathBuf {
        self.dir().join("trials").join(format!("{trial}.gaps"))
    }

    /// Writes `summary.json` of a supply study.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_supply_summary(&self, summary: &SupplySummary) -> Result<(), RecordError> {
        write_json(&self.dir().join("summary.json"), summary)
    }

    /// Reads `summary.json` of a supply study.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn supply_summary(&self) -> Result<SupplySummary, RecordError> {
        read_json(&self.dir().join("summary.json"), SUPPLY_SUMMARY_SCHEMA)
    }
}
