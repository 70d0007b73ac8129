//! The jobs of runs as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{COLUMNS, Context, failed};
use super::rows::write_table;
use super::table::Table;
use super::{FIGURES, NUMBERS, each_cell, numbers};
use crate::RecordError;
use crate::run::Run;

/// The content of one of our own tables that is not read back, recognised by its header line.
pub(crate) fn not_read_back(head: &str) -> Option<&'static str> {
    let head = head.trim_end();
    let of = Table::ALL
        .into_iter()
        .find(|table| head.ends_with(&table.head()));
    let others = [
        (FIGURES.join(","), "figures"),
        (super::intervals::HEAD.join(","), "intervals"),
        (NUMBERS.join(","), "jobs"),
    ];
    // Columns of counters may follow those of jobs.
    let other = || {
        others
            .iter()
            .find(|(columns, _)| head.contains(columns))
            .map(|other| other.1)
    };
    of.map(|table| table.of).or_else(other)
}

/// Writes the run as CSV (RFC 4180, one header line) to `out`; `path` names it in messages: a row per job, per interval and
/// metric of a run that kept histograms, per gap of a supply study, or per job of a study of isolation.
///
/// Returns the number of rows, not counting the header.
///
/// # Errors
/// When the run cannot be read or `out` not written.
pub fn write_csv(run: &Run, path: &Path, out: impl Write) -> Result<u64, RecordError> {
    if let Some(table) = Table::of(run.kind()?) {
        return write_table(run, path, out, table);
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
