//! Conditions on the runs after a fault.

use std::fs;
use std::path::Path;

use record::run::{Run, Status};
use record::trial::TrialRecord;

use super::witness::Finished;
use crate::support::say;

/// Checks that every finished cell is recorded, that the record adds up, and that everything incomplete says so.
/// Returns a phrase for the user, and the problems.
pub fn runs(out: &Path, finished: &Finished) -> (String, Vec<String>) {
    let mut problems = Vec::new();
    let mut told = "no run".to_owned();
    let runs = fs::read_dir(out).into_iter().flatten().flatten();
    let runs: Vec<_> = runs
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    if runs.is_empty() && !finished.is_empty() {
        problems.push("cells have finished and there is no run".to_owned());
    }
    for path in runs {
        // Killed while the directory was being created.
        let Ok(run) = Run::open(&path) else {
            if !finished.is_empty() {
                problems.push(format!("{} is no run", path.display()));
            }
            continue;
        };
        match one(&run, finished) {
            Ok((phrase, more)) => {
                told = phrase;
                problems.extend(more);
            }
            Err(error) => problems.push(error.to_string()),
        }
        let said = say(out, &["report", &path.to_string_lossy()]);
        if said.code != Some(0) {
            problems.push(format!("report: {}", said.err));
        }
    }
    (told, problems)
}

fn one(run: &Run, finished: &Finished) -> Result<(String, Vec<String>), record::RecordError> {
    let manifest = run.manifest()?;
    let numbers = run.trial_numbers()?;
    let mut problems = Vec::new();
    if manifest.status == Status::Running && !numbers.is_empty() {
        problems.push("the run does not say how it ended".to_owned());
    }
    if manifest.trials_done as usize != numbers.len() {
        problems.push(format!(
            "run.json counts {} trials, {} are on record",
            manifest.trials_done,
            numbers.len()
        ));
    }
    if !run.begun_trials()?.is_empty() {
        problems.push("a trial is half on record".to_owned());
    }
    for ((number, cell), header) in finished {
        let kept = if !numbers.contains(number) {
            None
        } else if let Some(log) = run.histograms(*number, cell)? {
            Some((log.counts.executed + log.counts.lost, log.counts.skipped))
        } else {
            let samples = run.samples(*number, cell)?;
            samples.map(|samples| (samples.header.count, samples.header.skipped))
        };
        if kept != Some((header.count, header.skipped)) {
            problems.push(format!(
                "cell {cell} of trial {number} had finished with {} jobs, on record are {kept:?}",
                header.count
            ));
        }
    }
    let mut cells = 0;
    for number in &numbers {
        let trial = run.trial(*number)?;
        cells += trial.cells.len();
        problems.extend(adds_up(run, &trial)?);
    }
    let phrase = format!(
        "{:?}, {} trials, {cells} cells on record",
        manifest.status,
        numbers.len()
    );
    Ok((phrase, problems))
}

fn adds_up(run: &Run, trial: &TrialRecord) -> Result<Vec<String>, record::RecordError> {
    let mut problems = Vec::new();
    for cell in &trial.cells {
        let unexplained = match run.histograms(trial.number, &cell.id)? {
            Some(log) => log.unexplained(),
            None => match run.samples(trial.number, &cell.id)? {
                Some(samples) => samples.unexplained(),
                None if trial.go_ns.is_some() => 1,
                None => 0,
            },
        };
        let explained =
            trial.failure.is_some() || trial.cut_off.is_some() || cell.failure.is_some();
        if unexplained > 0 && !explained {
            problems.push(format!(
                "trial {}: {unexplained} activations of {} are missing without a word",
                trial.number, cell.id
            ));
        }
    }
    Ok(problems)
}
