//! The summary of a run of single measurements.

use model::Requirement;
use serde::{Deserialize, Serialize};

use super::{Quantity, Swept};
use crate::document::Document;
use crate::ground::NotMeasured;

/// Schema of the `summary.json` of a run of single measurements.
pub const SERIES_SUMMARY_SCHEMA: u64 = 1;

/// The summary of a run of single measurements. Computed from the record, and computable again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesSummary {
    /// [`SERIES_SUMMARY_SCHEMA`].
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The subject with which others are compared.
    pub baseline_subject: Option<String>,
    /// One entry per series, in the order of the record.
    pub figures: Vec<SeriesFigure>,
    /// Subjects that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Requirements that the machine did not meet.
    pub unmet: Vec<Requirement>,
    /// Failures, as sentences.
    pub failures: Vec<String>,
    /// Notes on the values, one clause each without a full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The subjects of a sweep over the size of cells; empty where nothing was swept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<Swept>,
}

impl Document for SeriesSummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = SERIES_SUMMARY_SCHEMA;
}

/// One series in numbers; values are in the unit of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesFigure {
    /// The subject.
    pub subject: String,
    /// Which figure of it.
    pub part: String,
    /// The part that this one is a share of.
    pub of: Option<String>,
    /// Unit of every value.
    pub unit: Quantity,
    /// Number of values.
    pub count: u64,
    /// Measurements that gave no value.
    pub failed: u64,
    /// Smallest value.
    pub least: i64,
    /// The median, an observed value.
    pub median: i64,
    /// Ends of the median's 95 % interval; `None` with fewer than 6 values.
    pub median_interval: Option<(i64, i64)>,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation (divisor n - 1); `None` for one value.
    pub sd: Option<f64>,
    /// The 90th percentile; `None` with too few values to bound it (29).
    pub p90: Option<i64>,
    /// The 99th percentile; `None` with too few values to bound it (299).
    pub p99: Option<i64>,
    /// The worst value seen, a lower bound of the worst case.
    pub worst: i64,
    /// Ratio to the same part of the baseline subject, pairing rounds; `None` if there is nothing to compare.
    pub against_baseline: Option<stats::Ratio>,
    /// Number of rounds of the ratio.
    pub rounds_compared: u32,
}
