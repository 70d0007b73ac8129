//! Runs of single measurements (`series.json`).

mod readings;
mod study;

pub(crate) use readings::series_readings;
pub use study::series_study;
