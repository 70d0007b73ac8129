//! Single measurements as CSV.

use std::io::Write;
use std::path::Path;

use super::rows::write_rows;
use crate::RecordError;
use crate::run::Run;
use crate::series::SeriesRecord;

/// The columns after [`WHERE`].
pub(super) const HEAD: [&str; 8] = [
    "scenario", "subject", "part", "share_of", "unit", "round", "order", "value",
];

/// Writes a run of single measurements as CSV, one row per value, in the order of the record.
///
/// Columns: `run`, `host`, `scenario`, `subject`, `part`, `share_of`, `unit`, `round`, `order`, `value`.
/// Returns the number of rows, the header not counted.
///
/// # Errors
/// When the run cannot be read or `out` not written.
pub(super) fn write(run: &Run, path: &Path, out: impl Write) -> Result<u64, RecordError> {
    let record = run.read::<SeriesRecord>()?;
    let rows = record.series.iter().flat_map(|series| {
        series.values.iter().map(|value| {
            [
                record.scenario.clone(),
                series.subject.clone(),
                series.part.clone(),
                series.of.clone().unwrap_or_default(),
                series.unit.symbol().to_owned(),
                value.round.to_string(),
                value.order.to_string(),
                value.value.to_string(),
            ]
        })
    });
    write_rows(run, path, out, &HEAD, rows)
}
