//! The plan of an experiment's run: its trials as the machine allows them. `planning` makes it.

use std::collections::BTreeMap;

use engine::Engine;
use model::{Enforcer, EngineKind, Experiment, Keep, Requirement, Work, Workload};
use record::NotMeasured;

use crate::load::PlannedLoad;
use crate::tasks::PlannedTask;
use crate::turns::PlannedTurns;

/// One trial that will take place in every round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTrial {
    /// Its name.
    pub name: String,
    /// Engine and cpu of each cell.
    pub cells: Vec<(EngineKind, u32)>,
    /// The real-time task of each cell; where they differ, the longest.
    pub workload: Workload,
    /// The task of each entry of `cells` where cells have their own; empty: all have `workload`.
    pub own: Vec<PlannedOwn>,
    /// Loads beside them.
    pub loads: Vec<PlannedLoad>,
    /// Whether their cpus are kept free of other work.
    pub isolate: bool,
    /// The task of each entry of `cells` where a task set is run: an entry is a thread then. Empty otherwise.
    pub tasks: Vec<PlannedTask>,
    /// Cells that are created at the same time; 1 except in a scale study.
    pub parallel: u32,
    /// The trials that it joins, which take turns; `None`: it is one trial.
    pub turns: Option<PlannedTurns>,
    /// The virtual machine of its cells of engine `qemu`.
    pub machine: Option<engine::Machine>,
}

/// The task of one cell of a trial whose cells have their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedOwn {
    /// The task.
    pub workload: Workload,
    /// Priority of SCHED_FIFO, where it is not the experiment's.
    pub priority: Option<u8>,
    /// The cell's name in tables.
    pub name: Option<String>,
}

/// The plan of a run.
pub struct Plan {
    /// The experiment with cpus filled in and, where no real-time class is available, the class lowered.
    pub experiment: Experiment,
    /// Trials to be measured, in the order of one round.
    pub trials: Vec<PlannedTrial>,
    /// The others.
    pub not_measured: Vec<NotMeasured>,
    /// Met and unmet, each once.
    pub requirements: Vec<Requirement>,
    /// Whether the cells run in a real-time class.
    pub real_time: bool,
    /// How long the run may take, ns: no round begins that is expected to end later.
    pub at_most_ns: Option<i64>,
    pub(crate) engines: BTreeMap<EngineKind, Box<dyn Engine>>,
    pub(crate) rootless_user: Option<engine::User>,
}

impl Plan {
    /// Requirements that the machine does not meet.
    pub fn unmet(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().filter(|r| !r.met)
    }

    /// Whether SCHED_DEADLINE holds each cell to a reservation: no cell is in a class that real-time groups know.
    pub fn deadline(&self) -> bool {
        by_deadline(&self.experiment)
    }

    /// Whether cells of a task set are held in any trial.
    pub(crate) fn holds_any(&self) -> bool {
        let mut tasks = self.trials.iter().flat_map(|trial| &trial.tasks);
        tasks.any(|task| task.held.is_some())
    }

    /// Whether cells are held by this enforcer.
    pub(crate) fn holds_by(&self, enforcer: Enforcer) -> bool {
        let mut tasks = self.trials.iter().flat_map(|trial| &trial.tasks);
        tasks.any(|task| task.held.is_some_and(|by| by.held.enforcer == enforcer))
    }

    /// Cpus that cells are pinned to, ascending, each once.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = (self.trials.iter())
            .flat_map(|trial| trial.cells.iter().map(|(_, cpu)| *cpu))
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// How long the loop of one cell of a trial should take, ns.
    pub fn loop_ns(workload: &Workload) -> i64 {
        let work_ns = match workload.pacing {
            model::Pacing::Relative => Plan::work_ns(workload),
            model::Pacing::Periodic => 0,
        };
        (workload.period.ns() + work_ns).saturating_mul(i64::from(workload.jobs))
    }

    /// About how long one job works, ns.
    fn work_ns(workload: &Workload) -> i64 {
        match workload.work {
            Work::Mac { steps } => i64::from(steps) * 3,
            Work::Timer | Work::Busy | Work::Program | Work::Endless => 0,
        }
    }

