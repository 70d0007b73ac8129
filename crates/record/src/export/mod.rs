//! What other tools read. Tables (CSV, Parquet): one row per executed job, every cell and round in one table; of a run
//! of single measurements, one row per value. A run's latencies as cyclictest writes them, and task sets as rt-app reads
//! them.
//!
//! Columns of the tables: `trial` (number), `round`, `trial_failed` (0 or 1), `trial_name`, `cell`, `engine`, `index`, `missed_before`, `release_ns`,
//! `start_ns`, `end_ns`, `wakeup_latency_ns`, `execution_time_ns`, `response_time_ns`.
//!
//! A run that kept histograms has one row per interval and metric instead, and its interval logs for HdrHistogram's
//! own tools.

mod binned;
mod csv;
mod cyclictest;
mod hdr;
mod intervals;
mod measured;
mod parquet;
mod rt_app;
mod series;

pub use self::csv::write_csv;
pub use self::cyclictest::{Exported, Form, write_cyclictest};
pub use self::hdr::write_hdr;
pub use self::measured::measured;
pub use self::parquet::write_parquet;
pub use self::rt_app::write_rt_app;

use crate::run::Run;
use crate::samples::Samples;
use crate::trial::{CellRecord, TrialRecord};
use crate::{RecordError, samples};

/// Whether the run keeps histograms, so that there is no job to give a row to.
///
/// # Errors
/// When its experiment cannot be read.
pub fn keeps_histograms(run: &Run) -> Result<bool, RecordError> {
    if run.is_series() {
        return Ok(false);
    }
    let keep = run.experiment()?.keep;
    Ok(matches!(keep, model::Keep::Histograms { .. }))
}

/// Calls `row_group` with the samples of each cell of each trial, in order of execution.
///
/// Returns the number of rows.
fn each_cell(
    run: &Run,
    mut row_group: impl FnMut(&TrialRecord, &CellRecord, &Samples) -> Result<(), RecordError>,
) -> Result<u64, RecordError> {
    let mut rows = 0;
    for number in run.trial_numbers()? {
        let trial = run.trial(number)?;
        for cell in &trial.cells {
            if let Some(samples) = run.samples(number, &cell.id)? {
                rows += samples.samples.len() as u64;
                row_group(&trial, cell, &samples)?;
            }
        }
    }
    Ok(rows)
}

/// The measured columns of a row, in the order of the module's list.
fn numbers(sample: &samples::Sample) -> [i64; 8] {
    [
        i64::from(sample.index),
        i64::from(sample.missed),
        sample.release_ns,
        sample.start_ns,
        sample.end_ns,
        sample.wakeup_latency_ns(),
        sample.execution_time_ns(),
        sample.response_time_ns(),
    ]
}

/// Names of the columns of [`numbers`].
const NUMBERS: [&str; 8] = [
    "index",
    "missed_before",
    "release_ns",
    "start_ns",
    "end_ns",
    "wakeup_latency_ns",
    "execution_time_ns",
    "response_time_ns",
];
