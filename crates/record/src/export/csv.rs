//! The jobs of runs as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{COLUMNS, Context};
use super::{NUMBERS, each_cell, numbers};
use crate::RecordError;
use crate::run::Run;

/// What a failure to write a row means.
pub(super) fn failed(path: &Path) -> impl Fn(::csv::Error) -> RecordError {
    let path = path.to_owned();
    move |error| match error.into_kind() {
        ::csv::ErrorKind::Io(error) => RecordError::io(&path, "write")(error),
        other => RecordError::malformed(&path, format!("{other:?}")),
    }
}

/// Writes the run as CSV (RFC 4180, one header line) to `out`, which messages call `path`: a row per job, per
/// interval and metric of a run that kept histograms, per gap of a supply study, or per job of
/// a study of isolation.
///
/// Returns the number of rows, the header not counted.
///
/// # Errors
/// When the run cannot be read or `out` not written.
pub fn write_csv(run: &Run, path: &Path, out: impl Write) -> Result<u64, RecordError> {
    if run.is_series() {
        return super::series::write(run, path, out);
    }
    if run.is_supply() {
        return super::supply::write(run, path, out);
    }
    if run.is_isolation() {
        return super::isolation::write(run, path, out);
    }
    if super::keeps_histograms(run)? {
        return super::intervals::write(run, path, out);
    }
    let counters = super::counters(run)?;
    let mut writer = ::csv::Writer::from_writer(out);
    let failed = failed(path);
    let context = Context::of(run)?;
    writer
        .write_record(
            (COLUMNS.iter().map(|column| column.name))
                .chain(NUMBERS)
                .chain(counters.iter().map(|counter| counter.column())),
        )
        .map_err(&failed)?;
    let rows = each_cell(run, |trial, cell, samples| {
        let values = context.values(trial, cell);
        let place: Vec<String> = values.iter().map(|value| value.text()).collect();
        for (at, row) in numbers(samples).enumerate() {
            let measured = row.map(|n| n.to_string());
            let counted = counters.iter().map(|counter| {
                let count = samples.count(at, *counter);
                count.map_or_else(String::new, |count| count.to_string())
            });
            writer
                .write_record(place.iter().chain(&measured).cloned().chain(counted))
                .map_err(&failed)?;
        }
        Ok(())
    })?;
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(rows)
}
