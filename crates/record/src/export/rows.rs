//! Rows of any table of a run as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{WHERE, failed, place_of};
use crate::RecordError;
use crate::run::Run;

/// The columns of a run's figures behind [`WHERE`]: the figure as a threshold writes it; value, low and high in the unit, a share from
/// 0 to 1; why there is no value.
pub const FIGURES: [&str; 7] = ["subject", "figure", "unit", "value", "low", "high", "why"];

/// Writes rows as CSV (RFC 4180, one header line) to `out`, which messages call `path`; each begins with `run` and `host`, followed by
/// the columns of `head`.
///
/// Returns the number of rows, the header not counted.
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
    let mut writer = ::csv::Writer::from_writer(out);
    let failed = failed(path);
    let header = WHERE.iter().chain(head);
    writer.write_record(header).map_err(&failed)?;
    let place = place_of(run)?;
    let mut count = 0;
    for row in rows {
        count += 1;
        let all = place.iter().chain(&row);
        writer.write_record(all).map_err(&failed)?;
    }
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(count)
}
