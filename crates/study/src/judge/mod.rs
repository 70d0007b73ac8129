//! Thresholds: is a number good enough? Judging is separate from measuring and from summing up: a verdict is a pure function of a summary,
//! the thresholds, and the ratios to a baseline, and can be repeated with other thresholds.
//!
//! A verdict rests on 95 % intervals wherever there is one. `fails` means that the whole interval lies where it must not, `passes` that none
//! of it does, `undecided` that the limit lies within. Smallest and largest value, mean, deviation and counts are observed facts and are
//! compared as they are; shares of activations have an interval.
//!
//! Each kind of run lists its figures ([`Readings`]); one algorithm judges them all.

mod algorithm;
mod jobs;
mod ratios;
mod readings;
mod until;
mod verdict;

use model::threshold;

pub use algorithm::judge;
pub use jobs::jobs_readings;
pub use model::threshold::{
    Count, Figure, Limit, Operator, Selector, Statistic, Threshold, ThresholdError, Unit,
};
pub use ratios::{RatioOf, Ratios, between, within};
pub use readings::{Absent, Reading, Readings, Subject};
pub use until::judge_run;
pub use verdict::{CellVerdict, Ends, Judged, JudgedThreshold, Measured, Outcome, Why};

pub(crate) use jobs::{no_class, of_skews};
