//! Trials that are written while they run: their directories do not look like recorded trials until they have ended.

use std::path::PathBuf;

use host::writer;

use super::trial::TrialRecord;
use crate::RecordError;
use crate::document::{Document, sync_dir};
use crate::run::Run;

impl Run {
    /// Begins the record of a trial that is written while it runs: a directory that does not look like a trial yet,
    /// for the logs of its cells ([`Run::log_path`]).
    ///
    /// # Errors
    /// When the directory or the record cannot be written; nothing of it remains.
    pub fn begin_trial(&self, trial: &TrialRecord) -> Result<(), RecordError> {
        let dir = self.part_dir(trial.number);
        writer::create_dir(&dir).map_err(RecordError::io(&dir, "create the directory"))?;
        let written = trial
            .write(&dir.join(TrialRecord::FILE))
            .and_then(|()| sync_dir(&dir))
            .and_then(|()| sync_dir(&self.trials_dir()));
        if written.is_err() {
            self.forget_trial(trial.number);
        }
        written
    }

    /// Path of the histogram log of a cell of a begun trial.
    pub fn log_path(&self, number: u32, cell: &str) -> PathBuf {
        self.part_dir(number).join(format!("{cell}.hlog"))
    }

    /// Ends a begun trial: it is a trial on record now.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end_trial(&self, trial: &TrialRecord) -> Result<(), RecordError> {
        let part = self.part_dir(trial.number);
        trial.write(&part.join(TrialRecord::FILE))?;
        let dir = self.trial_dir(trial.number);
        writer::rename(&part, &dir).map_err(RecordError::io(&dir, "write"))?;
        sync_dir(&self.trials_dir())
    }

    /// Discards a begun trial.
    pub fn forget_trial(&self, number: u32) {
        let dir = self.part_dir(number);
        let _ = writer::remove_dir_all(&dir);
    }

    /// Numbers of the trials that were begun and not ended, ascending.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn begun_trials(&self) -> Result<Vec<u32>, RecordError> {
        let begun = |name: &str| name.strip_suffix(".part")?.parse().ok();
        self.numbers(begun)
    }

    /// Reads the record of a begun trial; `None` when not even that was written.
    ///
    /// # Errors
    /// As [`Run::trial`].
    pub fn begun_trial(&self, number: u32) -> Result<Option<TrialRecord>, RecordError> {
        let path = self.part_dir(number).join(TrialRecord::FILE);
        if !path.exists() {
            return Ok(None);
        }
        TrialRecord::read(&path).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_trial_that_was_begun_is_not_begun_again_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("experiment.toml"), "").unwrap();
        fs::write(dir.path().join("run.json"), "{}").unwrap();
        fs::create_dir(dir.path().join("trials")).unwrap();
        let run = Run::open(dir.path()).unwrap();
        let trial: TrialRecord = serde_json::from_str(
            r#"{"schema": 1, "number": 1, "name": "x", "round": 1, "go_ns": null, "arming_ns": null, "cells": [],
                "failure": null}"#,
        )
        .unwrap();
        run.begin_trial(&trial).unwrap();
        run.begin_trial(&trial).unwrap_err();
        assert_eq!(run.begun_trial(1).unwrap(), Some(trial));
        run.forget_trial(1);
        assert!(run.begun_trials().unwrap().is_empty());
    }
}
