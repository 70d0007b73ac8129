//! An experiment held against the machine: what will be measured, what not, and why.

mod cpus;

use std::collections::BTreeMap;

use engine::Engine;
use host::sched::{self, SchedError};
use model::{
    Class, Enforcer, EngineKind, Experiment, InputError, Keep, Requirement, TrialPlan, Work,
    Workload,
};
use record::summary::NotMeasured;

use crate::crowd;
use crate::load::{self, PlannedLoad};
use crate::place;
use crate::run::{self, Todo};
use crate::tasks::{self, PlannedTask};
use crate::turns::{self, PlannedTurns};
use cpus::{cell_cpus, load_cpus, one_cell_for_each_cpu, resolve_cpus};

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
    /// What disturbs them.
    pub loads: Vec<PlannedLoad>,
    /// Whether their cpus are kept free of other work.
    pub isolate: bool,
    /// The task of each entry of `cells` where a task set is run: an entry is a thread then. Empty otherwise.
    pub tasks: Vec<PlannedTask>,
    /// Cells that are created at the same time; 1 but in a scale study.
    pub parallel: u32,
    /// The trials that it joins, which take turns; `None`: it is one trial.
    pub turns: Option<PlannedTurns>,
}

/// The task of one cell of a trial whose cells have their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedOwn {
    /// The task.
    pub workload: Workload,
    /// Priority of SCHED_FIFO, where it is not the experiment's.
    pub priority: Option<u8>,
    /// What tables call the cell.
    pub name: Option<String>,
}

/// What a run will do.
pub struct Plan {
    /// The experiment with cpus filled in and, where real time is not to be had, the class lowered.
    pub experiment: Experiment,
    /// What will be measured, in the order of one round.
    pub trials: Vec<PlannedTrial>,
    /// What will not.
    pub not_measured: Vec<NotMeasured>,
    /// Met and unmet, each once.
    pub requirements: Vec<Requirement>,
    /// Whether the cells run in a real-time class.
    pub real_time: bool,
    /// How long the run may take, ns: no round begins of which it is foreseen that it would end later.
    pub at_most_ns: Option<i64>,
    pub(crate) engines: BTreeMap<EngineKind, Box<dyn Engine>>,
    pub(crate) rootless_user: Option<engine::User>,
}

impl Plan {
    /// Holds `experiment` against this machine, on which it changes nothing. `place` is where the cpus were
    /// written, for messages.
    ///
    /// # Errors
    /// When the experiment names a cpu that is not there.
    pub fn new(mut experiment: Experiment, place: &str) -> Result<Plan, InputError> {
        one_cell_for_each_cpu(&mut experiment);
        let cpus = resolve_cpus(&mut experiment, place)?;
        let mut requirements = Vec::new();
        let real_time = class_requirement(&mut experiment, &mut requirements);
        let options = engine::Options {
            rootless_user: experiment.rootless_user.clone(),
        };
        let engines: BTreeMap<EngineKind, Box<dyn Engine>> = experiment
            .engines()
            .into_iter()
            .map(|kind| (kind, engine::by_kind(kind, &options)))
            .collect();
        let mut unmet: BTreeMap<EngineKind, Requirement> = BTreeMap::new();
        for (kind, engine) in &engines {
            for requirement in engine.requirements() {
                if !requirement.met {
                    unmet.entry(*kind).or_insert_with(|| requirement.clone());
                }
                if !requirements.contains(&requirement) {
                    requirements.push(requirement);
                }
            }
        }
        if let Some(without) = crowd::requirement(&experiment, real_time) {
            for kind in engines.keys() {
                unmet.entry(*kind).or_insert_with(|| without.clone());
            }
            if !requirements.contains(&without) {
                requirements.push(without);
            }
        }
        let by_group = real_time && !by_deadline(&experiment);
        if let Some(no_budget) = by_group.then(budget_requirement).flatten() {
            for kind in engines.keys().filter(|kind| **kind != EngineKind::Bare) {
                unmet.entry(*kind).or_insert_with(|| no_budget.clone());
            }
            requirements.push(no_budget);
        }
        let mut plan = Plan {
            trials: Vec::new(),
            not_measured: Vec::new(),
            requirements,
            real_time,
            at_most_ns: None,
            rootless_user: engine::users::choose(options.rootless_user.as_deref()).ok(),
            engines,
            experiment,
        };
        let allowed = allowed_cpus();
        for trial in &plan.experiment.trials {
            cell_cpus(trial, &allowed, place)?;
            load_cpus(trial, &allowed, place)?;
            let outside = trial.cells.iter().find(|kind| {
                plan.experiment.tasks.is_some() && !plan.engines[kind].cell_sets_class()
            });
            let class = outside.map(|kind| {
                Requirement::unmet(
                    format!("classes inside {kind}"),
                    format!("a cell of {kind} may not give its threads classes itself"),
                    "use another engine",
                )
            });
            let lacking = trial.cells.iter().find_map(|kind| unmet.get(kind));
            let planned = match lacking.or(class.as_ref()) {
                Some(requirement) => Err(requirement.clone()),
                None => planned(&plan.experiment, trial, &cpus, &allowed),
            };
            match planned {
                Ok(planned) => plan.trials.push(planned),
                Err(requirement) => {
                    plan.not_measured.push(NotMeasured {
                        trial: trial.name.clone(),
                        reason: requirement.reason.clone(),
                        mend: requirement.mend.clone().unwrap_or_default(),
                    });
                    if !plan.requirements.contains(&requirement) {
                        plan.requirements.push(requirement);
                    }
                }
            }
        }
        Ok(plan)
    }

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

