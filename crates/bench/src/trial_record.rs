//! The beginning of a trial: its directories, its record before anything has happened, and the most time that it may take.

use std::path::PathBuf;

use host::sched;
use model::Keep;
use record::trial::{CellRecord, HeldCell, HoldsRecord, ReportedRecord, SetBy, TrialRecord};
use record::{Document, Machine};

use crate::BenchError;
use crate::cells::Cells;
use crate::context::Trial;
use crate::load;
use crate::payload::{class, task_record};
use crate::tasks::PlannedTask;
use crate::turns::PlannedTurns;

/// Makes a trial's parts and tells watchers of it: its directory, the part of it shared with the cells, its record, and the cells, none
/// of which is there yet.
pub(crate) fn begin<'a>(
    trial: &Trial<'a>,
) -> Result<(PathBuf, PathBuf, TrialRecord, Cells<'a>), BenchError> {
    let dir = trial.place.sub(&format!("trials/{}", trial.number))?;
    let shared = (trial.place).sub(&format!("trials/{}/shared", trial.number))?;
    let record = new_record(trial);
    let cells = Cells::new(&shared, record.cells.len(), Some(trial.interrupt))?;
    crate::live::write(trial, &record, &dir)?;
    Ok((dir, shared, record, cells))
}

fn new_record(trial: &Trial<'_>) -> TrialRecord {
    let cells = (trial.planned.cells.iter().enumerate())
        .map(|(index, (kind, cpu))| {
            let by_cell = trial.plan.engines[kind].cell_sets_class();
            let task = trial.planned.tasks.get(index);
            let class = class(trial, index);
            let anywhere = match class {
                sched::Class::Deadline { .. } => trial.plan.experiment.scheduling.cpus.clone(),
                _ => Vec::new(),
            };
            CellRecord {
                id: task.map_or_else(
                    || format!("{}-{kind}", index + 1),
                    |task| task.id(index + 1),
                ),
                engine: *kind,
                cpu: *cpu,
                cpus: anywhere,
                class_wanted: task.map_or(&class, |task| &task.class).to_string(),
                class_got: None,
                set_by: match by_cell {
                    true => SetBy::Cell,
                    false if kind.is_machine() => SetBy::Guest,
                    false => SetBy::Coordinator,
                },
                machine: None,
                real_time: false,
                create_ns: None,
                started_ns: None,
                notes: task.map_or_else(Vec::new, PlannedTask::remarks),
                failure: None,
                task: task.map(task_record),
                reported: reported(trial, index),
            }
        })
        .collect();
    TrialRecord {
        schema: TrialRecord::SCHEMA,
        number: trial.number,
        name: trial.planned.name.clone(),
        round: trial.round,
        go_ns: None,
        go_unix_ns: None,
        arming_ns: None,
        cells,
        loads: (trial.planned.loads.iter())
            .map(|planned| load::record(planned, &trial.ground.setting(planned)))
            .collect(),
        failure: None,
        isolation: None,
        counters: Vec::new(),
        continues: trial.continues,
        cut_off: None,
        crowd: None,
        holds: holds(trial),
        turns: trial.planned.turns.as_ref().map(PlannedTurns::record),
        arms: (trial.planned.turns.as_ref()).map_or_else(Vec::new, |turns| turns.arms.clone()),
    }
}

/// The tasks of the program of a cell. The others are recorded where every job of a cell is.
fn reported(trial: &Trial<'_>, index: usize) -> Vec<ReportedRecord> {
    let workload = trial.planned.workload_of(index);
    let beside = match trial.plan.experiment.keep {
        Keep::Samples => usize::MAX,
        Keep::Histograms { .. } => 1,
    };
    let tasks = workload.program.iter().flat_map(|program| &program.tasks);
    (tasks.take(beside))
        .map(|task| ReportedRecord {
            name: task.name.clone(),
            period_ns: task.period.ns(),
        })
        .collect()
}

/// The holders of the cells of a task set, if any.
fn holds(trial: &Trial<'_>) -> Option<HoldsRecord> {
    let tasks = trial.planned.tasks.iter().enumerate();
    let cells: Vec<HeldCell> = tasks
        .filter(|(index, _)| trial.planned.first_of_cell(*index) == *index)
        .filter_map(|(_, task)| {
            Some(HeldCell {
                cell: task.cell_name.clone(),
                cell_number: u32::try_from(task.cell).unwrap_or(u32::MAX),
                cpu: task.cpu(),
                by: task.held?,
                reacted: None,
            })
        })
        .collect();
    (!cells.is_empty()).then(|| HoldsRecord {
        machine: Machine::here(),
        cells,
    })
}

/// Notes the instant that the barrier published, on both clocks.
pub(crate) fn note_go(record: &mut TrialRecord, go_ns: i64) {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = since_1970
        .ok()
        .and_then(|now| i64::try_from(now.as_nanos()).ok());
    record.go_ns = Some(go_ns);
    record.go_unix_ns = now.map(|now| now + (go_ns - probe::clock::now()));
}

/// A trial of which something could not be removed has failed.
pub(crate) fn note_leftovers(record: &mut TrialRecord, left: &[String]) {
    if !left.is_empty() {
        (record.failure).get_or_insert(format!("could not be removed: {}", left.join("; ")));
    }
}

/// Twice the expected time of all cells in sequence, and a margin: cells that share a cpu wait for each other.
pub(crate) fn longest_loop_ns(trial: &Trial<'_>) -> i64 {
    let work_ns = match trial.planned.workload.work {
        model::Work::Mac { steps } => i64::from(steps) * 50,
        model::Work::Timer | model::Work::Busy | model::Work::Program | model::Work::Endless => 0,
    };
    let workload = &trial.planned.workload;
    let one = (workload.period.ns() + work_ns).saturating_mul(i64::from(workload.jobs));
    one.saturating_mul(2)
        .saturating_mul(trial.planned.cells.len() as i64)
        .saturating_add(60_000_000_000)
}
