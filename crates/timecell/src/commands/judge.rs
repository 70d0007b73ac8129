//! Thresholds and baselines: what `bench` and `report` have in common.

use model::{Experiment, InputError, TrialPlan};
use record::run::Run;
use record::thresholds::{THRESHOLDS_SCHEMA, Thresholds};
use study::judge::{self, Judged, Outcome, Readings, Threshold};
use study::{Ask, Compared, Kind, Studied};

use crate::cli::Judge;
use crate::commands::common::{must, style};
use crate::exit::{CommandError, Ended};
use crate::out;

/// What a run is to be judged by.
pub struct Asked {
    thresholds: Vec<Threshold>,
    baseline: Option<Run>,
    /// What ratios are to, where that run cannot be read any more.
    gone: Option<String>,
}

/// What came of it.
#[derive(Default)]
pub struct Found {
    /// Verdicts; `None` where no threshold was given.
    pub judged: Option<Judged>,
    /// The run against the baseline run.
    pub compared: Option<Compared>,
}

/// Refuses a baseline of another kind, whatever else is allowed.
fn must_be_alike(kind: Kind, baseline: &Run) -> Result<(), CommandError> {
    let there = Kind::of(baseline)?;
    if there == kind {
        return Ok(());
    }
    let place = format!("--baseline {}", baseline.dir().display());
    let what = format!("it is {} there and {} here", there.name(), kind.name());
    Err(InputError::new(place, what, "name a run of the same kind").into())
}

impl Asked {
    /// From the options; opens the baseline, so that a wrong name is said before anything is measured.
    pub fn of(options: &Judge) -> Result<Asked, CommandError> {
        let baseline = options.baseline.as_deref().map(Run::open).transpose()?;
        Ok(Asked {
            thresholds: options.fail_if.clone(),
            baseline,
            gone: None,
        })
    }

    /// What was kept with the run when it was measured; a baseline that is gone is said and not compared with.
    pub fn kept(run: &Run) -> Result<Asked, CommandError> {
        let kept = run.read_if_there::<Thresholds>()?;
        let thresholds = kept.iter().flat_map(|kept| kept.fail_if.clone()).collect();
        let (mut baseline, mut gone) = (None, None);
        if let Some(name) = kept.and_then(|kept| kept.baseline) {
            match Run::open(name.as_ref()) {
                Ok(run) => baseline = Some(run),
                Err(error) => {
                    out::note(&format!("note    the baseline cannot be read: {error}"));
                    gone = Some(format!("run {name}, which cannot be read,"));
                }
            }
        }
        Ok(Asked {
            thresholds,
            baseline,
            gone,
        })
    }

    /// The options where any is given, else what was kept.
    pub fn of_or_kept(options: &Judge, run: &Run) -> Result<Asked, CommandError> {
        if options.fail_if.is_empty() && options.baseline.is_none() {
            return Asked::kept(run);
        }
        Asked::of(options)
    }

    /// What a run goes on to find out must hold at its end.
    pub fn and_until(mut self, conditions: &[Threshold]) -> Asked {
        for threshold in conditions.iter().cloned().map(Threshold::broken) {
            // A run that is resumed may have kept it.
            if !self.thresholds.contains(&threshold) {
                self.thresholds.push(threshold);
            }
        }
        self
    }

    /// Whether nothing is to be judged or compared.
    pub fn is_empty(&self) -> bool {
        self.thresholds.is_empty() && self.baseline.is_none()
    }

    /// Refuses, before a run of this kind is measured, what it could not answer.
    pub fn before(&self, kind: Kind) -> Result<(), CommandError> {
        for threshold in &self.thresholds {
            must(kind, Ask::FailIf, "--fail-if")?;
            let (unit, _) = threshold.limit.of();
            if !kind.has_in(threshold.figure, unit) {
                let what = kind.lacks(threshold.figure, unit);
                return Err(InputError::new(format!("--fail-if '{threshold}'"), what, "").into());
            }
        }
        if let Some(baseline) = &self.baseline {
            must(kind, Ask::Baseline, "--baseline")?;
            must_be_alike(kind, baseline)?;
        }
        Ok(())
    }

    /// Refuses, where thresholds and baseline were given for the report of a run, what does not go with it.
    pub fn suits(&self, run: &Run, allow_unlike: bool) -> Result<(), CommandError> {
        if !run.has_no_experiment() {
            let kind = Kind::of(run)?;
            return self.fits(kind, &run.experiment()?, allow_unlike);
        }
        match &self.baseline {
            Some(baseline) => {
                must_be_alike(Kind::of(run)?, baseline)?;
                self.alike(baseline, study::unlike_runs(baseline, run)?, allow_unlike)
            }
            None => Ok(()),
        }
    }

    /// Refuses a baseline of another scenario of single measurements.
    pub fn of_scenario(&self, scenario: &str, allow_unlike: bool) -> Result<(), CommandError> {
        let Some(baseline) = &self.baseline else {
            return Ok(());
        };
        let there = baseline.read::<record::series::SeriesRecord>()?.scenario;
        let unlike = (there != scenario)
            .then(|| format!("the scenario is {there} there and {scenario} here"));
        self.alike(baseline, unlike, allow_unlike)
    }

