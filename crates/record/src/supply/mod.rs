//! A supply study: the real supply of enforcers to a cell that always wants the cpu.
//!
//! `supply.json` has the request and how each trial went ([`SupplyRecord`]); `trials/<n>.gaps` holds the raw gaps of one trial
//! ([`crate::gaps`]), or `trials/<n>/` the samples of the tasks that were run inside a budget ([`Tried`]); `summary.json` the
//! results ([`SupplySummary`]), which are computed from the others.

mod lookup;
mod reaction;
mod summary;
mod trial;
mod tried;

use serde::{Deserialize, Serialize};

pub use crate::gaps;
pub use crate::ground::{Budget, Machine, Reacted, Share, Times};
pub use lookup::{Unfit, find, load};
pub use reaction::{MeasuredReaction, Spread, WorstReaction};
pub use summary::{
    Between, Kept, MeasuredSupply, Periods, Promise, SupplyHost, SupplyPoint, SupplySummary,
};
pub use trial::SupplyTrial;
pub use tried::{
    ChosenBy, Foretold, Tried, TriedOutcome, TriedSet, TriedSummary, TriedTask, TriedTrial,
    TriedWitness,
};

use crate::Kind;
use crate::document::Document;
use crate::ground::{Condition, NotMeasured};

/// Schema of `supply.json`.
pub const SUPPLY_SCHEMA: u64 = 1;
/// Schema of the `summary.json` of a supply study.
pub const SUPPLY_SUMMARY_SCHEMA: u64 = 1;

/// `supply.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupplyRecord {
    /// [`SUPPLY_SCHEMA`].
    pub schema: u64,
    /// The question it answers, one sentence.
    pub question: String,
    /// The machine, as far as the supply depends on it.
    pub machine: Machine,
    /// The conditions of the measurement, in the order of the report.
    pub conditions: Vec<Condition>,
    /// Planned number of measurements of every budget.
    pub rounds_planned: u32,
    /// The trials, in the order of execution.
    pub trials: Vec<SupplyTrial>,
    /// Budgets that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Task sets that were run inside the budgets; empty if none were.
    #[serde(default)]
    pub tried: Tried,
}

impl Document for SupplyRecord {
    const FILE: &'static str = Kind::Supply.file();
    const SCHEMA: u64 = SUPPLY_SCHEMA;
}
