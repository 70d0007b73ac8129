//! Rows of any table of a run as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{WHERE, failed, place_of};
use super::table::{Sink, Table};
use crate::RecordError;
use crate::run::Run;

/// The columns of a run's figures after [`WHERE`]: the figure as written in a threshold; value, low and high in the unit, a share
/// from 0 to 1; why there is no value.
pub const FIGURES: [&str; 7] = ["subject", "figure", "unit", "value", "low", "high", "why"];

/// Writes rows as CSV (RFC 4180, one header line) to `out`; `path` names it in messages. Each row begins with `run` and `host`,
/// followed by the columns of `head`.
///
/// Returns the number of rows, not counting the header.
///
/// # Errors
/// When the run cannot be read or `out` not written.
pub fn write_rows<const N: usize>(
    run: &Run,
    path: &Path,
    out: impl Write,
    head: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<u64, RecordError> {
    write_each(run, path, out, head.iter().copied(), |sink| {
        rows.into_iter().try_for_each(|row| sink(&row))
    })
}

/// Writes the table of a study as CSV.
///
/// # Errors
/// As [`write_rows`].
pub(super) fn write_table(
    run: &Run,
    path: &Path,
    out: impl Write,
    table: &Table,
) -> Result<u64, RecordError> {
    let head = table.columns.iter().map(|column| column.name());
    write_each(run, path, out, head, |sink| (table.rows)(run, sink))
}

fn write_each<'h>(
    run: &Run,
    path: &Path,
    out: impl Write,
    head: impl Iterator<Item = &'h str>,
    rows: impl FnOnce(&mut Sink<'_>) -> Result<(), RecordError>,
) -> Result<u64, RecordError> {
    let mut writer = ::csv::Writer::from_writer(out);
    let failed = failed(path);
    let header = WHERE.into_iter().chain(head);
    writer.write_record(header).map_err(&failed)?;
    let place = place_of(run)?;
    let mut count = 0;
    rows(&mut |row| {
        count += 1;
        let all = place.iter().chain(row);
        writer.write_record(all).map_err(&failed)
    })?;
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(count)
}
