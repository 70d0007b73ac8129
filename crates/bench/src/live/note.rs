//! `live.json`: the facts of a trial and its cells, in its directory in shared memory.

use std::path::{Path, PathBuf};

use host::sched::Class;
use model::{EngineKind, Keep, Work};
use record::trial::TrialRecord;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::cells::allowed;
use crate::context::Trial;

/// Schema of `live.json`.
pub const LIVE_SCHEMA: u64 = 1;
pub(super) const FILE: &str = "live.json";

/// A running trial. The control page's slots hold the state of its cells, the samples files their jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// [`LIVE_SCHEMA`].
    pub schema: u64,
    /// The run's directory, absolute.
    pub run: PathBuf,
    /// The experiment's name.
    pub experiment: String,
    /// The trial's name in the experiment.
    pub trial: String,
    /// Its number in the order of execution, from 1.
    pub number: u32,
    /// Trials of the run.
    pub trials: u32,
    /// Round, from 1.
    pub round: u32,
    /// Rounds of the run.
    pub rounds: u32,
    /// When the run should end, CLOCK_MONOTONIC ns.
    pub expected_end_ns: i64,
    /// Whether the samples files are rings, which the coordinator empties into histograms.
    pub rings: bool,
    /// Whether a job has work, so that its execution time says something.
    pub works: bool,
    /// Loads beside the cells.
    pub loads: Vec<String>,
    /// The reservation that the cells other than bare ones share, if any.
    pub shared_reservation: Option<LiveReservation>,
    /// The cells, by their slots.
    pub cells: Vec<LiveCell>,
}

/// Budget every period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveReservation {
    /// Cpu time of each period, ns.
    pub budget_ns: i64,
    /// The period, ns.
    pub period_ns: i64,
    /// The mechanism, such as `rt-cgroup`.
    pub enforcer: String,
}

/// One cell, or one thread of a cell that runs a task set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCell {
    /// Identity in the trial.
    pub id: String,
    /// Its engine.
    pub engine: EngineKind,
    /// Cpus that it may use.
    pub cpus: Vec<u32>,
    /// Requested class, such as `FIFO 80`.
    pub class: String,
    /// Its own reservation, if it has one.
    pub reservation: Option<LiveReservation>,
    /// The slot of the thread whose process it shares: its own, except for the later threads of a cell.
    pub process: usize,
    /// Activations planned.
    pub planned: u32,
    /// Time between releases, ns.
    pub period_ns: i64,
}

/// Tells watchers of the trial, which works in `dir`.
pub(crate) fn write(trial: &Trial<'_>, record: &TrialRecord, dir: &Path) -> Result<(), BenchError> {
    let plan = trial.plan;
    let (rounds, works) = (plan.experiment.rounds, plan.experiment.workload.work);
    let live = Live {
        schema: LIVE_SCHEMA,
        run: std::path::absolute(trial.run.dir()).unwrap_or_else(|_| trial.run.dir().to_owned()),
        experiment: plan.experiment.name.clone(),
        trial: trial.planned.name.clone(),
        number: trial.number,
        trials: rounds * plan.trials.len() as u32,
        round: trial.round,
        rounds,
        expected_end_ns: trial.expected_end_ns,
        rings: plan.experiment.keep != Keep::Samples,
        works: works != Work::Timer,
        loads: record.loads.iter().map(|load| load.name.clone()).collect(),
        shared_reservation: (trial.rt_group).map(|held| {
            group(
                held.budget().runtime_us.unsigned_abs(),
                held.budget().period_us,
            )
        }),
        cells: (0..record.cells.len())
            .map(|index| cell(trial, record, index))
            .collect(),
    };
    let text = serde_json::to_vec(&live).unwrap_or_default();
    record::run::write_atomically(&dir.join(FILE), &text).map_err(BenchError::Record)
}

fn cell(trial: &Trial<'_>, record: &TrialRecord, index: usize) -> LiveCell {
    let of = &record.cells[index];
    let task = trial.planned.tasks.get(index);
    LiveCell {
        id: of.id.clone(),
        engine: of.engine,
        cpus: task.map_or_else(|| allowed(of).to_vec(), |task| task.cpus.clone()),
        class: of.class_wanted.clone(),
        reservation: match trial.reserved {
            Some(held) => Some(LiveReservation {
                enforcer: held.enforcer.name().to_owned(),
                ..group(held.runtime_us, held.period_us)
            }),
            None => task.and_then(|task| own_reservation(&task.class)),
        },
        process: trial.planned.first_of_process(index),
        planned: trial.jobs[index],
        period_ns: task
            .map_or(trial.planned.workload_of(index).period, |task| {
                task.task.period
            })
            .ns(),
    }
}

/// The budget of a real-time group, on each cpu.
fn group(runtime_us: u64, period_us: u64) -> LiveReservation {
    let ns = |us: u64| i64::try_from(us.saturating_mul(1_000)).unwrap_or(i64::MAX);
    LiveReservation {
        budget_ns: ns(runtime_us),
        period_ns: ns(period_us),
        enforcer: "rt-cgroup".to_owned(),
    }
}

/// The budget of a SCHED_DEADLINE thread.
fn own_reservation(class: &Class) -> Option<LiveReservation> {
    match class {
        Class::Deadline {
            runtime_ns,
            period_ns,
            ..
        } => Some(LiveReservation {
            budget_ns: i64::try_from(*runtime_ns).unwrap_or(i64::MAX),
            period_ns: i64::try_from(*period_ns).unwrap_or(i64::MAX),
            enforcer: "deadline".to_owned(),
        }),
        _ => None,
    }
}
