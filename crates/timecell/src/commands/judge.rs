//! Thresholds and baselines, for `bench` and `report`.

use model::{Experiment, InputError, TrialPlan};
use record::run::Run;
use record::thresholds::{THRESHOLDS_SCHEMA, Thresholds};
use study::judge::{self, Count, Figure, Judged, Outcome, Readings, Threshold};
use study::{Ask, Compared, Kind, Studied};

use crate::cli::Judge;
use crate::commands::common::{must, style};
use crate::exit::{CommandError, Ended};
use crate::out;

/// The thresholds and the baseline by which a run is judged.
#[derive(Default)]
pub struct Asked {
    thresholds: Vec<Threshold>,
    baseline: Option<Run>,
    /// Directory of the run that ratios refer to, if it cannot be read now.
    gone: Option<String>,
}

/// The outcome of judging.
#[derive(Default)]
pub struct Found {
    /// Verdicts; `None` if no threshold was given.
    pub judged: Option<Judged>,
    /// The run compared with the baseline run.
    pub compared: Option<Compared>,
}

/// Refuses a baseline of another kind, even if other differences are allowed.
fn must_be_alike(kind: Kind, baseline: &Run) -> Result<(), CommandError> {
    let there = Kind::of(baseline)?;
    if there == kind {
        return Ok(());
    }
    let place = format!("--baseline {}", baseline.dir().display());
    let what = format!("it is {}, and this run is {}", there.name(), kind.name());
    Err(InputError::new(place, what, "name a run of the same kind").into())
}

impl Asked {
    /// From the options; opens the baseline, so that a wrong name is reported before anything is measured.
    pub fn of(options: &Judge) -> Result<Asked, CommandError> {
        let baseline = options.baseline.as_deref().map(Run::open).transpose()?;
        Ok(Asked {
            thresholds: options.fail_if.clone(),
            baseline,
            gone: None,
        })
    }

    /// The thresholds and baseline kept with the run when it was measured; a baseline that is gone is noted, and not compared with.
    pub fn kept(run: &Run) -> Result<Asked, CommandError> {
        Asked::default().or_kept(run)
    }

    /// Adds those kept with the run in place of those not given: the thresholds, the baseline, or both.
    pub fn or_kept(mut self, run: &Run) -> Result<Asked, CommandError> {
        let Some(kept) = run.read_if_there::<Thresholds>()? else {
            return Ok(self);
        };
        if self.thresholds.is_empty() {
            self.thresholds = kept.fail_if;
            // Earlier versions called skipped activations missed.
            for Threshold { figure, .. } in &mut self.thresholds {
                if *figure == Figure::Count(Count::Missed) && !Kind::of(run)?.has(*figure) {
                    *figure = Figure::Count(Count::Skipped);
                }
            }
        }
        if let (None, Some(name)) = (&self.baseline, kept.baseline) {
            match Run::open(name.as_ref()) {
                Ok(run) => self.baseline = Some(run),
                Err(error) => {
                    out::note(&format!("note    the baseline cannot be read: {error}"));
                    self.gone = Some(name);
                }
            }
        }
        Ok(self)
    }

    /// Refuses a baseline that is the run itself.
    pub fn is_not_to(&self, run: &Run) -> Result<(), InputError> {
        let path = |run: &Run| std::fs::canonicalize(run.dir()).ok();
        match &self.baseline {
            Some(baseline) if path(baseline).is_some_and(|there| Some(there) == path(run)) => {
                Err(InputError::new(
                    format!("--baseline {}", baseline.dir().display()),
                    "it is the run that is resumed",
                    "name another run",
                ))
            }
            _ => Ok(()),
        }
    }

    /// The options if any is given, else those kept with the run.
    pub fn of_or_kept(options: &Judge, run: &Run) -> Result<Asked, CommandError> {
        if options.fail_if.is_empty() && options.baseline.is_none() {
            return Asked::kept(run);
        }
        Asked::of(options)
    }

    /// Adds the conditions of `--until`, which must hold at the end.
    pub fn and_until(mut self, conditions: &[Threshold]) -> Asked {
        for threshold in conditions.iter().cloned().map(Threshold::broken) {
            // A resumed run may have kept it.
            if !self.thresholds.contains(&threshold) {
                self.thresholds.push(threshold);
            }
        }
        self
    }

    /// Whether there is nothing to judge or compare.
    pub fn is_empty(&self) -> bool {
        self.thresholds.is_empty() && self.baseline.is_none() && self.gone.is_none()
    }

