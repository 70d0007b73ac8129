//! Single measurements as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{WHERE, place_of};
use crate::RecordError;
use crate::run::Run;

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
    let record = run.series()?;
    let mut writer = ::csv::Writer::from_writer(out);
    let failed = |error: ::csv::Error| match error.into_kind() {
        ::csv::ErrorKind::Io(error) => RecordError::io(path, "write")(error),
        other => RecordError::malformed(path, format!("{other:?}")),
    };
    writer
        .write_record(WHERE.iter().chain(&HEAD))
        .map_err(failed)?;
    let place = place_of(run)?;
    let mut rows = 0;
    for series in &record.series {
        for value in &series.values {
            rows += 1;
            let row = [
                record.scenario.clone(),
                series.subject.clone(),
                series.part.clone(),
                series.of.clone().unwrap_or_default(),
                series.unit.symbol().to_owned(),
                value.round.to_string(),
                value.order.to_string(),
                value.value.to_string(),
            ];
            writer
                .write_record(place.iter().chain(&row))
                .map_err(failed)?;
        }
    }
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(rows)
}