    /// Refuses names that are in no trial, and a baseline that measured something else.
    pub fn fits(
        &self,
        kind: Kind,
        experiment: &Experiment,
        allow_unlike: bool,
    ) -> Result<(), CommandError> {
        let names = || experiment.trials.iter().flat_map(names);
        for threshold in &self.thresholds {
            let Some(selector) = &threshold.selector else {
                continue;
            };
            // The cells of a task set are its threads, which the plan names only later.
            let open = experiment.tasks.is_some();
            if !open && !names().any(|name| selector.matches(&name)) {
                let trials: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
                return Err(InputError::new(
                    format!("--fail-if '{threshold}'"),
                    format!("no trial and no cell is called `{}`", selector.0),
                    format!("the trials are {}", trials.join(", ")),
                )
                .into());
            }
        }
        let Some(baseline) = &self.baseline else {
            return Ok(());
        };
        must_be_alike(kind, baseline)?;
        let unlike = study::unlike(&baseline.experiment()?, experiment);
        self.alike(baseline, unlike, allow_unlike)
    }

    fn alike(
        &self,
        baseline: &Run,
        unlike: Option<String>,
        allow_unlike: bool,
    ) -> Result<(), CommandError> {
        match unlike {
            Some(what) if !allow_unlike => Err(InputError::new(
                format!("--baseline {}", baseline.dir().display()),
                format!("ratios to it would mean nothing: {what}"),
                "name a run of the same work, or add --allow-unlike",
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Keeps all of it beside the record.
    pub fn keep(&self, run: &Run) -> Result<(), CommandError> {
        if self.is_empty() {
            return Ok(());
        }
        let baseline = self.baseline.as_ref().map(|run| {
            let path = std::fs::canonicalize(run.dir()).unwrap_or_else(|_| run.dir().to_owned());
            path.to_string_lossy().into_owned()
        });
        Ok(run.write(&Thresholds {
            schema: THRESHOLDS_SCHEMA,
            fail_if: self.thresholds.clone(),
            baseline,
        })?)
    }

    /// Judges a run, and sets it beside the baseline.
    pub fn judge(&self, run: &Run, studied: &dyn Studied) -> Result<Found, CommandError> {
        let compared = match &self.baseline {
            Some(baseline) => Some(studied.compared(run, baseline)?),
            None => None,
        };
        let ratios = match (&self.baseline, &compared, &self.gone) {
            (Some(baseline), Some(Compared::Jobs(compared)), _) => {
                Some(judge::between([baseline, run], compared, &self.thresholds)?)
            }
            (_, _, Some(gone)) => Some(judge::Ratios {
                to: gone.clone(),
                ..judge::Ratios::default()
            }),
            _ => None,
        };
        let judged = match self.thresholds.is_empty() {
            true => None,
            false => Some(studied.judged(run, &self.thresholds, ratios)?),
        };
        Ok(Found { judged, compared })
    }

    /// Judges what is no run: files of other tools.
    pub fn judge_readings(&self, readings: &Readings) -> Found {
        let judged = judge::judge(readings, &self.thresholds);
        Found {
            judged: (!self.thresholds.is_empty()).then_some(judged),
            compared: None,
        }
    }
}

/// What a selector may be about in this trial: it, its cells and their engines.
fn names(trial: &TrialPlan) -> Vec<String> {
    let mut names = vec![trial.name.clone()];
    for (at, engine) in trial.cells.iter().enumerate() {
        let cell = format!("{}-{engine}", at + 1);
        names.push(format!("{}/{cell}", trial.name));
        let own = trial.own.get(at).and_then(|own| own.name.as_ref());
        names.extend(own.map(|own| format!("{}/{own}", trial.name)));
        names.extend([cell, engine.to_string()]);
    }
    names
}

impl Found {
    /// The terminal's tables; empty where nothing was asked.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        if let Some(compared) = &self.compared {
            text += "\nagainst the baseline\n";
            text += report::compared_table(compared, style()).trim_end();
            text.push('\n');
        }
        if let Some(judged) = &self.judged {
            text.push('\n');
            text += &report::judged_table(judged, style());
        }
        text
    }

    /// Adds the verdicts to a summary's JSON.
    pub fn add_to(&self, json: &mut serde_json::Value) {
        if let Some(judged) = &self.judged {
            json["judged"] = serde_json::to_value(judged).unwrap_or_default();
            json["judged"]["outcome"] = serde_json::to_value(judged.outcome()).unwrap_or_default();
        }
    }

    /// How the command ends that would else have ended so: a missed threshold before failed trials and undecided
    /// thresholds, these before thresholds that are not applicable.
    pub fn ended(&self, otherwise: Ended) -> Ended {
        let outcome = self.judged.as_ref().map_or(Outcome::Met, Judged::outcome);
        match (outcome, otherwise) {
            (Outcome::Missed, _) => Ended::Missed,
            (Outcome::Undecided, _) | (_, Ended::Failed) => Ended::Failed,
            (Outcome::NotApplicable, _) => Ended::Unmet,
            (Outcome::Met, otherwise) => otherwise,
        }
    }
}