    /// How its engines are looked for.
    pub(crate) fn engine_options(&self) -> engine::Options {
        engine::Options {
            rootless_user: self.experiment.rootless_user.clone(),
        }
    }

    /// Every load of every trial.
    pub(crate) fn loads(&self) -> Vec<&PlannedLoad> {
        self.trials.iter().flat_map(|trial| &trial.loads).collect()
    }

    /// Bytes of samples or histograms of the whole run on disk.
    pub fn run_bytes(&self) -> u64 {
        let round: u64 = (self.trials.iter())
            .map(|trial| trial.run_bytes(self))
            .sum();
        round * u64::from(self.experiment.rounds)
    }
}

impl PlannedTrial {
    /// The entry of `cells` whose cell the entry `index` shares: its own, except for the threads of a task set.
    pub(crate) fn first_of_cell(&self, index: usize) -> usize {
        let Some(task) = self.tasks.get(index) else {
            return index;
        };
        let same = |other: &PlannedTask| other.cell == task.cell;
        self.tasks.iter().position(same).unwrap_or(index)
    }

    /// The entry of `cells` whose process the entry `index` shares: that of its cell, or all of a task set in a virtual machine, whose
    /// cells are its virtual cpus.
    pub(crate) fn first_of_process(&self, index: usize) -> usize {
        match self.machine.is_some() && !self.tasks.is_empty() {
            true => 0,
            false => self.first_of_cell(index),
        }
    }

    /// The entries of `cells` that share the process of entry `first`.
    pub(crate) fn sharing(&self, first: usize) -> Vec<usize> {
        (first..self.cells.len())
            .filter(|index| self.first_of_process(*index) == first)
            .collect()
    }

    /// The first entry of each virtual cpu of its machine, in their order, where a task set runs in one.
    pub(crate) fn vcpus(&self) -> Vec<usize> {
        let first = |index: &usize| self.first_of_cell(*index) == *index;
        let cells = 0..self.machine.as_ref().map_or(0, |_| self.tasks.len());
        cells.filter(first).collect()
    }

    /// The class of the thread that executes the virtual cpu of this entry: the one that holds it, else `otherwise`.
    pub(crate) fn vcpu_class(
        &self,
        index: usize,
        otherwise: host::sched::Class,
    ) -> host::sched::Class {
        let held = self.tasks[index].held;
        held.and_then(|by| crate::tasks::of_thread(&by.held))
            .unwrap_or(otherwise)
    }

    /// The task of one entry that is not a thread of a task set.
    pub fn workload_of(&self, index: usize) -> &Workload {
        (self.own.get(index)).map_or(&self.workload, |own| &own.workload)
    }

    /// The stage on which the cell of an entry runs.
    pub fn stage_of(&self, index: usize) -> model::ExecutionStage {
        match &self.turns {
            Some(turns) => turns.stage_of(index),
            None => self.workload_of(index).stage,
        }
    }

    /// Activations of each entry.
    pub(crate) fn jobs(&self) -> Vec<u32> {
        if self.tasks.is_empty() {
            let cells = 0..self.cells.len();
            return cells.map(|cell| self.workload_of(cell).jobs).collect();
        }
        self.tasks.iter().map(|task| task.jobs).collect()
    }

    /// The tasks of its cells: one, unless they have their own.
    pub(crate) fn workloads(&self) -> Vec<&Workload> {
        match self.own.is_empty() {
            true => vec![&self.workload],
            false => self.own.iter().map(|own| &own.workload).collect(),
        }
    }

    /// Most activations of a cell.
    fn most_jobs(&self) -> u32 {
        let jobs = self.workloads().into_iter().map(|task| task.jobs);
        jobs.max().unwrap_or(self.workload.jobs)
    }