    /// How long the run should take, ns: the loops and some creation time.
    pub fn expected_ns(&self) -> i64 {
        let round = (self.round().iter()).fold(0i64, |sum, todo| {
            sum.saturating_add(todo.planned.expected_ns())
        });
        round.saturating_mul(i64::from(self.experiment.rounds))
    }

    /// How many rounds should take so long, ns.
    pub fn rounds_within(&self, ns: i64) -> u32 {
        let round = self.expected_ns() / i64::from(self.experiment.rounds.max(1));
        u32::try_from(ns.max(0) / round.max(1)).unwrap_or(u32::MAX)
    }

    /// Bytes of samples of one trial in shared memory, at most.
    pub fn trial_bytes(&self) -> u64 {
        let bytes =
            |trial: &PlannedTrial| trial.cell_bytes(&self.experiment) * trial.cells.len() as u64;
        (self.round().iter())
            .map(|todo| bytes(&todo.planned))
            .max()
            .unwrap_or(0)
    }

    /// What runs at a time, in one round.
    fn round(&self) -> Vec<Todo<'_>> {
        turns::joined(self, run::round(self, 1, 1))
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
    /// The entry of `cells` whose cell the entry `index` shares: its own, but for the threads of a task set.
    pub(crate) fn first_of_cell(&self, index: usize) -> usize {
        let Some(task) = self.tasks.get(index) else {
            return index;
        };
        let same = |other: &PlannedTask| other.cell == task.cell;
        self.tasks.iter().position(same).unwrap_or(index)
    }

    /// The entries of `cells` that share the cell of entry `first`.
    pub(crate) fn sharing(&self, first: usize) -> Vec<usize> {
        (first..self.cells.len())
            .filter(|index| self.first_of_cell(*index) == first)
            .collect()
    }

