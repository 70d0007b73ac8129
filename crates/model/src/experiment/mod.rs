//! Experiments: the types, next to reading, checking and writing the TOML file and to the overrides of the command line.

mod assign;
mod counters;
mod held;
mod keys;
mod overrides;
mod own;
mod program;
mod read;
mod resolve;
mod scale;
mod scale_override;
mod stage;
pub mod task_load;
mod trial;
mod turns;
mod until;
mod work;
mod write;

pub use counters::Counters;
pub use held::reserves as task_reserves;
pub use overrides::Overrides;
pub use program::{ProgramJobs, ProgramLoad, ReportedTask};
#[cfg(test)]
pub(crate) use read::FORMAT;
pub use resolve::quick;
pub use scale::{COUNTS, Scale};
pub use stage::ExecutionStage;
pub use task_load::{TaskLoad, TaskPolicy};
pub use trial::{OwnTask, TrialPlan};
pub use turns::Turns;
pub use work::{Class, Keep, Limits, Pacing, Scheduling, Work, Workload};

use crate::{Duration, EngineKind, Machine, Threshold};

/// Version of the experiment file that this timecell reads and writes.
pub const SCHEMA: i64 = 1;

/// An experiment file, resolved: every default is filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Name; becomes part of the run's directory name. Letters, digits, `-` and `_`.
    pub name: String,
    /// The question the experiment answers; the report opens with it.
    pub question: String,
    /// How often every trial is repeated, interleaved A B C A B C.
    pub rounds: u32,
    /// The real-time task.
    pub workload: Workload,
    /// The record of its jobs.
    pub keep: Keep,
    /// The task set that every trial runs; `Some` where the work is [`Work::Busy`].
    pub tasks: Option<TaskLoad>,
    /// Class and cpus.
    pub scheduling: Scheduling,
    /// The trial with which the others are compared; the first one unless set.
    pub baseline: String,
    /// The unprivileged user who runs rootless cells; `None`: chosen on the machine.
    pub rootless_user: Option<String>,
    /// The virtual machine of every cell of engine `qemu`, but for what [a trial says](Experiment::machine_of).
    pub machine: Machine,
    /// Which hardware and kernel counters are recorded.
    pub counters: Counters,
    /// The scale study whose points are the trials.
    pub scale: Option<Scale>,
    /// How trials that differ only in their cells take turns; `None`: one runs after the other.
    pub turns: Option<Turns>,
    /// Conditions, written as thresholds, until whose decision the run continues, at most for all its rounds. Empty: all
    /// rounds take place.
    pub until: Vec<Threshold>,
    /// The matrix.
    pub trials: Vec<TrialPlan>,
}

impl Experiment {
    /// Whether the measuring threads may read counters at their own activations, so that room is reserved for the counts:
    /// if requested and every sample is kept. Scale studies do not count.
    pub fn counts_activations(&self) -> bool {
        let asked = matches!(self.counters, Counters::WhereCheap | Counters::Activations);
        asked && self.keep == Keep::Samples && self.scale.is_none()
    }

    /// Engines used, each once, in table order.
    pub fn engines(&self) -> Vec<EngineKind> {
        EngineKind::ALL
            .into_iter()
            .filter(|kind| self.trials.iter().any(|trial| trial.cells.contains(kind)))
            .collect()
    }

    /// The workload of a trial: the experiment's, with the trial's own period and jobs. Cells may have [tasks of their
    /// own](Experiment::task_of).
    pub fn workload_of(&self, trial: &TrialPlan) -> Workload {
        Workload {
            period: trial.period.unwrap_or(self.workload.period),
            jobs: trial.jobs.unwrap_or(self.workload.jobs),
            stage: trial.stage.unwrap_or(self.workload.stage),
            ..self.workload.clone()
        }
    }

    /// The virtual machine of the cells of engine `qemu` of a trial.
    pub fn machine_of(&self, trial: &TrialPlan) -> Machine {
        trial.machine.or(&self.machine)
    }

    /// Times between releases of its trials, ascending, each once.
    pub fn periods(&self) -> Vec<Duration> {
        let mut periods: Vec<Duration> = (self.trials.iter())
            .flat_map(|trial| self.tasks_of(trial))
            .map(|task| task.period)
            .collect();
        periods.sort_unstable();
        periods.dedup();
        periods
    }

    /// The fewest and the most activations that a cell of any trial has in a round.
    pub fn jobs(&self) -> (u32, u32) {
        let tasks = || self.trials.iter().flat_map(|trial| self.tasks_of(trial));
        let jobs = || tasks().map(|task| task.jobs);
        let own = self.workload.jobs;
        (jobs().min().unwrap_or(own), jobs().max().unwrap_or(own))
    }

    /// Cpus set by its trials or by the experiment, ascending, each once; empty: none is set.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = (self.trials.iter())
            .flat_map(|trial| match trial.cpus.as_slice() {
                [] => &self.scheduling.cpus,
                own => own,
            })
            .copied()
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// The trial of this name.
    pub fn trial(&self, name: &str) -> Option<&TrialPlan> {
        self.trials.iter().find(|trial| trial.name == name)
    }

    /// The largest number of cells that run together.
    pub fn most_cells(&self) -> usize {
        self.trials.iter().map(|t| t.cells.len()).max().unwrap_or(0)
    }
}
