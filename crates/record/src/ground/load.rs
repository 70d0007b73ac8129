//! The loads of a trial, and their work.

use model::LoadKind;
use serde::{Deserialize, Serialize};

/// One load of a trial, and its work while the cells were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Name in tables; unique in the trial.
    pub name: String,
    /// Its kind.
    pub kind: LoadKind,
    /// `built in`, or program and version, such as `stress-ng 0.15.06`.
    pub form: String,
    /// `host`, or `cell (embedded)`.
    pub place: String,
    /// Cpus that it was allowed to use.
    pub cpus: Vec<u32>,
    /// Its command line.
    pub command: String,
    /// Its work; empty when it failed before anything was measured.
    pub achieved: Vec<Achieved>,
    /// Seconds in which a load with a fixed pace did not finish its work; `None` for loads without one.
    pub missed_seconds: Option<u64>,
    /// Why the load, and with it the trial, failed.
    pub failure: Option<String>,
}

/// One measure of a load's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    /// Such as `messages`.
    pub quantity: String,
    /// Such as `1/s`.
    pub unit: String,
    /// The value in that unit, over the window.
    pub value: f64,
    /// The time over which it was measured, ns.
    pub window_ns: i64,
}
