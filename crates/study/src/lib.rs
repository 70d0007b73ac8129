//! From the record of a run to figures: summaries, verdicts on thresholds, comparisons with another run and with published figures, and
//! the data of pictures. Nothing is drawn here.
//!
//! Everything is a pure function of the record and can be computed again at any time; a run is only read. Crate `bench` measures; the
//! user of a number decides whether it is good enough.

mod compare;
pub mod conditions;
mod isolation;
pub mod jobs;
pub mod judge;
mod kind;
mod machine;
mod measured;
pub mod plan;
pub mod published;
mod scale;
mod series;
mod studied;
mod supply;
#[cfg(test)]
mod testing;

pub use compare::{
    Change, Compared, Difference, Pair, ReadingPair, ReadingsComparison, RunComparison, compare,
    unlike, unlike_runs,
};
pub use isolation::isolation_study;
pub use jobs::{JobsStudy, Known, Standing, foresee, jobs_until, study};
pub use kind::{Ask, Kind};
pub use machine::facts;
pub use measured::{
    DistributionSummary, FileSummary, MeasuredSummary, OverflowSummary, QUANTILES, QuantileSummary,
    Shown, measured_readings, measured_summary, shown,
};
pub use scale::{mean_response, median_of, scale_beside, scale_study};
pub use series::series_study;
pub use stats::Foreseen;
pub use studied::{Studied, studied};
pub use supply::{reservation, supply_reaction, supply_study};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
