//! Resuming a run of an experiment that ended early: a power cut, an interrupt, a full disk.
//!
//! Trials on record stay as they are. A trial that was cut off is continued by another trial with the remaining jobs; the rest of the plan
//! takes place as planned. The gap is on record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use record::histogram;
use record::run::{Manifest, Run};
use record::trial::{INTERRUPTED, TrialRecord};

use crate::place::free_bytes;
use crate::salvage::close_begun;
use crate::session::{Reached, check_resume};
use crate::todo::Todo;
use crate::utc::utc_of;
use crate::{BenchError, Plan};

/// Whether the run can be resumed with `plan`, its own experiment planned for the machine as it is now.
///
/// # Errors
/// When the run is complete, or the class or a trial's engine is no longer available.
pub fn check(run: &Run, plan: &Plan) -> Result<(), BenchError> {
    check_resume(run, &plan.not_measured)?;
    let recorded = run.experiment()?;
    if recorded.scheduling != plan.experiment.scheduling {
        return Err(BenchError::Unmet(format!(
            "{}: the run was measured in a scheduling class that this process cannot have now; \
             run the same command with the same privileges as before",
            run.dir().display()
        )));
    }
    Ok(())
}

/// Reads how far the run has come and the rest of the plan; records a trial that was cut off as such.
pub(crate) fn read<'a>(
    run: &Run,
    plan: &'a Plan,
    manifest: &Manifest,
    ended: &str,
) -> Result<(Reached, Vec<Todo<'a>>), BenchError> {
    let last_record = last_record(run, manifest);
    let cut_off_trial = match close_begun(run, ended)? {
        Some(number) => Some(number),
        None => last_cut_off(run)?,
    };
    let todo = left(run, plan)?;
    room_for(run, plan, &todo)?;
    let done = count(run.trial_numbers()?.len());
    let reached = Reached {
        done,
        planned: done + count(todo.len()),
        last_record,
        cut_off_trial,
    };
    Ok((reached, todo))
}

/// Refuses to go on if the rest has no room: a full disk may have ended the run.
fn room_for(run: &Run, plan: &Plan, todo: &[Todo<'_>]) -> Result<(), BenchError> {
    let needed = todo.iter().map(|todo| todo.planned.run_bytes(plan)).sum();
    let free = free_bytes(run.dir());
    if free < needed {
        return Err(BenchError::Failed(format!(
            "{}: the disk has {} free, the rest of the run may take {}; free some space and resume again",
            run.dir().display(),
            model::mib(free),
            model::mib(needed + (1 << 20))
        )));
    }
    Ok(())
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// When something was last put on record, UTC.
fn last_record(run: &Run, manifest: &Manifest) -> String {
    let mut last = manifest
        .finished
        .clone()
        .unwrap_or_else(|| manifest.started.clone());
    for resumption in &manifest.resumed {
        last = last.max(resumption.resumed.clone());
    }
    let begun = run.begun_trials().unwrap_or_default();
    let mut logs = Vec::new();
    for number in begun {
        let cells = run.begun_trial(number).ok().flatten().map(|t| t.cells);
        let cells = cells.into_iter().flatten();
        logs.extend(cells.map(|cell| run.log_path(number, &cell.id)));
    }
    // The one that was cut off may be on record already.
    let number = run.trial_numbers().ok().and_then(|n| n.last().copied());
    if let Some(trial) = number.and_then(|number| run.trial(number).ok()) {
        let go = trial
            .go_unix_ns
            .map(|ns| Duration::from_nanos(ns.unsigned_abs()));
        last = last.max(go.map_or(String::new(), |go| utc_of(UNIX_EPOCH + go)));
        let cells = trial.cells.iter();
        logs.extend(cells.filter_map(|cell| run.histogram_path(trial.number, &cell.id)));
    }
    for log in logs {
        // A log that cannot be read is reported where it is needed.
        if let Ok(Some(log)) = histogram::read(&log)
            && let Some(interval) = log.intervals.last()
        {
            last = last.max(interval.closed.clone());
        }
    }
    last
}

/// The plan's trials yet to take place, in its order.
fn left<'a>(run: &Run, plan: &'a Plan) -> Result<Vec<Todo<'a>>, BenchError> {
    let mut on_record: BTreeMap<(u32, String), Vec<TrialRecord>> = BTreeMap::new();
    let mut number = 0;
    for known in run.trial_numbers()? {
        let trial = run.trial(known)?;
        number = number.max(known);
        let key = (trial.round, trial.name.clone());
        on_record.entry(key).or_default().push(trial);
    }
    let mut todo = Vec::new();
    for round in 1..=plan.experiment.rounds {
        for planned in &plan.trials {
            let jobs = planned.jobs();
            let parts = on_record.get(&(round, planned.name.clone()));
            let (jobs, continues) = match parts.and_then(|parts| parts.last()) {
                None => (jobs, None),
                Some(last) if last.cut_off.is_none() || gave_out(last) => continue,
                Some(last) => {
                    let left = jobs_left(run, parts.into_iter().flatten(), &jobs)?;
                    if left.iter().all(|jobs| *jobs == 0) {
                        continue;
                    }
                    // A cell that is done runs one more job, so that its peers have its company.
                    (
                        left.iter().map(|jobs| (*jobs).max(1)).collect(),
                        Some(last.number),
                    )
                }
            };
            number += 1;
            todo.push(Todo {
                planned: Cow::Borrowed(planned),
                number,
                round,
                jobs,
                continues,
            });
        }
    }
    Ok(todo)
}

