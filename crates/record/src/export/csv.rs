//! The jobs of runs as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{COLUMNS, Context, failed};
use super::{NUMBERS, each_cell, numbers};
use crate::run::Run;
use crate::{Kind, RecordError};

/// What a table of ours is of, by its head line, where that is one that is not read back.
pub(crate) fn not_read_back(head: &str) -> Option<&'static str> {
    [
        ("single measurements", super::series::HEAD.join(",")),
        ("a study of isolation", super::isolation::HEAD.join(",")),
        ("a study of supply", super::supply::HEAD.join(",")),
        ("figures", super::FIGURES.join(",")),
    ]
    .into_iter()
    .find_map(|(what, columns)| head.trim_end().ends_with(&columns).then_some(what))
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
    match run.kind()? {
        Kind::Series => return super::series::write(run, path, out),
        Kind::Supply => return super::supply::write(run, path, out),
        Kind::Isolation => return super::isolation::write(run, path, out),
        Kind::Jobs | Kind::Scale => {}
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
