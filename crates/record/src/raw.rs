//! Raw files that studies keep of their trials: what the tasks of one measured, and the gaps of its spinning cells.

use std::path::{Path, PathBuf};

use host::writer;

use crate::RecordError;
use crate::gaps::{self, Gaps};
use crate::run::Run;
use crate::samples::{self, Samples, copy_samples};

impl Run {
    /// Keeps what a task of a trial measured, copied from `from`: the records written, not the room for more.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written.
    pub fn keep_task(&self, trial: u32, task: &str, from: &Path) -> Result<(), RecordError> {
        copy_samples(from, &self.made(trial)?.join(format!("{task}.samples")))
    }

    /// Reads what a task of a trial measured.
    ///
    /// # Errors
    /// As [`samples::read`].
    pub fn task_samples(&self, trial: u32, task: &str) -> Result<Samples, RecordError> {
        samples::read(&self.trial_dir(trial).join(format!("{task}.samples")))
    }

    /// Keeps the gaps of a spinning cell of a trial, copied from `from`: the header and the records written, not the room for more.
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

    /// Keeps the gaps of a trial of one spinning cell, copied from `from`.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be read or written; nothing of it stays.
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

    fn gaps_path(&self, trial: u32) -> PathBuf {
        self.trials_dir().join(format!("{trial}.gaps"))
    }

    fn made(&self, trial: u32) -> Result<PathBuf, RecordError> {
        let dir = self.trial_dir(trial);
        writer::create_dir_all(&dir).map_err(RecordError::io(&dir, "make the directory"))?;
        Ok(dir)
    }
}
