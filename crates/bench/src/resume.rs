//! Going on with a run that ended before its time: a power cut, an interrupt, a full disk.
//!
//! Trials on record stay as they are. One that was cut off in its middle is continued by a trial
//! of its own with the jobs that are left; the others of the plan take place as planned. The gap is on record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use host::provenance::Provenance;
use model::InputError;
use record::histogram;
use record::run::{Manifest, Resumption, Run, Status};
use record::trial::TrialRecord;

use crate::place::free_bytes;
use crate::run::go_on;
use crate::salvage::close_begun;
use crate::session::{Finished, Progress, Session, Settings, alone, provenance};
use crate::todo::Todo;
use crate::utc::utc_now;
use crate::{BenchError, Plan};

/// What ended a trial that says nothing itself.
const WITHOUT_A_WORD: &str = "it ended without a word, as in a power cut";

/// Whether the run can go on with `plan`, its own experiment held against the machine as it is now.
///
/// # Errors
/// When the run is complete, or the class or a trial's engine is not to be had any more.
pub fn check(run: &Run, plan: &Plan) -> Result<(), BenchError> {
    let name = run.dir().display().to_string();
    let manifest = run.manifest()?;
    if manifest.status == Status::Complete {
        return Err(InputError::new(
            name,
            "the run is complete, so there is nothing left to do",
            "",
        )
        .into());
    }
    let recorded = run.experiment()?;
    if recorded.scheduling != plan.experiment.scheduling {
        return Err(BenchError::Unmet(format!(
            "{name}: the run was measured in another scheduling class than this process can have now; \
             run the same command with the same privilege as before"
        )));
    }
    // Going on without it would end in a run that calls itself complete.
    let known = |trial: &str| manifest.not_measured.iter().any(|n| n.trial == trial);
    match plan.not_measured.iter().find(|n| !known(&n.trial)) {
        None => Ok(()),
        Some(now) => Err(BenchError::Unmet(format!(
            "{name}: trial {} of the run cannot be measured now: {} ({})",
            now.trial, now.reason, now.fix
        ))),
    }
}

/// Goes on with the run. Otherwise as [`crate::run()`].
///
/// # Errors
/// As [`check`] and [`crate::run()`].
pub fn resume(run: Run, plan: &Plan, settings: &Settings, progress: &mut dyn Progress) -> Finished {
    // Whoever measures it now is asked before anything of the run is touched.
    let interrupt = match check(&run, plan).and_then(|()| alone(progress)) {
        Ok(interrupt) => interrupt,
        Err(error) => return Err((None, error)),
    };
    let (manifest, todo) = match prepare(&run, plan, settings, progress) {
        Ok(prepared) => prepared,
        Err(error) => return Err((None, error)),
    };
    progress.began(&run, manifest.trials_planned);
    let session = Session {
        run,
        manifest,
        interrupt,
    };
    go_on(plan, todo, session, progress)
}

fn prepare<'a>(
    run: &Run,
    plan: &'a Plan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<(Manifest, Vec<Todo<'a>>), BenchError> {
    let differences = differences(run, &provenance(Some(&plan.engine_options()), settings))?;
    for difference in &differences {
        progress.note(&format!("since the run began, {difference}"));
    }
    let mut manifest = run.manifest()?;
    let ended = match (manifest.status, &manifest.failure) {
        (Status::Interrupted, _) => "interrupted".to_owned(),
        (_, Some(failure)) => failure.clone(),
        _ => WITHOUT_A_WORD.to_owned(),
    };
    let last_record = last_record(run, &manifest);
    let cut_off_trial = match close_begun(run, &ended)? {
        Some(number) => Some(number),
        None => last_cut_off(run)?,
    };
    let todo = left(run, plan)?;
    room_for(run, plan, &todo)?;
    manifest.trials_done = count(run.trial_numbers()?.len());
    manifest.trials_planned = manifest.trials_done + count(todo.len());
    manifest.status = Status::Running;
    manifest.finished = None;
    manifest.failure = None;
    manifest.resumed.push(Resumption {
        resumed: utc_now(),
        last_record,
        ended,
        cut_off_trial,
        differences,
    });
    run.write(&manifest)?;
    Ok((manifest, todo))
}

/// Refuses to go on where what is left has no room: the disk may be what ended the run.
fn room_for(run: &Run, plan: &Plan, todo: &[Todo<'_>]) -> Result<(), BenchError> {
    let needed = todo.iter().map(|todo| todo.planned.run_bytes(plan)).sum();
    let free = free_bytes(run.dir());
    if free < needed {
        return Err(BenchError::Failed(format!(
            "{}: the disk has {} MB free, what is left of the run may take {} MB; free some space and resume it again",
            run.dir().display(),
            free >> 20,
            (needed >> 20) + 1
        )));
    }
    Ok(())
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// What differs between the machine that began the run and this one; another cpu is another machine.
fn differences(run: &Run, now: &Provenance) -> Result<Vec<String>, BenchError> {
    let then = run.provenance()?;
    let model = |p: &Provenance| p.cpu_model.clone().unwrap_or_else(|| p.arch.clone());
    if model(&then) != model(now) || then.cpus_online != now.cpus_online {
        return Err(InputError::new(
            run.dir().display().to_string(),
            format!(
                "the run was begun on another machine: {} cpus {} then, {} cpus {} now",
                then.cpus_online.len(),
                model(&then),
                now.cpus_online.len(),
                model(now)
            ),
            "resume it there, or run the experiment again here",
        )
        .into());
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut found = Vec::new();
    let mut compare = |what: &str, then: String, now: String| {
        if then != now {
            found.push(format!("the {what} changed from `{then}` to `{now}`"));
        }
    };
    compare("host name", text(&then.hostname), text(&now.hostname));
    compare(
        "kernel",
        text(&then.kernel_release),
        text(&now.kernel_release),
    );
    compare(
        "kernel build",
        text(&then.kernel_version),
        text(&now.kernel_version),
    );
    compare(
        "kernel command line",
        text(&then.cmdline),
        text(&now.cmdline),
    );
    compare(
        "version of timecell",
        then.timecell_version.clone(),
        now.timecell_version.clone(),
    );
    for engine in &then.engines {
        let again = now.engines.iter().find(|e| e.name == engine.name);
        let version = again.and_then(|e| e.version.clone());
        compare(
            &format!("version of {}", engine.name),
            text(&engine.version),
            text(&version),
        );
    }
    Ok(found)
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

/// What of the plan has not taken place, in its order.
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
                Some(last) if last.cut_off.is_none() => continue,
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
                samples.header.count + samples.header.missed
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
