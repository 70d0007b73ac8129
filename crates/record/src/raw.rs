//! Raw files that studies keep of their trials: samples of the tasks of one, and the gaps of its spinning cells.

use std::fs;
use std::path::{Path, PathBuf};

use host::writer;

use crate::RecordError;
use crate::gaps::{self, Gaps};
use crate::run::Run;
use crate::samples::{self, Samples, copy_samples};

impl Run {
    /// Stores the samples of a trial's task, copied from `from`: the records written, not the room for more.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written.
    pub fn keep_task(&self, trial: u32, task: &str, from: &Path) -> Result<(), RecordError> {
        copy_samples(from, &self.made(trial)?.join(format!("{task}.samples")))
    }

    /// Reads the samples of a trial's task.
    ///
    /// # Errors
    /// As [`samples::read`].
    pub fn task_samples(&self, trial: u32, task: &str) -> Result<Samples, RecordError> {
        samples::read(&self.trial_dir(trial).join(format!("{task}.samples")))
    }

    /// Stores the gaps of a spinning cell of a trial, copied from `from`: the header and the records written, not the room for
    /// more.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written.
    pub fn keep_cell_gaps(&self, trial: u32, cell: u32, from: &Path) -> Result<(), RecordError> {
        gaps::copy(from, &self.made(trial)?.join(format!("{cell}.gaps")))
    }

    /// Reads the gaps of a spinning cell of a trial.
    ///
    /// # Errors
    /// As [`gaps::read`].
    pub fn cell_gaps(&self, trial: u32, cell: u32) -> Result<Gaps, RecordError> {
        gaps::read(&self.trial_dir(trial).join(format!("{cell}.gaps")))
    }

    /// Stores the gaps of a trial of one spinning cell, copied from `from`.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written; nothing of it remains.
    pub fn keep_gaps(&self, trial: u32, from: &Path) -> Result<(), RecordError> {
        gaps::copy(from, &self.gaps_path(trial))
    }

    /// Reads the gaps of a trial of one spinning cell.
    ///
    /// # Errors
    /// As [`gaps::read`].
    pub fn gaps(&self, trial: u32) -> Result<Gaps, RecordError> {
        gaps::read(&self.gaps_path(trial))
    }

    /// Removes the raw files of trials with numbers above `last`: those of trials that were cut off before they were on record.
    ///
    /// # Errors
    /// When the directory cannot be listed or a file cannot be removed.
    pub fn forget_raw_after(&self, last: u32) -> Result<(), RecordError> {
        let dir = self.trials_dir();
        if !dir.is_dir() {
            return Ok(());
        }
        let entries = fs::read_dir(&dir).map_err(RecordError::io(&dir, "list"))?;
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let number = name.strip_suffix(".gaps").unwrap_or(&name);
            if number.parse::<u32>().is_ok_and(|number| number > last) {
                let removed = match path.is_dir() {
                    true => writer::remove_dir_all(&path),
                    false => writer::remove_file(&path),
                };
                removed.map_err(RecordError::io(&path, "remove"))?;
            }
        }
        Ok(())
    }

    fn gaps_path(&self, trial: u32) -> PathBuf {
        self.trials_dir().join(format!("{trial}.gaps"))
    }

    fn made(&self, trial: u32) -> Result<PathBuf, RecordError> {
        let dir = self.trial_dir(trial);
        writer::create_dir_all(&dir).map_err(RecordError::io(&dir, "create the directory"))?;
        Ok(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_files_of_trials_that_are_not_on_record_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("run.json"), "{}").unwrap();
        fs::write(dir.path().join("supply.json"), "{}").unwrap();
        let run = Run::open(dir.path()).unwrap();
        run.forget_raw_after(0).unwrap();
        let trials = run.trials_dir();
        for (at, name) in ["1.gaps", "2", "3.gaps", "4"].iter().enumerate() {
            let path = trials.join(name);
            match at % 2 {
                0 => fs::create_dir_all(&trials).and_then(|()| fs::write(path, "")),
                _ => fs::create_dir(&path).and_then(|()| fs::write(path.join("a.samples"), "")),
            }
            .unwrap();
        }
        run.forget_raw_after(2).unwrap();
        let mut left: Vec<_> = fs::read_dir(&trials)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["1.gaps", "2"]);
    }
}
