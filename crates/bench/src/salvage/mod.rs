//! A coordinator's unwritten measurements: it was killed, or the disk of its run was full.
//!
//! The record of a trial lies beside its samples in shared memory: as it was when the cells were released, and as it was in the end. The
//! process that removes a dead coordinator's place first completes its run. Samples files need no closing for that: a record counts from
//! the moment that it is complete.

mod found;
mod logs;
mod samples;

use std::fs;
use std::path::{Path, PathBuf};

use model::Keep;
use probe::clock;
use record::run::{Manifest, Run, Status};
use record::trial::{CellRecord, TrialRecord};
use record::{Document, RecordError};

use crate::utc::utc_before;
use crate::{BenchError, Place};

use found::Found;
pub(crate) use logs::{append_whole, close_begun, rest_of_log};
use samples::was_released;

const BEGUN: &str = "begun.json";
const ENDED: &str = "ended.json";

/// The samples of released cells, each with its name: of a cell that died, those until then.
pub(crate) fn released(cells: &[CellRecord], shared: &Path) -> Vec<(String, PathBuf)> {
    (cells.iter().flat_map(CellRecord::samples_names))
        .map(|name| (name.clone(), shared.join(format!("{name}.samples"))))
        .filter(|(_, path)| was_released(path))
        .collect()
}

/// Notes the record of a trial beside its samples, before its cells are released.
pub(crate) fn note_begun(place: &Place, record: &TrialRecord) -> Result<(), BenchError> {
    note(place, record, BEGUN)
}

/// Notes the record of a trial that has ended, before it is written to the run.
pub(crate) fn note_ended(place: &Place, record: &TrialRecord) -> Result<(), BenchError> {
    note(place, record, ENDED)
}

fn note(place: &Place, record: &TrialRecord, name: &str) -> Result<(), BenchError> {
    let dir = place.sub(&format!("trials/{}", record.number))?;
    record.write(&dir.join(name)).map_err(BenchError::Record)
}

/// A coordinator that is gone.
pub(crate) struct Gone<'a> {
    pub place: &'a Path,
    pub pid: i32,
    pub run: &'a Path,
    /// Why it could not write; `None`: it was killed.
    pub unwritten: Option<&'a str>,
}

/// Completes the run and reports the additions. May be called again, also after a failure.
///
/// # Errors
/// One sentence: why the run cannot be written, so that the place must stay.
pub(crate) fn salvage(gone: &Gone<'_>) -> Result<Vec<String>, String> {
    let notes = notes(gone.place);
    if !gone.run.exists() {
        return without_run(gone, &notes);
    }
    let stays = |error: RecordError| {
        format!(
            "{error}; the measurements of process {} stay in {} until `timecell clean` can write them, or until `timecell clean \
             --discard` discards them",
            gone.pid,
            gone.place.display()
        )
    };
    salvage_to(gone, &notes).map_err(stays)
}

/// A deleted run needs no samples; one whose disk is missing does.
fn without_run(gone: &Gone<'_>, notes: &[PathBuf]) -> Result<Vec<String>, String> {
    let deleted = gone.run.parent().is_some_and(Path::exists);
    let something =
        (notes.iter()).any(|dir| files(&dir.join("shared")).iter().any(|f| was_released(f)));
    if deleted || !something {
        return Ok(Vec::new());
    }
    Err(format!(
        "the parent directory of the run {} does not exist, so the measurements of process {} stay in {}; make it available and run \
         `timecell clean` again, or discard the samples with `timecell clean --discard`",
        gone.run.display(),
        gone.pid,
        gone.place.display()
    ))
}

fn salvage_to(gone: &Gone<'_>, notes: &[PathBuf]) -> Result<Vec<String>, RecordError> {
    let read = Run::open(gone.run).and_then(|run| Ok((run.manifest()?, run)));
    let (mut manifest, run) = match read {
        // Nothing was measured that is not on record, so nothing is kept by keeping the place.
        Err(_) if notes.is_empty() => return Ok(Vec::new()),
        read => read?,
    };
    if manifest.status == Status::Complete {
        return Ok(Vec::new());
    }
    let why = match gone.unwritten {
        Some(why) => why.to_owned(),
        None => format!("the coordinator (process {}) was killed", gone.pid),
    };
    if run.has_no_experiment() {
        // A study is on record trial by trial, so nothing is left to be written.
        let on_record = manifest.trials_done;
        close(&run, &mut manifest, &why, on_record, None)?;
        return Ok(Vec::new());
    }
    let mut found = Found::default();
    let known = run.trial_numbers()?;
    let histograms = matches!(run.experiment()?.keep, Keep::Histograms { .. });
    for dir in notes {
        let (ended, record) = match TrialRecord::read(&dir.join(ENDED)) {
            Ok(record) => (true, record),
            Err(_) => (false, TrialRecord::read(&dir.join(BEGUN))?),
        };
        let shared = dir.join("shared");
        if !histograms {
            for part in record.parts() {
                if !known.contains(&part.record.number) {
                    samples::trial(&run, &shared, part, ended, &why, &mut found)?;
                }
            }
            continue;
        }
        if known.contains(&record.number) {
            continue;
        }
        logs::complete(&run, &shared, &record)?;
        if !ended {
            logs::empty_rings(&run, &shared, &record)?;
        }
        if ended {
            run.end_trial(&record)?;
            found.sentences.push(format!(
                "wrote the end of trial {} ({}) of {}",
                record.number,
                record.name,
                run.dir().display()
            ));
        }
    }
    if histograms {
        close_begun(&run, &why)?;
    }
    let on_record = u32::try_from(run.trial_numbers()?.len()).unwrap_or(u32::MAX);
    close(&run, &mut manifest, &why, on_record, found.last_ns)?;
    Ok(found.sentences)
}

/// Records in the manifest how the run ended, unless it says so already, and how much is on record. `last_ns` is the end of the last job
/// that was salvaged, CLOCK_MONOTONIC.
fn close(
    run: &Run,
    manifest: &mut Manifest,
    why: &str,
    on_record: u32,
    last_ns: Option<i64>,
) -> Result<(), RecordError> {
    let before = manifest.clone();
    manifest.trials_done = on_record;
    if manifest.status == Status::Running {
        let killed = why.starts_with("the coordinator");
        manifest.status = if killed {
            Status::Killed
        } else {
            Status::Failed
        };
        manifest.finished = last_ns.and_then(|ns| utc_before(clock::now() - ns));
        manifest.failure = Some(format!(
            "{why} when {on_record} of {} trials were on record or had begun",
            manifest.trials_planned
        ));
    }
    if *manifest == before {
        return Ok(());
    }
    run.write(manifest)
}

/// The directories of trials in a place that hold a note, in the order of their numbers.
fn notes(place: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<(u32, PathBuf)> = (files(&place.join("trials")).into_iter())
        .filter(|dir| dir.join(BEGUN).is_file() || dir.join(ENDED).is_file())
        .filter_map(|dir| Some((dir.file_name()?.to_str()?.parse().ok()?, dir)))
        .collect();
    dirs.sort();
    dirs.into_iter().map(|(_, dir)| dir).collect()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
