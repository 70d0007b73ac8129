//! The payloads of a trial's cells: the arguments of their probes, and the record of a task's thread.

use std::path::{Path, PathBuf};

use engine::{CellSpec, Rights};
use host::sched;
use model::{Class, Enforcer, EngineKind, ExecutionStage, Keep, Workload};
use probe::{BarrierKind, ClassBy, DeadlineArgs, ProbeArgs, ReportedArgs, SetArgs, TaskArgs};
use record::crowd::Reservation;
use record::trial::{CellRecord, ReportedRecord, SetBy, TaskRecord};

use crate::cells::{Placement, allowed};
use crate::context::Trial;
use crate::error::failed;
use crate::launch::probe_words;
use crate::plan::reports;
use crate::{BenchError, PlannedTask};

/// The class of a cell with one task: its own, the experiment's, or the one that holds it to its reservation.
pub(crate) fn class(trial: &Trial<'_>, index: usize) -> sched::Class {
    let shared = || match fifo(trial, index) {
        Some(priority) => sched::Class::Fifo { priority },
        None => sched::Class::Other,
    };
    (trial.reserved.and_then(deadline_class)).unwrap_or_else(shared)
}

/// The class of a cell that holds `held` by SCHED_DEADLINE; `None` where something else holds it.
pub(crate) fn deadline_class(held: Reservation) -> Option<sched::Class> {
    (held.enforcer == Enforcer::Deadline).then_some(sched::Class::Deadline {
        runtime_ns: held.runtime_us * 1_000,
        deadline_ns: held.period_us * 1_000,
        period_ns: held.period_us * 1_000,
    })
}

fn deadline_args(class: &sched::Class, cpus: &[u32]) -> Option<DeadlineArgs> {
    match *class {
        sched::Class::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        } => Some(DeadlineArgs {
            runtime_ns,
            deadline_ns,
            period_ns,
            cpus: cpus.to_vec(),
        }),
        _ => None,
    }
}

pub(crate) fn task_record(planned: &PlannedTask) -> TaskRecord {
    let task = &planned.task;
    TaskRecord {
        name: task.name.clone(),
        cell: planned.cell_name.clone(),
        cell_number: u32::try_from(planned.cell).unwrap_or(u32::MAX),
        competes: planned.competes(),
        wcet_ns: task.wcet.ns(),
        period_ns: task.period.ns(),
        deadline_ns: task.deadline.ns(),
        jobs: planned.jobs,
        cpus: planned.cpus.clone(),
        calibration: None,
    }
}

/// Words of the cell of entry `first`: one task, or a thread for each of its own.
fn words(trial: &Trial<'_>, cells: &[CellRecord], first: usize) -> Vec<String> {
    let Some(of_cell) = trial.planned.tasks.get(first) else {
        let args = probe_args(trial, &cells[first], first);
        return probe_words(&args);
    };
    let in_machine = trial.planned.machine.is_some();
    let task = |index: usize| {
        let planned = &trial.planned.tasks[index];
        let args = probe_args(trial, &cells[index], index);
        // In a machine, the virtual cpu of its cell.
        let cpu = match in_machine {
            true => u32::try_from(planned.cell - 1).unwrap_or_default(),
            false => args.cpu,
        };
        let fifo = match planned.class {
            sched::Class::Fifo { priority } => Some(priority),
            _ => None,
        };
        TaskArgs {
            probe: ProbeArgs {
                fifo,
                deadline: deadline_args(&planned.class, &planned.cpus),
                period_ns: planned.task.period.ns(),
                cpu,
                ..args
            },
            wcet_ns: planned.task.wcet.ns(),
            bounded: false,
        }
    };
    SetArgs {
        cpu: if in_machine { 0 } else { of_cell.cpu() },
        tasks: trial.planned.sharing(first).into_iter().map(task).collect(),
    }
    .to_words()
}

/// The priority of a cell; `None` at best effort.
pub(crate) fn fifo(trial: &Trial<'_>, index: usize) -> Option<u8> {
    let Class::Fifo { priority } = trial.plan.experiment.scheduling.class else {
        return None;
    };
    let own = trial.planned.own.get(index).and_then(|own| own.priority);
    Some(own.unwrap_or(priority))
}

fn probe_args(trial: &Trial<'_>, cell: &CellRecord, index: usize) -> ProbeArgs {
    let workload = trial.planned.workload_of(index);
    let seen = Path::new("/cell");
    let deadline = deadline_args(&class(trial, index), &cell.cpus);
    ProbeArgs {
        control: seen.join("control"),
        slot: index,
        samples: Some(seen.join(format!("{}.samples", cell.id))),
        ring: trial.plan.experiment.keep != Keep::Samples,
        work: workload.work,
        pacing: workload.pacing,
        period_ns: workload.period.ns(),
        jobs: trial.jobs[index],
        fifo: fifo(trial, index).filter(|_| deadline.is_none()),
        oob: trial.planned.stage_of(index) == ExecutionStage::OutOfBand,
        deadline,
        cpu: cell.cpu,
        class_by: match cell.set_by {
            SetBy::Cell | SetBy::Guest => ClassBy::Cell,
            SetBy::Coordinator => ClassBy::Coordinator,
        },
        barrier: BarrierKind::Futex,
        rest_ns: rest_ns(trial),
        counters: if trial.plan.experiment.counts_activations() {
            trial.plan.experiment.counters
        } else {
            model::Counters::None
        },
        turns: trial.planned.turns.as_ref().map(|turns| turns.args(index)),
        program: program_words(workload, cell.engine),
        tasks: (cell.reported.iter())
            .map(|task| ReportedArgs {
                name: task.name.clone(),
                period_ns: task.period_ns,
                jobs: jobs_beside(trial, index, task),
            })
            .collect(),
        page: reports(workload).then(|| seen.join(format!("{}.page", cell.id))),
    }
}

