//! What a run whose trials take turns will be able to see: a short run of the baseline against itself tells.

use bench::{BenchError, Going, Plan, Progress, Settings};
use model::{Counters, Experiment, TrialPlan};
use record::run::Run;

use super::bench::VERSION;
use super::bench_hold;
use crate::cli::Bench;
use crate::exit::CommandError;

/// Rounds of the pilot: what cells that are made anew differ by shows between them.
const ROUNDS: u32 = 3;
/// How long each of its two trials works in a round, ns.
const LENGTH_NS: i64 = 160_000_000;
const AGAIN: &str = "again";

/// A line on the differences that a run of this plan will see; `None` where trials take no turns.
///
/// # Errors
/// When the user has interrupted it.
pub fn line(plan: &Plan, what: &str, options: &Bench) -> Result<Option<String>, CommandError> {
    let experiment = &plan.experiment;
    let Some(turns) = experiment.turns.filter(|_| plan.trials.len() > 1) else {
        return Ok(None);
    };
    if experiment.rounds < report::FEWEST_ROUNDS {
        let fewest = report::FEWEST_ROUNDS;
        return Ok(Some(format!(
            "sees    no differences: ratios are told of {fewest} rounds or more\n"
        )));
    }
    let unknown = |why: &str| {
        Some(format!(
            "sees    not known: the pilot could not be run: {why}\n"
        ))
    };
    let seen = match run(experiment, what, options) {
        Ok(seen) => seen,
        Err(CommandError::Bench(BenchError::Interrupted)) => {
            return Err(CommandError::Bench(BenchError::Interrupted));
        }
        Err(error) => return Ok(unknown(&error.to_string())),
    };
    let Some(seen) = seen else {
        return Ok(unknown("it had too few turns"));
    };
    let rounds = match turns.looks(experiment.rounds).first() {
        Some(first) if turns.decide.is_some() => {
            format!("after {first} rounds, the first look, ")
        }
        _ => String::new(),
    };
    Ok(Some(format!(
        "sees    {rounds}differences of the median above about {} (a pilot of {} against itself)\n",
        report::percent(seen),
        experiment.baseline
    )))
}

/// Runs the pilot; the half width that the plan's intervals will have by it.
fn run(experiment: &Experiment, what: &str, options: &Bench) -> Result<Option<f64>, CommandError> {
    let Some(pilot) = of(experiment) else {
        return Ok(None);
    };
    let plan = Plan::new(pilot, what)?;
    let _held = bench_hold::of_plan(&plan, what, options)?;
    let place = tempfile::tempdir().map_err(|error| BenchError::Failed(error.to_string()))?;
    let settings = Settings {
        out: place.path().to_owned(),
        version: VERSION.to_owned(),
    };
    let run = match bench::run(&plan, &settings, &mut Silent) {
        Ok(run) => run,
        Err((_, error)) => return Err(CommandError::Bench(error)),
    };
    Ok(report::foresee(&run, AGAIN, experiment)?)
}

/// The baseline twice, in a few short rounds.
fn of(experiment: &Experiment) -> Option<Experiment> {
    let mut trials = experiment.trials.iter();
    let baseline = trials.find(|trial| trial.name == experiment.baseline)?;
    let mut pilot = experiment.clone();
    let turns = pilot.turns.as_mut()?;
    turns.decide = None;
    let period = experiment.workload_of(baseline).period;
    let jobs = LENGTH_NS / period.ns().max(1);
    // Laps enough to tell by: eight.
    let fewest = 8 * turns.jobs(period);
    pilot.rounds = ROUNDS;
    pilot.counters = Counters::None;
    let again = TrialPlan {
        name: AGAIN.to_owned(),
        ..baseline.clone()
    };
    pilot.trials = [baseline.clone(), again]
        .map(|trial| TrialPlan {
            jobs: Some(u32::try_from(jobs).unwrap_or(u32::MAX).max(fewest)),
            ..trial
        })
        .into();
    Some(pilot)
}

/// Nobody is told of a pilot's trials.
struct Silent;

impl Progress for Silent {
    fn began(&mut self, _: &Run, _: u32) {}
    fn trial(&mut self, _: u32, _: u32, _: &str, _: i64) {}
    fn going(&mut self, _: &Going) {}
    fn note(&mut self, _: &str) {}
}