/// Whether the trial was cut off by a limit of the machine, which it would meet again. The limit behind the first allowed failure did not
/// end an interrupted trial.
pub(crate) fn gave_out(trial: &TrialRecord) -> bool {
    let crowd = trial.crowd.as_ref();
    crowd.is_some_and(|crowd| crowd.gave_out.is_some())
        && trial.cut_off.as_deref() != Some(INTERRUPTED)
}

/// Jobs that the parts of a trial have not accounted for, for each cell.
fn jobs_left<'r>(
    run: &Run,
    parts: impl Iterator<Item = &'r TrialRecord>,
    jobs: &[u32],
) -> Result<Vec<u32>, BenchError> {
    let mut left = jobs.to_vec();
    for part in parts {
        for (left, cell) in left.iter_mut().zip(&part.cells) {
            let done = if let Some(path) = run.histogram_path(part.number, &cell.id) {
                histogram::accounted(&path)?.accounted()
            } else if let Some(samples) = run.samples(part.number, &cell.id)? {
                samples.header.count + samples.header.skipped
            } else {
                0
            };
            *left = left.saturating_sub(u32::try_from(done).unwrap_or(u32::MAX));
        }
    }
    Ok(left)
}

/// The trial that the run was cut off in, where that is on record already.
fn last_cut_off(run: &Run) -> Result<Option<u32>, BenchError> {
    match run.trial_numbers()?.last() {
        Some(last) => Ok(run.trial(*last)?.cut_off.map(|_| *last)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use model::Experiment;

    use super::*;
    use crate::run::growth;

    /// A run of one trial of two cells, which this ended after a cell had met a limit.
    fn run_at_a_limit(dir: &std::path::Path, cut_off: &str) -> Run {
        std::fs::write(dir.join("run.json"), "{}").unwrap();
        std::fs::write(dir.join("experiment.toml"), TEXT).unwrap();
        std::fs::create_dir(dir.join("trials")).unwrap();
        let run = Run::open(dir).unwrap();
        let cell = json!({"id": "1-embedded", "engine": "embedded", "cpu": 0, "class_wanted": "OTHER", "class_got": null,
            "set_by": "cell", "real_time": false, "create_ns": null, "started_ns": null, "notes": [], "failure": null});
        let gave_out = json!({"what": "memory", "limit": "5 MB", "fix": ""});
        let crowd = json!({"asked": 2, "parallel": 1, "created": 2, "armed": 2, "finished": 0, "creation_ns": 0,
            "gave_out": gave_out});
        let trial = json!({"schema": 1, "number": 1, "name": "embedded-2", "round": 1, "go_ns": 5, "arming_ns": 5,
            "cells": [cell, cell], "failure": null, "cut_off": cut_off, "crowd": crowd});
        run.write_trial(&serde_json::from_value(trial).unwrap(), &[])
            .unwrap();
        run
    }

    const TEXT: &str = "schema = 1\nname = \"x\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 20\n\
        period = \"1ms\"\npacing = \"relative\"\n[scheduling]\nclass = \"other\"\n[scale]\nengines = [\"embedded\"]\ncounts = [2, 3]\n";

    #[test]
    fn a_limit_that_was_met_is_not_met_again_and_ends_the_study_of_its_engine() {
        let dir = tempfile::tempdir().unwrap();
        let run = run_at_a_limit(dir.path(), "stopped");
        let plan = Plan::new(Experiment::parse("x", TEXT).unwrap(), "x").unwrap();
        // Where the engine cannot be had, nothing is planned.
        let [two, three] = plan.trials.as_slice() else {
            return assert!(!plan.not_measured.is_empty());
        };
        assert_eq!(two.name, run.trial(1).unwrap().name);
        let todo = left(&run, &plan).unwrap();
        let names: Vec<&str> = todo.iter().map(|todo| todo.planned.name.as_str()).collect();
        assert_eq!(names, [three.name.as_str()]);
        let growth = growth(&plan, &run).unwrap();
        assert!(growth.ended(two).is_none());
        assert!(
            growth
                .ended(three)
                .unwrap()
                .reason
                .contains("memory ran out")
        );
    }

    #[test]
    fn an_interrupted_trial_goes_on_although_an_allowed_failure_met_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let run = run_at_a_limit(dir.path(), INTERRUPTED);
        let plan = Plan::new(Experiment::parse("x", TEXT).unwrap(), "x").unwrap();
        let [two, three] = plan.trials.as_slice() else {
            return assert!(!plan.not_measured.is_empty());
        };
        let todo = left(&run, &plan).unwrap();
        let todo: Vec<_> = (todo.iter())
            .map(|todo| (todo.planned.name.as_str(), todo.continues))
            .collect();
        let all = [(two.name.as_str(), Some(1)), (three.name.as_str(), None)];
        assert_eq!(todo, all);
        assert!(growth(&plan, &run).unwrap().ended(three).is_none());
    }
}