    /// Refuses, before a run of this kind is measured, conditions that it could not answer.
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

    /// Refuses thresholds and a baseline that do not fit the run to report.
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
                    format!("no trial or cell is called `{}`", selector.0),
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

    /// The conditions to keep beside the record; `None` if there is nothing to judge by.
    pub fn to_keep(&self) -> Option<Thresholds> {
        if self.is_empty() {
            return None;
        }
        let baseline = self.baseline.as_ref().map(|run| {
            let path = std::fs::canonicalize(run.dir()).unwrap_or_else(|_| run.dir().to_owned());
            path.to_string_lossy().into_owned()
        });
        Some(Thresholds {
            schema: THRESHOLDS_SCHEMA,
            fail_if: self.thresholds.clone(),
            // It may only be out of reach just now.
            baseline: baseline.or_else(|| self.gone.clone()),
        })
    }

    /// Keeps it beside the record.
    pub fn keep(&self, run: &Run) -> Result<(), CommandError> {
        match self.to_keep() {
            Some(thresholds) => Ok(run.write(&thresholds)?),
            None => Ok(()),
        }
    }

    /// Judges a run, and compares it with the baseline.
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
                to: format!("run {gone}, which cannot be read,"),
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

    /// Judges files of other tools.
    pub fn judge_readings(&self, readings: &Readings) -> Found {
        let judged = judge::judge(readings, &self.thresholds);
        Found {
            judged: (!self.thresholds.is_empty()).then_some(judged),
            compared: None,
        }
    }
}

/// The names in this trial that a selector may match: the trial, its cells and their engines.
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
    /// The tables for the terminal; empty if nothing was judged or compared.
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

    /// How the command ends, if it would `otherwise` end so: a threshold that fails takes precedence over failed trials and undecided
    /// thresholds, and these over thresholds that are not applicable.
    pub fn ended(&self, otherwise: Ended) -> Ended {
        let outcome = self
            .judged
            .as_ref()
            .map_or(Outcome::Passes, Judged::outcome);
        match (outcome, otherwise) {
            (Outcome::Fails, _) => Ended::VerdictFails,
            (Outcome::Undecided, _) | (_, Ended::Failed) => Ended::Failed,
            (Outcome::NotApplicable, _) => Ended::Unmet,
            (Outcome::Passes, otherwise) => otherwise,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn asked(fail_if: &[&str], gone: Option<&str>) -> Asked {
        Asked {
            thresholds: fail_if.iter().map(|text| text.parse().unwrap()).collect(),
            baseline: None,
            gone: gone.map(str::to_owned),
        }
    }

    /// The files that identify a run, without content.
    fn run_in(dir: &Path) -> Run {
        for file in ["run.json", "experiment.toml"] {
            std::fs::write(dir.join(file), "").unwrap();
        }
        Run::open(dir).unwrap()
    }

    #[test]
    fn what_is_given_replaces_only_its_like_among_what_was_kept() {
        let dir = tempfile::tempdir().unwrap();
        let run = run_in(dir.path());
        let first = asked(&["latency.p99 > 1ms"], Some("/no/such/run"));
        first.keep(&run).unwrap();
        let kept = first.to_keep();
        assert_eq!(Asked::kept(&run).unwrap().to_keep(), kept);
        // New thresholds leave the baseline, which cannot be read now.
        let second = asked(&["skipped > 0"], None).or_kept(&run).unwrap();
        let both = second.to_keep().unwrap();
        assert_eq!(both.fail_if, ["skipped > 0".parse().unwrap()]);
        assert_eq!(both.baseline.as_deref(), Some("/no/such/run"));
        // A new baseline leaves the thresholds.
        let other = tempfile::tempdir().unwrap();
        let given = Asked {
            baseline: Some(run_in(other.path())),
            ..Asked::default()
        };
        let both = given.or_kept(&run).unwrap().to_keep().unwrap();
        assert_eq!(both.fail_if, kept.unwrap().fail_if);
        let path = std::fs::canonicalize(other.path()).unwrap();
        assert_eq!(both.baseline.as_deref(), path.to_str());
    }

    #[test]
    fn a_run_is_no_baseline_of_itself() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let run = run_in(dir.path());
        let to = |baseline| Asked {
            baseline: Some(baseline),
            ..Asked::default()
        };
        let same = Run::open(&dir.path().join(".")).unwrap();
        assert!(to(same).is_not_to(&run).is_err());
        assert!(to(run_in(other.path())).is_not_to(&run).is_ok());
    }
}
