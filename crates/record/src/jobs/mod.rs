//! Runs of an experiment: the record of each trial and the raw samples or histograms of its cells (`trials/<n>/`), and the
//! results (`summary.json`).

mod begun;
mod parts;
pub mod summary;
pub mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use host::writer;

use crate::RecordError;
use crate::document::{Document, sync_dir};
use crate::histogram::{self, HistogramLog};
use crate::run::{Run, Status};
use crate::samples::{self, CountRow, Header, Sample, Samples, copy_samples};
use trial::TrialRecord;

impl Run {
    /// Writes a trial: its record, and a samples file per cell, copied from `samples` (cell id, file).
    ///
    /// # Errors
    /// When the disk is full or a file cannot be written; the unfinished trial directory is removed.
    pub fn write_trial(
        &self,
        trial: &TrialRecord,
        samples: &[(String, PathBuf)],
    ) -> Result<(), RecordError> {
        // Under another name until it is complete: a power cut leaves no half trial that looks like a complete one.
        let part = self.part_dir(trial.number);
        let dir = self.trial_dir(trial.number);
        let written = self
            .try_write_trial(&part, trial, samples)
            .and_then(|()| writer::rename(&part, &dir).map_err(RecordError::io(&dir, "write")))
            .and_then(|()| sync_dir(&self.trials_dir()));
        if written.is_err() {
            let _ = writer::remove_dir_all(&part);
        }
        written
    }

    fn try_write_trial(
        &self,
        dir: &Path,
        trial: &TrialRecord,
        samples: &[(String, PathBuf)],
    ) -> Result<(), RecordError> {
        writer::create_dir(dir).map_err(RecordError::io(dir, "create the directory"))?;
        for (id, from) in samples {
            copy_samples(from, &dir.join(format!("{id}.samples")))?;
        }
        trial.write(&dir.join(TrialRecord::FILE))
    }

    /// Numbers of the trials on record, ascending.
    ///
    /// # Errors
    /// When the directory cannot be listed, or the run holds single measurements and no jobs.
    pub fn trial_numbers(&self) -> Result<Vec<u32>, RecordError> {
        self.must_have_jobs()?;
        self.numbers(|name| name.parse().ok())
    }

    /// Parts of the record missing now, one sentence each: trials that `run.json` counts but whose directories are missing, and
    /// directories of trials without their `trial.json` in a run that ended on its own.
    ///
    /// # Errors
    /// When `run.json` cannot be read or the directory not be listed, or the run holds single measurements.
    pub fn damage(&self) -> Result<Vec<String>, RecordError> {
        let manifest = self.manifest()?;
        let there = self.trial_numbers()?;
        let mut sentences = Vec::new();
        let counted = manifest.trials_done as usize;
        let missing = counted.saturating_sub(there.len());
        if missing > 0 {
            // Trials are numbered without gaps, so a gap is one of them.
            let last = there.last().copied().unwrap_or(0);
            let gone =
                (1..=last.max(manifest.trials_done)).filter(|number| !there.contains(number));
            let gone: Vec<String> = gone
                .take(missing)
                .map(|number| number.to_string())
                .collect();
            let (noun, verb) = if missing == 1 {
                ("trial", "is")
            } else {
                ("trials", "are")
            };
            sentences.push(format!(
                "{noun} {} {verb} missing: run.json counts {counted} on record, but {} are here; missing trials are left out of the figures",
                gone.join(", "),
                there.len(),
            ));
        }
        if manifest.status == Status::Complete {
            let bare = |number: &&u32| !self.trial_dir(**number).join(TrialRecord::FILE).exists();
            sentences.extend(there.iter().filter(bare).map(|number| {
                format!("trial {number} has lost its trial.json since the run was completed; it is left out of the figures")
            }));
        }
        Ok(sentences)
    }

    fn numbers(&self, number: impl Fn(&str) -> Option<u32>) -> Result<Vec<u32>, RecordError> {
        let dir = self.trials_dir();
        let entries = fs::read_dir(&dir).map_err(RecordError::io(&dir, "list"))?;
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| number(entry.ok()?.file_name().to_str()?))
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads one trial's record.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn trial(&self, number: u32) -> Result<TrialRecord, RecordError> {
        TrialRecord::read(&self.trial_dir(number).join(TrialRecord::FILE))
    }

    /// Reads the samples of one cell; `None` when the cell left none, as a failed one does.
    ///
    /// # Errors
    /// As [`samples::read`].
    pub fn samples(&self, number: u32, cell: &str) -> Result<Option<Samples>, RecordError> {
        let path = self.samples_path(number, cell);
        path.map(|path| samples::read(&path)).transpose()
    }

    /// The same into the caller's own collection, with the header and the counts: `room` creates it for a number of jobs, `push`
    /// adds the next.
    ///
    /// # Errors
    /// As [`samples::read`].
    pub fn samples_into<C>(
        &self,
        number: u32,
        cell: &str,
        room: impl FnOnce(usize) -> C,
        push: impl Fn(&mut C, Sample),
    ) -> Result<Option<(Header, C, Vec<CountRow>)>, RecordError> {
        let path = self.samples_path(number, cell);
        path.map(|path| samples::read_into(&path, room, push))
            .transpose()
    }

    fn samples_path(&self, number: u32, cell: &str) -> Option<PathBuf> {
        let path = self.trial_dir(number).join(format!("{cell}.samples"));
        path.exists().then_some(path)
    }

    /// Reads the histogram log of one cell; `None` when the cell left none.
    ///
    /// # Errors
    /// As [`histogram::read`].
    pub fn histograms(&self, number: u32, cell: &str) -> Result<Option<HistogramLog>, RecordError> {
        match self.histogram_path(number, cell) {
            Some(path) => histogram::read(&path),
            None => Ok(None),
        }
    }

    /// Path of the histogram log of one cell; `None` when the cell left none.
    pub fn histogram_path(&self, number: u32, cell: &str) -> Option<PathBuf> {
        let path = self.trial_dir(number).join(format!("{cell}.hlog"));
        path.exists().then_some(path)
    }

    /// The trial's directory while it is incomplete.
    fn part_dir(&self, number: u32) -> PathBuf {
        self.trials_dir().join(format!("{number}.part"))
    }
}
