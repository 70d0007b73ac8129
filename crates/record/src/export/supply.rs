//! A supply study as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{WHERE, failed, place_of};
use crate::RecordError;
use crate::run::Run;
use crate::supply::{SupplyRecord, SupplyTrial};

/// The columns after [`WHERE`].
pub(super) const HEAD: [&str; 10] = [
    "trial",
    "round",
    "enforcer",
    "budget_ns",
    "period_ns",
    "stretch",
    "stretch_begin_ns",
    "stretch_end_ns",
    "gap_begin_ns",
    "gap_end_ns",
];

/// Writes a supply study as CSV, one row per gap, in the order of time.
///
/// Columns: `run`, `host`, `trial`, `round`, `enforcer` (empty: none), `budget_ns`, `period_ns`, `stretch` (from 0), `stretch_begin_ns`,
/// `stretch_end_ns`, `gap_begin_ns`, `gap_end_ns`. A stretch without a gap has one row in which the last two are empty.
/// Returns the number of rows, the header not counted.
///
/// # Errors
/// When the run cannot be read or `out` not written.
pub(super) fn write(run: &Run, path: &Path, out: impl Write) -> Result<u64, RecordError> {
    let mut writer = ::csv::Writer::from_writer(out);
    let failed = failed(path);
    writer
        .write_record(WHERE.iter().chain(&HEAD))
        .map_err(&failed)?;
    let [name, host] = place_of(run)?;
    let mut rows = 0;
    let good = |trial: &&SupplyTrial| trial.failure.is_none();
    for trial in run.read::<SupplyRecord>()?.trials.iter().filter(good) {
        let held = trial.held.map_or_else(Default::default, |held| {
            [
                held.enforcer.name().to_owned(),
                held.budget_ns.to_string(),
                held.period_ns.to_string(),
            ]
        });
        let place = [
            name.clone(),
            host.clone(),
            trial.number.to_string(),
            trial.round.to_string(),
        ];
        for (number, (stretch, gaps)) in run.gaps(trial.number)?.stretches.iter().enumerate() {
            let within = [
                number.to_string(),
                stretch.begin_ns.to_string(),
                stretch.end_ns.to_string(),
            ];
            let mut row = |ends: [String; 2]| {
                rows += 1;
                let all = place.iter().chain(&held).chain(&within).chain(&ends);
                writer.write_record(all).map_err(&failed)
            };
            if gaps.is_empty() {
                row(Default::default())?;
            }
            for gap in gaps {
                row([gap.begin_ns.to_string(), gap.end_ns.to_string()])?;
            }
        }
    }
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(rows)
}
