//! An isolation study as CSV.

use std::io::Write;
use std::path::Path;

use super::context::{WHERE, failed, place_of};
use crate::RecordError;
use crate::isolation::{Attacker, IsolationRecord, Role};
use crate::run::Run;

/// The columns after [`WHERE`].
pub(super) const HEAD: [&str; 17] = [
    "trial",
    "round",
    "utilisation",
    "set",
    "load",
    "attacker",
    "enforcer",
    "cell",
    "task",
    "wcet_ns",
    "period_ns",
    "job",
    "missed_before",
    "release_ns",
    "start_ns",
    "end_ns",
    "missed_after",
];

/// Writes the contests of a study of isolation as CSV, one row per job, in the order of execution.
///
/// Columns: `run`, `host`, `trial`, `round`, `utilisation`, `set`, `load` (empty: idle), `attacker`, `enforcer` (empty: none), `cell`, `task`,
/// `wcet_ns`, `period_ns`, `job`, `missed_before` (activations just before that never ran), `release_ns`, `start_ns`, `end_ns`,
/// `missed_after` (in the last row of a task: activations after it that never ran).
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
    let record: IsolationRecord = run.read()?;
    let mut rows = 0;
    for trial in record
        .contests
        .iter()
        .filter(|trial| trial.failure.is_none())
    {
        let Some(set) = record.sets.iter().find(|set| set.number == trial.set) else {
            continue;
        };
        let place = [
            name.clone(),
            host.clone(),
            trial.number.to_string(),
            trial.round.to_string(),
            (f64::from(set.utilisation_permille) / 1_000.0).to_string(),
            set.number.to_string(),
            trial
                .load
                .as_ref()
                .map_or(String::new(), |load| load.name.clone()),
            trial.arm.attacker.name().to_owned(),
            trial
                .arm
                .enforcer
                .map_or("", |enforcer| enforcer.name())
                .to_owned(),
        ];
        let present = |role: Role| role == Role::Victim || trial.arm.attacker != Attacker::Absent;
        let cells = [(Role::Attacker, &set.attacker), (Role::Victim, &set.victim)];
        for (role, cell) in cells.into_iter().filter(|(role, _)| present(*role)) {
            for task in &cell.tasks {
                let of_task = [
                    role.name().to_owned(),
                    task.name.clone(),
                    task.wcet_ns.to_string(),
                    task.period_ns.to_string(),
                ];
                let samples = run.task_samples(trial.number, &task.name)?;
                let before: u64 = (samples.samples.iter())
                    .map(|job| u64::from(job.missed))
                    .sum();
                let after = samples.header.missed.saturating_sub(before);
                let last = samples.samples.len();
                for (job, nth) in samples.samples.iter().zip(1..) {
                    let of_job = [
                        job.index.to_string(),
                        job.missed.to_string(),
                        job.release_ns.to_string(),
                        job.start_ns.to_string(),
                        job.end_ns.to_string(),
                        if nth == last { after } else { 0 }.to_string(),
                    ];
                    rows += 1;
                    let all = place.iter().chain(&of_task).chain(&of_job);
                    writer.write_record(all).map_err(&failed)?;
                }
            }
        }
    }
    writer.flush().map_err(RecordError::io(path, "write"))?;
    Ok(rows)
}
