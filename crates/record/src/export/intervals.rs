//! A run that kept histograms as CSV: one row per interval and metric.

use std::io::Write;
use std::path::Path;

use super::context::{COLUMNS, Context, failed};
use crate::RecordError;
use crate::run::Run;

pub(super) const HEAD: [&str; 12] = [
    "interval",
    "start_ns",
    "end_ns",
    "closed_utc",
    "executed",
    "skipped",
    "lost",
    "metric",
    "min_ns",
    "median_ns",
    "p99_ns",
    "max_ns",
];

/// Called by [`super::write_csv`], with the same contract.
pub(super) fn write(run: &Run, path: &Path, out: impl Write) -> Result<u64, RecordError> {
    let mut writer = ::csv::Writer::from_writer(out);
    let failed = failed(path);
    writer
        .write_record(COLUMNS.iter().map(|column| column.name).chain(HEAD))
        .map_err(&failed)?;
    let context = Context::of(run)?;
    let mut rows = 0;
    for number in run.trial_numbers()? {
        let trial = run.trial(number)?;
        for cell in &trial.cells {
            let Some(log) = run.histograms(number, &cell.id)? else {
                continue;
            };
            let values = context.values(&trial, cell);
            for interval in &log.intervals {
                let here = [
                    interval.interval.to_string(),
                    interval.start_ns.to_string(),
                    interval.end_ns.to_string(),
                    interval.closed.clone(),
                    interval.counts.executed.to_string(),
                    interval.counts.skipped.to_string(),
                    interval.counts.lost.to_string(),
                ];
                let values = values.iter().map(|value| value.text());
                let place: Vec<String> = values.chain(here).collect();
                // An interval in which nothing ran has counts but no figures.
                let mut figures: Vec<[String; 5]> = (interval.metrics.iter())
                    .map(|(metric, [min, median, p99, max])| {
                        let ns = [min, median, p99, max].map(i64::to_string);
                        let [min, median, p99, max] = ns;
                        [metric.tag().to_owned(), min, median, p99, max]
                    })
                    .collect();
                if figures.is_empty() {
                    figures.push(Default::default());
                }
                for figures in &figures {
                    writer
                        .write_record(place.iter().chain(figures))
                        .map_err(&failed)?;
                    rows += 1;
                }
            }
        }
    }
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(rows)
}
