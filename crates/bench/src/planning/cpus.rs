//! Which cpus the cells and loads of a trial run on.

use model::{Experiment, InputError, Machine, TrialPlan};

use crate::here::allowed_cpus;

/// Replaces `per_cpu` by one cell for each cpu of the experiment, else of the machine; where the cpus are to be kept
/// free, the lowest is left to other work.
pub(super) fn one_cell_for_each_cpu(experiment: &mut Experiment) {
    let allowed = allowed_cpus();
    let given = &experiment.scheduling.cpus;
    for trial in experiment.trials.iter_mut().filter(|trial| trial.per_cpu) {
        trial.per_cpu = false;
        if trial.cpus.is_empty() {
            trial.cpus = match given.as_slice() {
                [] => allowed.clone(),
                given => given.to_vec(),
            };
            let all = allowed.iter().all(|cpu| trial.cpus.contains(cpu));
            if trial.isolate && all && allowed.len() > 1 {
                trial.cpus.retain(|cpu| Some(cpu) != allowed.first());
            }
        }
        let cpus = trial.cpus.clone();
        let each = |own: &model::OwnTask| vec![own.clone(); cpus.len()];
        trial.own = trial.own.iter().flat_map(each).collect();
        let engines = std::mem::take(&mut trial.cells);
        (trial.cpus, trial.cells) = (engines.iter())
            .flat_map(|engine| cpus.iter().map(move |cpu| (*cpu, *engine)))
            .unzip();
    }
}

/// Refuses a cell on a cpu that does not exist.
pub(super) fn cell_cpus(trial: &TrialPlan, allowed: &[u32], place: &str) -> Result<(), InputError> {
    match trial.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(absent) => Err(InputError::new(
            place,
            format!(
                "cpu {absent} of trial `{}` does not exist, is offline, or may not be used by this process",
                trial.name
            ),
            format!("the usable cpus are {}", host::cpus::format_list(allowed)),
        )),
    }
}

/// Refuses a load on a cpu that does not exist.
pub(super) fn load_cpus(trial: &TrialPlan, allowed: &[u32], place: &str) -> Result<(), InputError> {
    for load in &trial.loads {
        if let Some(absent) = load.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(InputError::new(
                place,
                format!(
                    "cpu {absent} of the load `{}` in trial `{}` does not exist, is offline, or may not be used by this process",
                    load.name, trial.name
                ),
                format!("the usable cpus are {}", host::cpus::format_list(allowed)),
            ));
        }
    }
    Ok(())
}

/// The same of QEMU's threads that execute no virtual cpu.
pub(super) fn helper_cpus(
    machine: &Machine,
    allowed: &[u32],
    place: &str,
) -> Result<(), InputError> {
    let absent = machine
        .helpers
        .cpus
        .iter()
        .find(|cpu| !allowed.contains(cpu));
    absent.map_or(Ok(()), |absent| {
        Err(InputError::new(
            place,
            format!(
                "cpu {absent} of the machine's `helpers` does not exist, is offline, or may not be used by this process"
            ),
            format!("the usable cpus are {}", host::cpus::format_list(allowed)),
        ))
    })
}

pub(super) fn resolve_cpus(
    experiment: &mut Experiment,
    place: &str,
) -> Result<Vec<u32>, InputError> {
    let allowed = allowed_cpus();
    let cpus = &mut experiment.scheduling.cpus;
    // A task set takes a cpu for each of its cells.
    if cpus.is_empty() && experiment.scale.is_some() {
        // A crowd fills the machine.
        cpus.clone_from(&allowed);
    }
    if cpus.is_empty() && experiment.tasks.is_none() {
        cpus.push(host::cpus::default_rt_cpu());
    }
    if let Some(absent) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(InputError::new(
            place,
            format!("cpu {absent} does not exist, is offline, or may not be used by this process"),
            format!("the usable cpus are {}", host::cpus::format_list(&allowed)),
        ));
    }
    Ok(cpus.clone())
}
