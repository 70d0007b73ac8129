//! What a coordinator had measured and could not write any more: it was killed, or the disk of its run was full.
//!
//! The record of a trial lies beside its samples in shared memory: as it was when the cells were released, and once
//! more as it was in the end. Whoever removes the place of a coordinator that is gone writes to the run first what the
//! run does not hold. Samples need no closing for that: a record counts from the moment in which it is whole.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use model::Keep;
use probe::clock;
use record::run::{Manifest, Run, Status};
use record::samples::{self, Header, Samples};
use record::trial::TrialRecord;
use record::{RecordError, histogram};

use crate::run::utc_before;
use crate::{BenchError, Place};

const BEGUN: &str = "begun.json";
const ENDED: &str = "ended.json";

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

/// Whether the cell of this samples file was released: before that, the file holds at most a rehearsal.
pub(crate) fn was_released(path: &Path) -> bool {
    let mut bytes = [0; size_of::<Header>()];
    let read = fs::File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0));
    read.is_ok() && Header::from_bytes(&bytes).go_ns != 0
}

/// A coordinator that is gone.
pub(crate) struct Gone<'a> {
    pub place: &'a Path,
    pub pid: i32,
    pub run: &'a Path,
    /// Why it could not write; `None`: it was killed.
    pub unwritten: Option<&'a str>,
}

/// Writes to the run what it does not hold yet and says what that was. May be called again, after a failure too.
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
            "{error}; what process {} had measured stays in {} until `timecell clean` can write it, or until \
             `timecell clean --discard` throws it away",
            gone.pid,
            gone.place.display()
        )
    };
    salvage_to(gone, &notes).map_err(stays)
}

/// A run that somebody has deleted wants no samples; one whose disk is not there does.
fn without_run(gone: &Gone<'_>, notes: &[PathBuf]) -> Result<Vec<String>, String> {
    let deleted = gone.run.parent().is_some_and(Path::exists);
    let something =
        (notes.iter()).any(|dir| files(&dir.join("shared")).iter().any(|f| was_released(f)));
    if deleted || !something {
        return Ok(Vec::new());
    }
    Err(format!(
        "the directory around the run {} is not there, so what process {} had measured stays in {}; make it available \
         and call `timecell clean` again, or throw the samples away with `timecell clean --discard`",
        gone.run.display(),
        gone.pid,
        gone.place.display()
    ))
}

