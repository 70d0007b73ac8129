//! The run directory and every file format in it, with versioned schemas; import and export of other tools' formats.
//!
//! Nothing here measures and nothing here judges: this crate writes down and reads back. A run is never edited.

// Whatever root writes goes through `host::writer` or `output`; a test may write as it likes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod crowd;
mod error;
pub mod export;
pub mod histogram;
pub mod import;
pub mod isolation;
pub mod output;
pub mod run;
pub mod samples;
pub mod scale;
pub mod series;
pub mod summary;
pub mod supply;
pub mod thresholds;
pub mod trial;
mod turns;

pub use error::RecordError;
