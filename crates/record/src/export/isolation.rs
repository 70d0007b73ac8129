//! The contests of a study of isolation as a table, one row per job, in the order of execution. `load` is empty where nothing ran beside
//! the cells, `enforcer` where nothing held them. `skipped_before` counts the activations just before a job that never ran, `skipped_after`,
//! in the last row of a task, those after it.

use super::table::{Column, Sink, Table};
use crate::RecordError;
use crate::isolation::{Attacker, IsolationRecord, Role};
use crate::run::Run;

pub(super) const TABLE: Table = Table {
    of: "a study of isolation",
    columns: &[
        Column::Integer("trial"),
        Column::Integer("round"),
        Column::Real("utilisation"),
        Column::Integer("set"),
        Column::Text("load"),
        Column::Text("attacker"),
        Column::Text("enforcer"),
        Column::Text("cell"),
        Column::Text("task"),
        Column::Integer("wcet_ns"),
        Column::Integer("period_ns"),
        Column::Integer("job"),
        Column::Integer("skipped_before"),
        Column::Integer("release_ns"),
        Column::Integer("start_ns"),
        Column::Integer("end_ns"),
        Column::Integer("skipped_after"),
    ],
    rows,
};

fn rows(run: &Run, row: &mut Sink<'_>) -> Result<(), RecordError> {
    let record: IsolationRecord = run.read()?;
    for trial in record
        .contests
        .iter()
        .filter(|trial| trial.failure.is_none())
    {
        let Some(set) = record.sets.iter().find(|set| set.number == trial.set) else {
            continue;
        };
        let place = [
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
                    .map(|job| u64::from(job.skipped))
                    .sum();
                let after = samples.header.skipped.saturating_sub(before);
                let last = samples.samples.len();
                for (job, nth) in samples.samples.iter().zip(1..) {
                    let of_job = [
                        job.index.to_string(),
                        job.skipped.to_string(),
                        job.release_ns.to_string(),
                        job.start_ns.to_string(),
                        job.end_ns.to_string(),
                        if nth == last { after } else { 0 }.to_string(),
                    ];
                    row(&[&place[..], &of_task, &of_job].concat())?;
                }
            }
        }
    }
    Ok(())
}
