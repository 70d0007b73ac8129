//! Files for other tools. Tables (CSV, Parquet): one row per executed job, every cell and round in one table; of a run of
//! single measurements, one row per value. A run's latencies as cyclictest writes them, and task sets as rt-app reads
//! them.
//!
//! Columns of the tables: those of `context`, which every row of a cell shares, then `job`, `skipped_before`, `release_ns`,
//! `start_ns`, `end_ns`, `wakeup_latency_ns`, `execution_time_ns`, `response_time_ns`, `skipped_after`. CSV has one more
//! column for each counter that a thread recorded of its activations.
//!
//! A study without jobs in trials has the columns of its `table`, in either form.
//!
//! A run that kept histograms has one row per interval and metric instead, and its interval logs for HdrHistogram's
//! own tools.

mod binned;
mod context;
mod csv;
mod cyclictest;
mod hdr;
mod intervals;
mod isolation;
mod measured;
mod parquet;
mod rows;
mod rt_app;
mod series;
mod supply;
mod table;
mod table_parquet;

pub(crate) use self::csv::not_read_back;
pub use self::csv::write_csv;
pub use self::cyclictest::{Exported, Form, write_cyclictest};
pub(crate) use self::hdr::METRIC;
pub use self::hdr::write_hdr;
pub use self::measured::measured;
pub use self::parquet::write_parquet;
pub use self::rows::{FIGURES, write_rows};
pub(crate) use self::rt_app::EMBEDDED;
pub use self::rt_app::write_rt_app;

use host::counters::{Counter, HARDWARE, SOFTWARE};

use crate::run::Run;
use crate::samples::Samples;
use crate::trial::{CellRecord, TrialRecord};
use crate::{RecordError, samples};

/// Whether the run keeps histograms, so that there are no jobs to write as rows.
///
/// # Errors
/// When its experiment cannot be read.
pub fn keeps_histograms(run: &Run) -> Result<bool, RecordError> {
    if run.has_no_experiment() {
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

/// The counters that any thread of the run read at its activations, in the order of [`Counter::code`].
fn counters(run: &Run) -> Result<Vec<Counter>, RecordError> {
    let mut names: Vec<String> = Vec::new();
    for number in run.trial_numbers()? {
        let trial = run.trial(number)?;
        let counted = trial.counters.into_iter().filter_map(|of| of.activations);
        names.extend(counted.flat_map(|of| of.names));
    }
    let known = HARDWARE.into_iter().chain(SOFTWARE);
    Ok(known
        .filter(|counter| names.iter().any(|name| name == counter.name()))
        .collect())
}

/// The measured columns of every row of a cell, in the order of the module's list.
///
/// Activations skipped after the last job are in its row, so that the rows add up to the planned ones: count + sum of
/// `skipped_before` + sum of `skipped_after`.
fn numbers(samples: &Samples) -> impl Iterator<Item = [i64; 9]> + '_ {
    let before = samples.samples.iter().map(|s| u64::from(s.skipped));
    let after = samples.header.skipped.saturating_sub(before.sum());
    let last = samples.samples.len().saturating_sub(1);
    samples
        .samples
        .iter()
        .enumerate()
        .map(move |(place, sample)| {
            let after = if place == last { after } else { 0 };
            row(sample, i64::try_from(after).unwrap_or(i64::MAX))
        })
}

fn row(sample: &samples::Sample, skipped_after: i64) -> [i64; 9] {
    [
        i64::from(sample.index),
        i64::from(sample.skipped),
        sample.release_ns,
        sample.start_ns,
        sample.end_ns,
        sample.wakeup_latency_ns(),
        sample.execution_time_ns(),
        sample.response_time_ns(),
        skipped_after,
    ]
}

/// Names of the columns of [`numbers`].
const NUMBERS: [&str; 9] = [
    "job",
    "skipped_before",
    "release_ns",
    "start_ns",
    "end_ns",
    "wakeup_latency_ns",
    "execution_time_ns",
    "response_time_ns",
    "skipped_after",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Header, Sample};

    #[test]
    fn rows_add_up_to_what_was_planned() {
        let sample = |index: u32, skipped: u32| Sample {
            index,
            skipped,
            release_ns: 0,
            start_ns: 1,
            end_ns: 2,
        };
        let mut header = Header::new();
        // Of 10 activations 0, 3 and 4 ran; 5 to 9 were skipped after the last job.
        (header.planned, header.count, header.skipped) = (10, 3, 7);
        let samples = Samples {
            header,
            samples: vec![sample(0, 0), sample(3, 2), sample(4, 0)],
            counts: Vec::new(),
        };
        let rows: Vec<[i64; 9]> = numbers(&samples).collect();
        let at = |name: &str| NUMBERS.iter().position(|n| *n == name).unwrap();
        let sum = |name: &str| rows.iter().map(|row| row[at(name)]).sum::<i64>();
        assert_eq!((sum("skipped_before"), sum("skipped_after")), (2, 5));
        assert_eq!(rows[2][at("skipped_after")], 5);
        assert_eq!(
            rows.len() as i64 + sum("skipped_before") + sum("skipped_after"),
            10
        );
    }
}
