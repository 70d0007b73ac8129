//! The differences that a run whose trials take turns will be able to see, estimated by a pilot: a short run of the baseline
//! against itself.

use std::path::Path;

use bench::{BenchError, Going, Plan, Progress};
use model::{Counters, Experiment, TrialPlan};
use record::run::Run;
use record::summary::RunSummary;
use study::Foreseen;

use super::bench_hold;
use super::common::settings;
use crate::cli::Measured;
use crate::exit::CommandError;

/// Rounds of the pilot: they show by how much recreated cells differ.
const ROUNDS: u32 = 3;
/// Length of each of its two trials in a round, ns.
const LENGTH_NS: i64 = 160_000_000;
/// Most pilots to run until one has enough turns.
const PILOTS: u32 = 3;
const AGAIN: &str = "again";
/// By which factor jobs are longer in a slow lap that the pilot has not met, if no earlier run tells; the line states it.
const SLOW_FACTOR: f64 = 2.0;

/// A line about the differences that a run of this plan will see; `None` if it compares no trials.
///
/// # Errors
/// If the user interrupts it.
pub fn line(plan: &Plan, what: &str, options: &Measured) -> Result<Option<String>, CommandError> {
    let experiment = &plan.experiment;
    if plan.trials.len() < 2 || experiment.scale.is_some() || experiment.tasks.is_some() {
        return Ok(None);
    }
    if experiment.rounds < report::FEWEST_ROUNDS {
        let fewest = report::FEWEST_ROUNDS;
        return Ok(Some(format!(
            "sees    no differences: ratios need {fewest} rounds or more\n"
        )));
    }
    let Some(turns) = experiment.turns else {
        return Ok(Some(
            "sees    not known in advance: whole rounds have no pilot\n".to_owned(),
        ));
    };
    let unknown = |why: &str| Some(format!("sees    not known: the pilot failed: {why}\n"));
    let last = last(experiment, &options.out);
    let slow_factor = (last.as_ref()).and_then(|last| last.slow_factor);
    let slow_factor = slow_factor.unwrap_or(SLOW_FACTOR);
    // A machine that stalls for a moment spoils a pilot of a second, so try again.
    let mut pilots = (0..PILOTS).map(|_| run(experiment, what, options, slow_factor));
    let enough = pilots.find(|seen| !matches!(seen, Ok(None)));
    let seen = match enough.unwrap_or(Ok(None)) {
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
        "sees    {rounds}differences of the median above {}{} (a pilot of {} against itself, {}{})\n",
        range(seen),
        group(experiment),
        experiment.baseline,
        slow_laps(seen, slow_factor),
        match last.and_then(|last| last.saw) {
            Some(saw) => format!("; the last run of this plan: {}", report::part(saw)),
            None => String::new(),
        }
    )))
}

/// The allowance of the upper end beyond the pilot's own laps.
fn slow_laps(seen: Foreseen, factor: f64) -> String {
    let laps = report::plural(seen.laps as u64, "lap");
    let met = match seen.slow_laps {
        0 => "none".to_owned(),
        slow => report::grouped(slow as u64),
    };
    format!(
        "{met} of {laps} slow; the upper end allows for {} of laps being {factor:.1} times as long",
        report::part(seen.slow_share_at_most),
    )
}

/// The findings of an earlier run of the same plan.
struct Last {
    /// The smallest difference that it would have seen, as a fraction.
    saw: Option<f64>,
    /// The factor between the machine's states, where it met two.
    slow_factor: Option<f64>,
}

/// The findings of the newest run of the same plan in `out`: unlike a pilot of a second, a run meets a machine's rarer states.
fn last(experiment: &Experiment, out: &Path) -> Option<Last> {
    /// Runs to look at.
    const MOST: usize = 100;
    let entries = std::fs::read_dir(out).ok()?.flatten();
    let mut runs: Vec<_> = entries.map(|entry| entry.path()).collect();
    // Their names start with the time at which they started.
    runs.sort_unstable_by(|a, b| b.cmp(a));
    runs.iter().take(MOST).find_map(|dir| {
        let run = Run::open(dir).ok()?;
        let same = run.experiment().ok()? == *experiment;
        let summary: RunSummary = run.read().ok().filter(|_| same)?;
        let mut in_turns = summary
            .cells
            .iter()
            .filter_map(|cell| cell.in_turns.first());
        Some(Last {
            saw: report::would_have_seen(&summary),
            slow_factor: in_turns.find_map(|turns| turns.slow_over_fast),
        })
    })
}

/// `0.40 % to 0.90 %`, or `about 0.40 %` if both print alike.
fn range(seen: Foreseen) -> String {
    let ends = [seen.half_width, seen.at_most].map(report::part);
    match ends[0] == ends[1] {
        true => format!("about {}", ends[0]),
        false => ends.join(" to "),
    }
}

/// Among which trials, if not all that take turns have the same loads: each such group has its own intervals.
fn group(experiment: &Experiment) -> String {
    let loads = |trial: &TrialPlan| -> Vec<String> {
        trial.loads.iter().map(|load| load.name.clone()).collect()
    };
    let Some(baseline) = experiment.trial(&experiment.baseline) else {
        return String::new();
    };
    let own = loads(baseline);
    if experiment.trials.iter().all(|trial| loads(trial) == own) {
        return String::new();
    }
    match own.as_slice() {
        [] => " among trials without a load".to_owned(),
        own => format!(" among trials under {}", own.join(" and ")),
    }
}

/// Runs the pilot; returns the half width of the plan's intervals that it predicts.
fn run(
    experiment: &Experiment,
    what: &str,
    options: &Measured,
    slow_factor: f64,
) -> Result<Option<Foreseen>, CommandError> {
    let Some(pilot) = of(experiment) else {
        return Ok(None);
    };
    let plan = Plan::new(pilot, what)?;
    let _held = bench_hold::of_plan(&plan, what, options)?;
    let place = tempfile::tempdir().map_err(|error| BenchError::Failed(error.to_string()))?;
    let run = match bench::run(&plan, &settings(place.path(), None), &mut Silent) {
        Ok(run) => run,
        Err((_, error)) => return Err(CommandError::Bench(error)),
    };
    Ok(study::foresee(&run, AGAIN, experiment, slow_factor)?)
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
    // Eight laps are enough for an estimate.
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

/// The progress of a pilot is not shown.
struct Silent;

impl Progress for Silent {
    fn began(&mut self, _: &Run, _: u32) {}
    fn trial(&mut self, _: u32, _: u32, _: &str, _: i64) {}
    fn going(&mut self, _: &Going) {}
    fn note(&mut self, _: &str) {}
}
