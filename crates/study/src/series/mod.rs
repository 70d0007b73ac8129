//! Runs of single measurements (`series.json`): what they amount to.

mod readings;
mod study;

pub(crate) use readings::series_readings;
pub use study::series_study;
