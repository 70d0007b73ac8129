//! The comment line that closes an interval.

use serde::{Deserialize, Serialize};

use crate::Metric;
use crate::samples::Sample;

/// One interval of one cell; instants in ns since the trial's release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its number from 0; numbers in which nothing ran are absent.
    pub interval: u64,
    /// Where it begins, ns since the release.
    pub start_ns: i64,
    /// Where it ends, ns since the release.
    pub end_ns: i64,
    /// When it was closed: UTC, RFC 3339.
    pub closed: String,
    /// Jobs recorded.
    pub executed: u64,
    /// Activations skipped and counted.
    #[serde(alias = "missed")]
    pub skipped: u64,
    /// Jobs that ran but were not recorded, because the reader was not scheduled in time.
    pub lost: u64,
    /// One entry for each metric, the primary one first.
    pub metrics: Vec<MetricInterval>,
    /// The worst jobs by the primary metric: those of this interval that were among the worst of the cell when it
    /// was closed, and the few worst of the interval itself.
    pub worst: Vec<Job>,
}

/// The exact values that a metric's histogram lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricInterval {
    /// Which metric.
    pub metric: Metric,
    /// Smallest value in ns; negative for an early wake-up.
    pub min_ns: i64,
    /// Largest value in ns.
    pub max_ns: i64,
    /// Mean in ns.
    pub mean_ns: f64,
    /// Sum of the squared deviations from the mean, ns².
    pub squares_ns2: f64,
    /// Correlation of neighbouring jobs within the interval.
    pub lag1_autocorrelation: Option<f64>,
    /// Number of values below 0, which are in the histogram as 0.
    pub below_zero: u64,
}

/// One job, written as `[index, skipped, release_ns, start_ns, end_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[i64; 5]", try_from = "[i64; 5]")]
pub struct Job(pub Sample);

impl From<Job> for [i64; 5] {
    fn from(Job(sample): Job) -> [i64; 5] {
        [
            sample.index.into(),
            sample.skipped.into(),
            sample.release_ns,
            sample.start_ns,
            sample.end_ns,
        ]
    }
}

impl TryFrom<[i64; 5]> for Job {
    type Error = String;

    fn try_from([index, skipped, release_ns, start_ns, end_ns]: [i64; 5]) -> Result<Job, String> {
        let small = |what, n: i64| {
            u32::try_from(n).map_err(|_| format!("a job's {what} is {n}, outside 0 to 2^32-1"))
        };
        Ok(Job(Sample {
            index: small("index", index)?,
            skipped: small("skipped activations", skipped)?,
            release_ns,
            start_ns,
            end_ns,
        }))
    }
}

/// Activations accounted for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Jobs recorded.
    pub executed: u64,
    /// Activations skipped and counted.
    pub skipped: u64,
    /// Jobs that ran but were not recorded.
    pub lost: u64,
}

impl Counts {
    /// All of them.
    pub fn accounted(self) -> u64 {
        self.executed
            .saturating_add(self.skipped)
            .saturating_add(self.lost)
    }
}