fn salvage_to(gone: &Gone<'_>, notes: &[PathBuf]) -> Result<Vec<String>, RecordError> {
    let run = Run::open(gone.run)?;
    let mut manifest = run.manifest()?;
    if manifest.status == Status::Complete || run.is_series() {
        return Ok(Vec::new());
    }
    let why = match gone.unwritten {
        Some(why) => why.to_owned(),
        None => format!("the coordinator (process {}) was killed", gone.pid),
    };
    let mut found = Found::default();
    let known = run.trial_numbers()?;
    let histograms = matches!(run.experiment()?.keep, Keep::Histograms { .. });
    for dir in notes {
        let (ended, record) = match TrialRecord::read(&dir.join(ENDED)) {
            Ok(record) => (true, record),
            Err(_) => (false, TrialRecord::read(&dir.join(BEGUN))?),
        };
        if known.contains(&record.number) {
            continue;
        }
        if !histograms {
            trial(&run, &dir.join("shared"), record, ended, &why, &mut found)?;
        } else if ended {
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
    close(&run, &mut manifest, &why, &found)?;
    Ok(found.sentences)
}

/// What was found, over all trials of a place.
#[derive(Default)]
struct Found {
    sentences: Vec<String>,
    /// End of the last job of all, CLOCK_MONOTONIC ns.
    last_ns: Option<i64>,
}

/// Puts one trial on record, if any of its cells was released.
fn trial(
    run: &Run,
    shared: &Path,
    mut record: TrialRecord,
    ended: bool,
    why: &str,
    found: &mut Found,
) -> Result<(), RecordError> {
    let mut kept = Vec::new();
    let (mut finished, mut jobs) = (0u32, 0u64);
    for cell in &mut record.cells {
        let path = shared.join(format!("{}.samples", cell.id));
        if !was_released(&path) {
            continue;
        }
        let samples = match proven(&path) {
            Ok(samples) => samples,
            Err(error) => {
                cell.failure.get_or_insert(error.to_string());
                continue;
            }
        };
        let header = samples.header;
        jobs += header.count;
        found.last_ns = found.last_ns.max(samples.samples.last().map(|s| s.end_ns));
        if header.complete == 1 {
            finished += 1;
        } else if !ended {
            cell.notes.push(format!(
                "it had not finished when {why}: {} of {} activations are on record",
                header.count + header.missed,
                header.planned
            ));
        }
        if !ended {
            record.go_ns = Some(header.go_ns);
            cell.started_ns = Some(header.started_ns);
        }
        kept.push((cell.id.clone(), path));
    }
    if kept.is_empty() && !ended {
        return Ok(());
    }
    let cells = record.cells.len();
    if !ended {
        record.cut_off = Some(format!(
            "{why} when {finished} of {cells} cells had finished"
        ));
    }
    // Begun by the coordinator, but not whole.
    run.forget_trial(record.number);
    run.write_trial(&record, &kept)?;
    found.sentences.push(format!(
        "salvaged trial {} ({}): {finished} of {cells} cells had finished, {jobs} jobs are on record in {}",
        record.number,
        record.name,
        run.dir().display()
    ));
    Ok(())
}

/// Samples whose header says no more than the records prove.
///
/// A cell that is killed while it writes its sums leaves some of them old and some new.
fn proven(path: &Path) -> Result<Samples, RecordError> {
    let first = match samples::read(path) {
        Ok(samples) => return Ok(samples),
        Err(error) => error,
    };
    let mut bytes = [0; size_of::<Header>()];
    let corrected = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .and_then(|file| {
            file.read_exact_at(&mut bytes, 0)?;
            let header = Header {
                complete: 0,
                missed: 0,
                ..Header::from_bytes(&bytes)
            };
            file.write_all_at(&header.to_bytes(), 0)
        });
    match corrected {
        Ok(()) => samples::read(path),
        Err(_) => Err(first),
    }
}

/// Says in the manifest how the run ended, unless it knows, and how much is on record.
fn close(run: &Run, manifest: &mut Manifest, why: &str, found: &Found) -> Result<(), RecordError> {
    let before = manifest.clone();
    let on_record = u32::try_from(run.trial_numbers()?.len()).unwrap_or(u32::MAX);
    manifest.trials_done = on_record;
    if manifest.status == Status::Running {
        let killed = why.starts_with("the coordinator");
        manifest.status = if killed {
            Status::Killed
        } else {
            Status::Failed
        };
        manifest.finished = found.last_ns.and_then(|ns| utc_before(clock::now() - ns));
        manifest.failure = Some(format!(
            "{why} when {on_record} of {} trials were on record or had begun",
            manifest.trials_planned
        ));
    }
    if *manifest == before {
        return Ok(());
    }
    run.write_manifest(manifest)
}

/// Trials that were begun and not ended become trials on record, cut off; those that hold nothing are forgotten.
/// Returns the last one's number.
pub(crate) fn close_begun(run: &Run, ended: &str) -> Result<Option<u32>, RecordError> {
    let mut last = None;
    for number in run.begun_trials()? {
        let Some(mut trial) = run.begun_trial(number)? else {
            run.forget_trial(number);
            continue;
        };
        let mut something = false;
        for cell in &mut trial.cells {
            let path = run.log_path(number, &cell.id);
            if !path.exists() {
                continue;
            }
            if let Some(log) = histogram::read(&path)? {
                something |= log.counts.accounted() > 0;
                trial.go_ns = Some(log.begin.go_ns);
                cell.started_ns = Some(log.begin.started_ns);
            }
        }
        if !something {
            run.forget_trial(number);
            continue;
        }
        trial.cut_off = Some(ended.to_owned());
        run.end_trial(&trial)?;
        last = Some(number);
    }
    Ok(last)
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

#[cfg(test)]
mod tests {
    use super::*;
    use record::samples::{HEADER_BYTES, Sample};

    /// A samples file of a cell with three of ten jobs.
    fn file(dir: &Path, change: impl FnOnce(&mut Header)) -> PathBuf {
        let mut header = Header {
            planned: 10,
            count: 3,
            go_ns: 5,
            ..Header::new()
        };
        change(&mut header);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
        for index in 0..10 {
            let sample = Sample {
                index,
                ..Sample::default()
            };
            bytes.extend_from_slice(&sample.to_bytes());
        }
        let path = dir.join("1-bare.samples");
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_header_that_says_more_than_the_records_prove_is_corrected() {
        let dir = tempfile::tempdir().unwrap();
        // Killed between `complete` and the number of missed activations.
        let path = file(dir.path(), |header| header.complete = 1);
        assert!(samples::read(&path).is_err());
        let samples = proven(&path).unwrap();
        assert_eq!((samples.header.complete, samples.unexplained()), (0, 7));
        assert_eq!(
            samples::read(&path).unwrap(),
            samples,
            "the file itself is whole now"
        );
        let path = file(dir.path(), |header| header.count = 11);
        assert!(proven(&path).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn a_rehearsal_is_no_measurement() {
        let dir = tempfile::tempdir().unwrap();
        assert!(was_released(&file(dir.path(), |_| {})));
        assert!(!was_released(&file(dir.path(), |header| header.go_ns = 0)));
        assert!(!was_released(&dir.path().join("none")));
    }
}