/// Most activations of another task of a program that are recorded: those of the time that the first takes, and of its turns.
fn jobs_beside(trial: &Trial<'_>, index: usize, task: &ReportedRecord) -> u32 {
    let period_ns = trial.planned.workload_of(index).period.ns();
    crate::plan::jobs_beside(trial.jobs[index], period_ns, task.period_ns)
}

/// The program of a cell and its arguments, if it runs one: a plain process runs the user's file, the others its copy.
fn program_words(workload: &Workload, engine: EngineKind) -> Vec<String> {
    let Some(program) = &workload.program else {
        return Vec::new();
    };
    let mut words = program.words.clone();
    if engine != EngineKind::Bare
        && let Some(path) = words.first_mut()
    {
        *path = engine::libraries::seen(Path::new(&path))
            .display()
            .to_string();
    }
    words
}

/// Where the cell of entry `index` belongs: in the run's real-time group and, where it may not take them itself, in its class and on its
/// cpus.
pub(crate) fn placement<'a>(
    trial: &Trial<'a>,
    index: usize,
    cell: &'a CellRecord,
) -> Placement<'a> {
    // In a crowd, plain processes too: without a budget below the root's they would throttle the root itself.
    let own = cell.engine != EngineKind::Bare && !cell.engine.is_machine();
    let grouped = own || trial.plan.experiment.scale.is_some();
    Placement {
        partition: None,
        rt_group: trial.rt_group.filter(|_| grouped),
        class: (cell.set_by != SetBy::Cell).then(|| (allowed(cell), class(trial, index))),
    }
}

/// Makes the samples file of a thread, and the page that its program reports on, if it has one.
pub(crate) fn prepare(
    trial: &Trial<'_>,
    shared: &Path,
    index: usize,
    cell: &CellRecord,
) -> Result<(), BenchError> {
    let id = &cell.id;
    let samples = shared.join(format!("{id}.samples"));
    let jobs = u64::from(trial.jobs[index]);
    match trial.planned.ring_records(trial.plan.experiment.keep) {
        Some(records) => probe::prepare_ring(&samples, records, jobs),
        None if trial.plan.experiment.counts_activations() => {
            probe::prepare_counted_samples(&samples, jobs)
        }
        None => probe::prepare_samples(&samples, jobs),
    }
    .map_err(failed(&samples, "make the samples file"))?;
    if !reports(trial.planned.workload_of(index)) {
        return Ok(());
    }
    for (task, name) in cell.reported.iter().zip(cell.samples_names()).skip(1) {
        let samples = shared.join(format!("{name}.samples"));
        let jobs = jobs_beside(trial, index, task);
        probe::prepare_samples(&samples, jobs.into())
            .map_err(failed(&samples, "make the samples file"))?;
    }
    let page = shared.join(format!("{id}.page"));
    probe::prepare_page(&page, true).map_err(failed(&page, "make the page"))
}

/// Of a crowd and of cells that take turns, the start of every cell is stamped before any of them works: without it the last start would
/// include the work of all cells on its cpu, and say nothing of the release.
fn rest_ns(trial: &Trial<'_>) -> i64 {
    const LEAST_NS: i64 = 2_000_000;
    const EACH_NS: i64 = 50_000;
    if trial.plan.experiment.scale.is_some() || trial.planned.turns.is_some() {
        LEAST_NS + EACH_NS * trial.planned.cells.len() as i64
    } else {
        0
    }
}

/// The spec of the cell of entry `index` among all `cells` of the trial.
pub(crate) fn spec(
    trial: &Trial<'_>,
    shared: &Path,
    index: usize,
    cells: &[CellRecord],
) -> Result<CellSpec, BenchError> {
    let cell = &cells[index];
    let fifo = fifo(trial, index);
    Ok(CellSpec {
        id: format!(
            "timecell-{}-{}-{}",
            std::process::id(),
            trial.number,
            cell.id
        ),
        engine: cell.engine,
        rootfs: trial.rootfs.to_owned(),
        words: words(trial, cells, index),
        shared: shared.to_owned(),
        work_dir: (trial.place).sub(&format!("trials/{}/cells/{}", trial.number, cell.id))?,
        user: (cell.engine.is_rootless())
            .then(|| trial.plan.rootless_user.clone())
            .flatten(),
        rights: Rights {
            rtprio: fifo.unwrap_or(0),
            memlock_bytes: trial.planned.cell_bytes(&trial.plan.experiment)
                * trial.planned.tasks.len().max(1) as u64
                + (128 << 20),
            devices: match trial.planned.stage_of(index) {
                ExecutionStage::InBand => Vec::new(),
                ExecutionStage::OutOfBand => evl::NODES.map(PathBuf::from).into(),
            },
            limits: model::Size::default(),
        },
        machine: (trial.planned.machine.clone()).filter(|_| cell.engine.is_machine()),
    })
}
