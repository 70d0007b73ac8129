//! Applying the options of the command line to a scale study.

use super::scale::{Fault, check_counts, check_engines};
use super::{Experiment, Keep, Overrides, Scale};
use crate::InputError;

/// Refuses options that have no meaning here.
pub(crate) fn refuse(options: &Overrides, experiment: &Experiment) -> Result<(), InputError> {
    let given = |list: &[(&'static str, bool)]| list.iter().find(|(_, given)| *given).map(|o| o.0);
    if experiment.scale.is_none() {
        let of_studies = [
            ("--counts", !options.counts.is_empty()),
            (
                "--reserve",
                options.reserve.is_some() && experiment.tasks.is_none(),
            ),
        ];
        return match given(&of_studies) {
            None => Ok(()),
            Some("--reserve") => Err(InputError::new(
                "--reserve",
                "only the cells of a scale study or of a task set can be held",
                "use scenario scale, taskset or reservations",
            )),
            Some(option) => Err(InputError::new(
                option,
                "only a scale study has growing numbers of cells",
                "use scenario scale, or [scale] in an experiment file",
            )),
        };
    }
    let not_here = [
        ("--load", !options.loads.is_empty()),
        ("--histogram", experiment.keep != Keep::Samples),
    ];
    match given(&not_here) {
        None => Ok(()),
        Some(option) => Err(InputError::new(
            option,
            "a scale study has no loads but its own cells, and its jobs are recorded one by one",
            "remove the option",
        )),
    }
}

/// Largest count of a smoke run.
const QUICK_COUNT: u32 = 64;
/// Approximate number of jobs of all cells of one trial of a smoke run.
const QUICK_JOBS: u32 = 10_000;

/// A smoke run: up to 64 cells, half a second each, once.
pub(crate) fn quick(experiment: &mut Experiment) {
    let Some(scale) = &mut experiment.scale else {
        return;
    };
    if scale.counts.first().is_some_and(|n| *n <= QUICK_COUNT) {
        scale.counts.retain(|n| *n <= QUICK_COUNT);
    }
    scale.total_jobs = QUICK_JOBS;
    experiment.workload.jobs = Scale::LEAST_JOBS;
    experiment.rounds = 1;
    experiment.rescale();
}

/// Changes the study, and the trials that follow from it.
pub(crate) fn apply(options: &Overrides, experiment: &mut Experiment) -> Result<(), InputError> {
    let Some(scale) = &mut experiment.scale else {
        return Ok(());
    };
    let faulty =
        |option: &'static str| move |(what, fix): Fault| InputError::new(option, what, fix);
    if !options.engines.is_empty() {
        check_engines(&options.engines).map_err(faulty("--engine"))?;
        scale.engines.clone_from(&options.engines);
    }
    if !options.counts.is_empty() {
        check_counts(&options.counts).map_err(faulty("--counts"))?;
        scale.counts.clone_from(&options.counts);
    }
    if let Some(reserve) = options.reserve {
        let known = Scale::reserves();
        if !known.iter().any(|(_, one)| *one == reserve) {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(InputError::new(
                "--reserve",
                format!(
                    "the cells of a scale study cannot be held by `{}`",
                    Scale::reserve_name(reserve)
                ),
                format!("it is one of {}", names.join(", ")),
            ));
        }
        scale.reserve = reserve;
    }
    experiment.rescale();
    Ok(())
}

impl Experiment {
    /// Rebuilds the trials after a setting on which they depend has changed.
    pub(crate) fn rescale(&mut self) {
        if let Some(scale) = &self.scale {
            self.trials = scale.trials(self.workload.jobs);
            if !self.trials.iter().any(|trial| trial.name == self.baseline) {
                self.baseline = (self.trials.first())
                    .map(|trial| trial.name.clone())
                    .unwrap_or_default();
            }
        }
    }
}