    /// The task of one entry that is no thread of a task set.
    pub fn workload_of(&self, index: usize) -> &Workload {
        (self.own.get(index)).map_or(&self.workload, |own| &own.workload)
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
            .filter(|(index, _)| self.first_of_cell(*index) == *index)
            .map(|(_, (kind, _))| creation_guess_ns(*kind))
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
        match self.ring_records(experiment.keep) {
            Some(records) => file_bytes(records),
            None if experiment.counts_activations() => counted_file_bytes(jobs),
            None => file_bytes(jobs),
        }
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

/// A trial held against the machine, or what it lacks.
fn planned(
    experiment: &Experiment,
    trial: &TrialPlan,
    cpus: &[u32],
    allowed: &[u32],
) -> Result<PlannedTrial, Requirement> {
    let cpus = if trial.cpus.is_empty() {
        cpus
    } else {
        &trial.cpus
    };
    let tasks = match &experiment.tasks {
        Some(load) => tasks::planned(experiment, load, trial, allowed)?,
        None => Vec::new(),
    };
    let cells: Vec<(EngineKind, u32)> = if tasks.is_empty() {
        (trial.cells.iter().copied())
            .zip(cpus.iter().copied().cycle())
            .collect()
    } else {
        (tasks.iter())
            .map(|task| (trial.cells[0], task.cpu()))
            .collect()
    };
    let rest = if trial.isolate {
        rest_of(trial, &cells, allowed)?
    } else {
        allowed.to_vec()
    };
    let loads = (trial.loads.iter())
        .map(|plan| load::resolve(plan, &rest))
        .collect::<Result<_, _>>()?;
    let own: Vec<PlannedOwn> = (trial.own.iter().enumerate())
        .map(|(place, own)| PlannedOwn {
            workload: experiment.task_of(trial, place),
            priority: own.priority,
            name: own.name.clone(),
        })
        .collect();
    let longest = own.iter().map(|own| &own.workload);
    let longest = longest.max_by_key(|task| Plan::loop_ns(task)).cloned();
    Ok(PlannedTrial {
        name: trial.name.clone(),
        cells,
        tasks,
        workload: longest.unwrap_or_else(|| experiment.workload_of(trial)),
        own,
        loads,
        isolate: trial.isolate,
        parallel: experiment.scale.as_ref().map_or(1, |scale| scale.parallel),
        turns: None,
    })
}

/// The cpus that other work is left with where the cells' are kept free of it, or what is lacking.
fn rest_of(
    trial: &TrialPlan,
    cells: &[(EngineKind, u32)],
    allowed: &[u32],
) -> Result<Vec<u32>, Requirement> {
    let unmet = |reason: String, mend: &str| Requirement::unmet("isolated cpus", reason, mend);
    if place::uid() != 0 {
        return Err(unmet(
            "keeping cpus free of other work needs root".to_owned(),
            "run the same command with sudo, or leave `isolate` out",
        ));
    }
    let kept = |cpu: &u32| cells.iter().any(|(_, own)| own == cpu);
    let rest: Vec<u32> = allowed.iter().copied().filter(|cpu| !kept(cpu)).collect();
    if rest.is_empty() {
        return Err(unmet(
            format!(
                "the cells of this trial use every cpu ({}), so none is left for the work that isolate = true moves away",
                host::cpus::format_list(allowed)
            ),
            "give the cells fewer cpus, or leave `isolate` out",
        ));
    }
    if let Some(load) = trial.loads.iter().find(|load| load.cpus.iter().any(kept)) {
        return Err(unmet(
            format!(
                "the load `{}` is asked onto cpus that isolate = true keeps free",
                load.name
            ),
            "give the load other cpus, or leave its `cpus` out",
        ));
    }
    Ok(rest)
}

/// Cpus that this process may use.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    sched::get_affinity(0)
        .or_else(|_| host::cpus::online().map_err(|e| e.to_string()))
        .unwrap_or_default()
}

/// Typical time to start and to end a load; only for the estimate of how long a run takes.
const LOAD_GUESS_NS: i64 = 500_000_000;

/// Typical time from the request to the payload; only for the first estimate of how long a run takes.
fn creation_guess_ns(kind: EngineKind) -> i64 {
    match kind {
        EngineKind::Bare => 5_000_000,
        EngineKind::Embedded | EngineKind::Crun | EngineKind::Runc => 60_000_000,
        EngineKind::Podman | EngineKind::PodmanRootless | EngineKind::Docker => 700_000_000,
    }
}

/// On cgroup v1 with RT_GROUP_SCHED, containers need a budget of their own; the unmet requirement if too little of
/// it is free for a measurement.
fn budget_requirement() -> Option<Requirement> {
    const LEAST_US: u64 = 100_000;
    host::rtgroup::detect().ok()?;
    let (reason, mend) = match host::rtgroup::largest_free_runtime() {
        Ok(free_us) if free_us >= LEAST_US => return None,
        Ok(free_us) => (
            format!(
                "only {free_us} us of real-time budget in every 1,000,000 us are free for containers"
            ),
            "lower cpu.rt_runtime_us of the cgroups that hold the rest (timecell doctor shows them)",
        ),
        Err(error) => (error.to_string(), "see timecell doctor"),
    };
    Some(Requirement::unmet("real-time budget", reason, mend))
}

fn by_deadline(experiment: &Experiment) -> bool {
    let scale = experiment.scale.as_ref();
    scale.is_some_and(|scale| scale.reserve == Some(Enforcer::Deadline))
}

/// Whether the class asked for is to be had; if not, lowers it and says why.
fn class_requirement(experiment: &mut Experiment, requirements: &mut Vec<Requirement>) -> bool {
    let Class::Fifo { priority } = experiment.scheduling.class else {
        return false;
    };
    let own = experiment.trials.iter().flat_map(|trial| &trial.own);
    let priority = own.filter_map(|own| own.priority).fold(priority, u8::max);
    let requirement = if by_deadline(experiment) {
        tasks::deadline_requirement(&experiment.scheduling.cpus)
    } else {
        fifo_requirement(priority)
    };
    let met = requirement.met;
    if !met {
        experiment.scheduling.class = Class::Other;
    }
    requirements.push(requirement);
    met
}

/// Whether this process may have SCHED_FIFO with this priority.
pub(crate) fn fifo_requirement(priority: u8) -> Requirement {
    let what = format!("SCHED_FIFO {priority}");
    let wanted = sched::Class::Fifo { priority };
    // Tried by a thread that ends with it.
    let tried = std::thread::spawn(move || sched::set_class(0, &wanted)).join();
    let mend = if place::uid() == 0 {
        "give this process CAP_SYS_NICE and its cpu cgroup a real-time budget (timecell doctor shows both)"
    } else {
        "run the same command with sudo, or write `* - rtprio 99` to /etc/security/limits.d/timecell.conf and log in again"
    };
    match tried {
        Ok(Ok(())) => Requirement::met(what, "granted to this process"),
        Ok(Err(SchedError::NoPrivilege { why, .. })) => Requirement::unmet(what, why, mend),
        Ok(Err(other)) => Requirement::unmet(what, other.to_string(), mend),
        Err(_) => Requirement::unmet(what, "the thread that tried it ended", mend),
    }
}
