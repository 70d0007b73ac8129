//! `bench --decide`, `--until`, `--at-most` and `--quick`: how long a run may take, and the conditions by which it is judged at its end.

use bench::Plan;
use model::{Duration, Experiment, InputError, Work};
use record::run::Run;
use study::Standing;
use study::judge::Threshold;

use crate::cli;
use crate::exit::CommandError;
use crate::progress::{NO_RATIO, about};

/// Most rounds of a run, as a multiple of the rounds before its first look: four doublings.
const MOST_ROUNDS: u64 = 16;
/// About how long a smoke run may take, ns, unless its fewest rounds take longer.
const QUICK_NS: i64 = 25_000_000_000;

/// The conditions of an experiment. If they come from the command line, its rounds become as many as may be needed, unless the
/// command line sets them as well.
///
/// # Errors
/// If more jobs cannot answer one of them.
pub fn plan(
    what: &str,
    options: &cli::Experiment,
    experiment: &mut Experiment,
) -> Result<Vec<Threshold>, InputError> {
    let place = match options.until.until.is_empty() {
        true => what,
        false => "--until",
    };
    let conditions = experiment.until.clone();
    if !options.until.until.is_empty() && options.trials.rounds.is_none() {
        // Enough for all looks.
        experiment.rounds = MOST_ROUNDS as u32;
    }
    let mut most = 0;
    for condition in &conditions {
        let needed = study::jobs_until(condition, experiment).ok_or_else(|| {
            InputError::new(
                format!("{place} '{condition}'"),
                "more jobs cannot answer this",
                "ask for a quantile of a time, such as 'latency.p99.99 < 100us'",
            )
        })?;
        most = most.max(needed);
    }
    if !options.until.until.is_empty() && options.trials.rounds.is_none() {
        let jobs = u64::from(experiment.jobs().0.max(1));
        // A tenth more, so that a few skipped activations do not spoil the first look.
        let most = most.saturating_add(most.div_ceil(10));
        let rounds = most.div_ceil(jobs).saturating_mul(MOST_ROUNDS);
        experiment.rounds = u32::try_from(rounds).unwrap_or(u32::MAX).min(10_000);
    }
    Ok(conditions)
}

/// Gives a smoke run that would take too long, because its cells take long to create, fewer rounds, down to three, and then
/// shorter ones.
///
/// # Errors
/// As [`Plan::new`].
pub fn quick(options: &cli::Experiment, mut plan: Plan, place: &str) -> Result<Plan, InputError> {
    let is_smoke =
        options.trials.quick && options.trials.rounds.is_none() && options.pace.jobs.is_none();
    let ends_itself = options.decided.decide.is_none() && options.until.until.is_empty();
    // An endless program has as many rounds as its medians need.
    let is_endless = plan.experiment.workload.work == Work::Endless;
    if !is_smoke || !ends_itself || is_endless || plan.trials.is_empty() {
        return Ok(plan);
    }
    let fit = plan.rounds_within(QUICK_NS).max(report::FEWEST_ROUNDS);
    plan.experiment.rounds = plan.experiment.rounds.min(fit);
    while plan.expected_ns() > QUICK_NS && options.trials.duration.is_none() {
        let mut shorter = plan.experiment.clone();
        if !shorter.halve_turns() {
            break;
        }
        plan = Plan::new(shorter, place)?;
    }
    Ok(plan)
}

/// Limits a run that ends once something is known to the rounds that should fit into this time.
///
/// # Errors
/// If nothing is to be found out, or the time is too short to find it out.
pub fn at_most(time: Duration, plan: &mut Plan) -> Result<(), InputError> {
    let told = |what: String, fix: &str| Err(InputError::new("--at-most", what, fix));
    let experiment = &plan.experiment;
    let decides = experiment.turns.is_some_and(|turns| turns.decide.is_some());
    if !decides && experiment.until.is_empty() {
        let rounds = report::plural(experiment.rounds.into(), "round");
        let what = format!(
            "`{}` ends after {rounds}, whatever is known",
            experiment.name
        );
        return told(
            what,
            "add --decide or --until, or set the length with --duration and --rounds",
        );
    }
    let fewest = match decides {
        true => report::FEWEST_ROUNDS.min(experiment.rounds),
        false => 1,
    };
    let fit = plan.rounds_within(time.ns());
    if fit < fewest && !plan.trials.is_empty() {
        let round = plan.expected_ns() / i64::from(experiment.rounds.max(1));
        let rounds = match fewest {
            1 => "one round takes".to_owned(),
            fewest => format!("the {fewest} rounds that ratios need take"),
        };
        let what = format!(
            "{rounds} about {}",
            about(round.saturating_mul(fewest.into()))
        );
        return told(
            what,
            "allow that long, or set fewer jobs with --jobs or --duration",
        );
    }
    plan.experiment.rounds = plan.experiment.rounds.min(fit).max(1);
    plan.at_most_ns = Some(time.ns());
    Ok(())
}

/// The plan line of a run with `--until`.
pub fn line(experiment: &Experiment, expected_ns: i64) -> Option<String> {
    let first = *experiment.looks().first()?;
    if experiment.until.is_empty() {
        return None;
    }
    let conditions: Vec<String> = experiment.until.iter().map(Threshold::to_string).collect();
    let part = f64::from(first) / f64::from(experiment.rounds.max(1));
    Some(format!(
        "until   it is known whether {}: first look after {} (about {})\n",
        conditions.join(", "),
        report::plural(first.into(), "round"),
        about((expected_ns as f64 * part) as i64),
    ))
}

/// The outcome of `--decide`.
pub struct Decided {
    /// How precisely each ratio was to be known, as a fraction of it.
    within: f64,
    standing: Standing,
}

/// The outcome of a run with `--decide`; `None` for a run without.
///
/// # Errors
/// If the run cannot be read.
pub fn decided(run: &Run) -> Result<Option<Decided>, CommandError> {
    let turns = run.experiment()?.turns;
    let Some(within) = turns.and_then(|turns| turns.decides_within()) else {
        return Ok(None);
    };
    let standing = Standing::of(run)?;
    Ok(Some(Decided { within, standing }))
}

impl Decided {
    /// Whether a ratio is neither known well enough nor shown to differ from 1, or there is none.
    pub fn is_open(&self) -> bool {
        self.standing.is_open()
    }

    /// The line for the terminal, if a ratio is open.
    pub fn line(&self) -> Option<String> {
        let open = &self.standing.undecided;
        if self.standing.compared == 0 {
            return Some(format!("decide  {NO_RATIO}"));
        }
        (!open.is_empty()).then(|| {
            format!(
                "decide  {} of {} ratios are neither known to within {} nor shown to differ from 1: {}",
                open.len(),
                self.standing.compared,
                report::part(self.within),
                open.join(", ")
            )
        })
    }

    /// The outcome as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "within": self.within,
            "compared": self.standing.compared,
            "undecided": self.standing.undecided,
        })
    }
}
