//! One file for each verb: options in, one call below, text out.

pub mod analyze;
pub mod bench;
pub mod bench_self;
pub mod bench_series;
pub mod clean;
pub mod doctor;
pub mod export;
pub mod generate;
pub mod judge;
pub mod measured;
pub mod report;
pub mod scale;
pub mod supply;
