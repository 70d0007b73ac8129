//! The run directory and every file format in it, with versioned schemas; import and export of other tools' formats.
//!
//! Nothing here measures and nothing here judges: this crate writes down and reads back. A run is never edited.

// Root's output goes through `host::writer` or `output`; tests may write directly.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod document;
mod error;
pub mod export;
pub mod gaps;
mod ground;
pub mod histogram;
pub mod import;
pub mod isolation;
mod jobs;
mod kind;
pub mod output;
pub mod plan;
mod raw;
pub mod run;
pub mod samples;
pub mod scale;
pub mod series;
pub mod supply;
pub mod thresholds;

pub use document::Document;
pub use error::RecordError;
pub use ground::{
    Achieved, Budget, Condition, LoadRecord, Machine, Metric, Misses, NotMeasured, Reacted, Share,
    Times, crowd,
};
pub use jobs::{summary, trial};
pub use kind::Kind;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