    /// Cpus that its cells are pinned to, ascending, each once.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.cells.iter().map(|(_, cpu)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// How long the trial should take, ns: its loop, and some time to make its cells and loads.
    pub(crate) fn expected_ns(&self) -> i64 {
        let creation: i64 = (self.cells.iter())
            .enumerate()
            .filter(|(index, _)| self.first_of_process(*index) == *index)
            .map(|(_, (kind, _))| kind.creation_ns())
            .sum();
        // Cells that share the cpus work one after the other.
        let work = Plan::work_ns(&self.workload).saturating_mul(i64::from(self.workload.jobs));
        let rounds = self.cells.len() / self.cpus().len().max(1);
        let crowded = work.saturating_mul(rounds as i64);
        let turns = self.turns.as_ref();
        let work = match turns
            .map(|turns| turns.whole_ns(self.workload.jobs, self.workload.period.ns()))
        {
            Some(in_turns) => in_turns,
            None => Plan::loop_ns(&self.workload).max(crowded),
        };
        work.saturating_add(creation / i64::from(self.parallel.clamp(1, 4)))
            .saturating_add(100_000_000)
            .saturating_add(self.loads.len() as i64 * LOAD_GUESS_NS)
    }

    /// Records of each cell's ring; `None` where every sample is kept.
    pub(crate) fn ring_records(&self, keep: Keep) -> Option<u64> {
        match keep {
            Keep::Samples => None,
            Keep::Histograms { .. } => {
                let periods = self.workloads().into_iter().map(|task| task.period);
                let shortest = periods.min().unwrap_or(self.workload.period);
                Some(probe::ring_records(shortest.ns()))
            }
        }
    }

    /// Bytes of shared memory of one cell: its samples, with their counts where it counts, or its ring.
    pub(crate) fn cell_bytes(&self, experiment: &Experiment) -> u64 {
        use record::samples::layout::{counted_file_bytes, file_bytes};
        let jobs = u64::from(self.most_jobs());
        let own = match self.ring_records(experiment.keep) {
            Some(records) => return file_bytes(records),
            None if experiment.counts_activations() => counted_file_bytes(jobs),
            None => file_bytes(jobs),
        };
        let beside = |workload: &Workload| {
            let tasks = workload.program.iter().flat_map(|program| &program.tasks);
            let jobs = tasks
                .skip(1)
                .map(|task| jobs_beside(self.most_jobs(), workload.period.ns(), task.period.ns()));
            jobs.map(|jobs| file_bytes(jobs.into())).sum::<u64>()
        };
        own + self.workloads().into_iter().map(beside).max().unwrap_or(0)
    }

    /// Bytes that the trial leaves on the disk, at most.
    pub(crate) fn run_bytes(&self, plan: &Plan) -> u64 {
        self.record_bytes(&plan.experiment) * self.cells.len() as u64
    }

    /// Bytes that one cell leaves on the disk, at most.
    fn record_bytes(&self, experiment: &Experiment) -> u64 {
        match experiment.keep {
            Keep::Samples => self.cell_bytes(experiment),
            Keep::Histograms { interval } => {
                let length = self
                    .workload
                    .period
                    .ns()
                    .saturating_mul(self.workload.jobs.into());
                let intervals = (length / interval.ns().max(1)).unsigned_abs() + 1;
                intervals * INTERVAL_BYTES + WORST_BYTES
            }
        }
    }
}

/// Bytes that an interval takes in a histogram log: three histograms of some thousand bins in use, packed.
const INTERVAL_BYTES: u64 = 16 << 10;
/// Bytes that the worst jobs of a cell take in its log.
const WORST_BYTES: u64 = 512 << 10;

/// Typical time to start and to end a load; only for the estimate of how long a run takes.
const LOAD_GUESS_NS: i64 = 500_000_000;

pub(crate) fn by_deadline(experiment: &Experiment) -> bool {
    let scale = experiment.scale.as_ref();
    scale.is_some_and(|scale| scale.reserve == Some(Enforcer::Deadline))
}

/// Most activations of another task of a program while the one of this period has so many: those of its time twice, to allow for turns.
pub(crate) fn jobs_beside(jobs: u32, period_ns: i64, other_ns: i64) -> u32 {
    let jobs = i64::from(jobs) + 16;
    let in_time = 2 * jobs.saturating_mul(period_ns) / other_ns.max(1);
    u32::try_from(in_time.saturating_add(jobs)).unwrap_or(u32::MAX)
}

/// Whether a program tells its jobs.
pub(crate) fn reports(workload: &Workload) -> bool {
    (workload.program.as_ref()).is_some_and(model::ProgramLoad::reports)
}
