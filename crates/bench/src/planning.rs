//! Planning an experiment for this machine: the trials measured, those not, and why.

mod cpus;
mod stage;

use std::collections::BTreeMap;

use engine::Engine;
use model::{
    Class, EngineKind, ExecutionStage, Experiment, InputError, LoadPlan, Requirement, TrialPlan,
};

use crate::here::{allowed_cpus, fifo_requirement};
use crate::needs::not_measured;
use crate::plan::{Plan, PlannedOwn, PlannedTrial, by_deadline};
use crate::{crowd, load, place, tasks};
use cpus::{cell_cpus, helper_cpus, load_cpus, one_cell_for_each_cpu, resolve_cpus};

impl Plan {
    /// Plans `experiment` for this machine, on which it changes nothing but the cache of kernels for virtual machines. `place` is where the cpus were given, for messages.
    ///
    /// # Errors
    /// When the experiment names a cpu that does not exist.
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
            helper_cpus(&plan.experiment.machine_of(trial), &allowed, place)?;
            let outside = trial.cells.iter().find(|kind| {
                let in_machine = kind.is_machine();
                plan.experiment.tasks.is_some()
                    && !plan.engines[kind].cell_sets_class()
                    && !in_machine
            });
            let class = outside.map(|kind| {
                Requirement::unmet(
                    format!("classes inside {kind}"),
                    format!("a cell of {kind} may not set the class of its own threads"),
                    "use another engine",
                )
            });
            let lacking = trial.cells.iter().find_map(|kind| unmet.get(kind));
            let planned = match lacking.or(class.as_ref()) {
                Some(requirement) => Err(requirement.clone()),
                None => planned(
                    &plan.experiment,
                    trial,
                    &cpus,
                    &allowed,
                    plan.rootless_user.as_ref(),
                ),
            };
            match planned {
                Ok(planned) => plan.trials.push(planned),
                Err(requirement) => {
                    (plan.not_measured).push(not_measured(&trial.name, &requirement));
                    if !plan.requirements.contains(&requirement) {
                        plan.requirements.push(requirement);
                    }
                }
            }
        }
        Ok(plan)
    }
}

/// A trial's plan for the machine, or its unmet need.
fn planned(
    experiment: &Experiment,
    trial: &TrialPlan,
    cpus: &[u32],
    allowed: &[u32],
    rootless_user: Option<&engine::User>,
) -> Result<PlannedTrial, Requirement> {
    let cpus = if trial.cpus.is_empty() {
        cpus
    } else {
        &trial.cpus
    };
    if experiment.workload_of(trial).stage == ExecutionStage::OutOfBand {
        let is_rootless = trial.cells.iter().any(|kind| kind.is_rootless());
        stage::out_of_band(rootless_user.filter(|_| is_rootless))?;
    }
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
    let machine_with = |vcpus: Option<u32>| {
        let mut asked = experiment.machine_of(trial);
        asked.vcpus = vcpus.or(asked.vcpus);
        engine::Machine::of(&asked, &|what| eprintln!("note    {what}"))
    };
    let resolved = |plan: &LoadPlan| {
        let mut load = load::resolve(plan, &rest)?;
        if plan.cell.is_some_and(|engine| engine.is_machine()) {
            load.machine = Some(machine_with(Some(1))?);
        }
        Ok(load)
    };
    let loads = trial.loads.iter().map(resolved);
    let loads = loads.collect::<Result<_, Requirement>>()?;
    let own: Vec<PlannedOwn> = (trial.own.iter().enumerate())
        .map(|(place, own)| PlannedOwn {
            workload: experiment.task_of(trial, place),
            priority: own.priority,
            name: own.name.clone(),
        })
        .collect();
    let longest = own.iter().map(|own| &own.workload);
    let longest = longest.max_by_key(|task| Plan::loop_ns(task)).cloned();
    let is_machine = trial.cells.iter().any(|kind| kind.is_machine());
    // Each cell of a task set is a virtual cpu.
    let vcpus = tasks.last().and_then(|task| u32::try_from(task.cell).ok());
    let machine = is_machine.then(|| machine_with(vcpus));
    Ok(PlannedTrial {
        machine: machine.transpose()?,
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

/// The cpus left for other work where the cells' cpus are kept free of it, or the unmet need.
fn rest_of(
    trial: &TrialPlan,
    cells: &[(EngineKind, u32)],
    allowed: &[u32],
) -> Result<Vec<u32>, Requirement> {
    let unmet = |reason: String, fix: &str| Requirement::unmet("isolated cpus", reason, fix);
    if place::uid() != 0 {
        return Err(unmet(
            "keeping cpus free of other work needs root".to_owned(),
            "run the same command with sudo, or leave out `isolate`",
        ));
    }
    let kept = |cpu: &u32| cells.iter().any(|(_, own)| own == cpu);
    let rest: Vec<u32> = allowed.iter().copied().filter(|cpu| !kept(cpu)).collect();
    if rest.is_empty() {
        return Err(unmet(
            format!(
                "the cells of this trial use every cpu ({}), so no cpu is left for the work that isolate = true moves away",
                host::cpus::format_list(allowed)
            ),
            "give the cells fewer cpus, or leave out `isolate`",
        ));
    }
    if let Some(load) = trial.loads.iter().find(|load| load.cpus.iter().any(kept)) {
        return Err(unmet(
            format!(
                "the load `{}` is assigned to cpus that isolate = true keeps free",
                load.name
            ),
            "give the load other cpus, or leave out its `cpus`",
        ));
    }
    Ok(rest)
}

/// On cgroup v1 with RT_GROUP_SCHED, containers need a budget of their own; the unmet requirement if too little of
/// it is free for a measurement.
fn budget_requirement() -> Option<Requirement> {
    const LEAST_US: u64 = 100_000;
    host::rtgroup::detect().ok()?;
    let (reason, fix) = match host::rtgroup::largest_free_runtime() {
        Ok(free_us) if free_us >= LEAST_US => return None,
        Ok(free_us) => (
            format!(
                "only {} us of real-time budget in every second are free for containers",
                model::grouped(free_us)
            ),
            "lower cpu.rt_runtime_us of the cgroups that hold the rest (timecell doctor shows them)",
        ),
        Err(error) => (error.to_string(), "see timecell doctor"),
    };
    Some(Requirement::unmet("real-time budget", reason, fix))
}

/// Whether the requested class is available; if not, lowers it and says why.
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
