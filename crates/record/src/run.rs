//! The run directory: `runs/<time>-<name>/`.

mod begun;
mod files;

use std::fs;
use std::path::{Path, PathBuf};

use host::provenance::Provenance;
use host::writer;
use model::{Experiment, Requirement};
use serde::{Deserialize, Serialize};

pub use files::write_atomically;
use files::{overwrite_json, sync_dir};
pub(crate) use files::{read_json, write_json};

use crate::RecordError;
use crate::histogram::{self, HistogramLog};
use crate::isolation::ISOLATION;
use crate::samples::{self, Samples, copy_samples};
use crate::series::{SERIES_SCHEMA, SERIES_SUMMARY_SCHEMA, SeriesRecord, SeriesSummary};
use crate::summary::{NotMeasured, RunSummary, SUMMARY_SCHEMA};
use crate::supply::SUPPLY;
use crate::trial::{TRIAL_SCHEMA, TrialRecord};

/// Schema of `run.json`.
pub const RUN_SCHEMA: u64 = 1;

/// The file that tells a run of single measurements from one with trials.
const SERIES: &str = "series.json";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Still going on, or ended without a word (power cut, `kill -9`).
    Running,
    /// Every planned trial took place.
    Complete,
    /// Ctrl-C or a signal.
    Interrupted,
    /// An error ended it.
    Failed,
    /// The process that measured was killed; what it had measured was written later.
    Killed,
}

/// `run.json`: the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`RUN_SCHEMA`].
    pub schema: u64,
    /// Version of timecell that measured.
    pub timecell_version: String,
    /// How it ended.
    pub status: Status,
    /// UTC, RFC 3339.
    pub started: String,
    /// UTC, RFC 3339; `None` while running.
    pub finished: Option<String>,
    /// Trials planned, over all rounds.
    pub trials_planned: u32,
    /// Trials on record.
    pub trials_done: u32,
    /// What the experiment needs of the machine, met and unmet.
    pub requirements: Vec<Requirement>,
    /// Trials that did not take place.
    pub not_measured: Vec<NotMeasured>,
    /// What ended the run before its time, one sentence.
    #[serde(default)]
    pub failure: Option<String>,
    /// Every time the run went on after it had ended before its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
}

/// How a run went on after a power cut, an interrupt or a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// When: UTC, RFC 3339.
    pub resumed: String,
    /// The last thing on record before that, UTC, RFC 3339; nothing was measured between the two.
    pub last_record: String,
    /// How the run had ended.
    pub ended: String,
    /// The trial that was cut off in its middle, by its number.
    pub cut_off_trial: Option<u32>,
    /// What is not as it was, one sentence each.
    pub differences: Vec<String>,
}

/// A run directory.
#[derive(Debug, Clone)]
pub struct Run {
    dir: PathBuf,
}

impl Run {
    /// Makes `base/<time>-<name>/` with the resolved experiment, the provenance and the manifest.
    ///
    /// `time` is UTC as `2026-11-21T210500`; a suffix is added if the directory exists.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn create(
        base: &Path,
        time: &str,
        experiment: &Experiment,
        provenance: &Provenance,
        manifest: &Manifest,
    ) -> Result<Run, RecordError> {
        let run = Run::make_with_trials(base, time, &experiment.name)?;
        write_atomically(
            &run.dir.join("experiment.toml"),
            experiment.to_toml().as_bytes(),
        )?;
        write_json(&run.dir.join("provenance.json"), provenance)?;
        run.write_manifest(manifest)?;
        Ok(run)
    }

    /// Makes `base/<time>-<scenario>/` for single measurements, with the record as it is before the first one.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn create_series(
        base: &Path,
        time: &str,
        record: &SeriesRecord,
        provenance: &Provenance,
        manifest: &Manifest,
    ) -> Result<Run, RecordError> {
        let run = Run::make(base, time, &record.scenario)?;
        run.write_series(record)?;
        write_json(&run.dir.join("provenance.json"), provenance)?;
        run.write_manifest(manifest)?;
        Ok(run)
    }

    /// As [`Run::make`], with the directory of the trials in it.
    pub(crate) fn make_with_trials(
        base: &Path,
        time: &str,
        name: &str,
    ) -> Result<Run, RecordError> {
        let run = Run::make(base, time, name)?;
        let trials = run.dir.join("trials");
        writer::create_dir(&trials).map_err(RecordError::io(&trials, "make the directory"))?;
        Ok(run)
    }

    /// Makes a new directory `base/<time>-<name>/`.
    pub(crate) fn make(base: &Path, time: &str, name: &str) -> Result<Run, RecordError> {
        writer::create_dir_all(base).map_err(RecordError::io(base, "make the directory"))?;
        let mut tries = 1;
        loop {
            let suffix = if tries == 1 {
                String::new()
            } else {
                format!("-{tries}")
            };
            let dir = base.join(format!("{time}-{name}{suffix}"));
            match writer::create_dir(&dir) {
                Ok(()) => return Ok(Run { dir }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < 1000 => {
                    tries += 1;
                }
                Err(error) => return Err(RecordError::io(&dir, "make the directory")(error)),
            }
        }
    }

    /// Opens a run to study it.
    ///
    /// # Errors
    /// [`RecordError::NotARun`] when `dir` holds no `run.json`, or none of `experiment.toml`, `series.json`,
    /// `supply.json` and `isolation.json`.
    pub fn open(dir: &Path) -> Result<Run, RecordError> {
        let has = |name: &str| dir.join(name).is_file();
        for (missing, there) in [
            ("run.json", has("run.json")),
            (
                "experiment.toml",
                has("experiment.toml") || has(SERIES) || has(SUPPLY) || has(ISOLATION),
            ),
        ] {
            if !there {
                return Err(RecordError::NotARun {
                    path: dir.to_owned(),
                    missing,
                });
            }
        }
        Ok(Run {
            dir: dir.to_owned(),
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory's own name.
    pub fn name(&self) -> String {
        let full = fs::canonicalize(&self.dir).unwrap_or_else(|_| self.dir.clone());
        full.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Replaces `run.json`; on a full disk, where there is no room for a second one, in its own blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RecordError> {
        let path = self.dir.join("run.json");
        write_json(&path, manifest).or_else(|error| overwrite_json(&path, manifest).ok_or(error))
    }

    /// Reads `run.json`.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn manifest(&self) -> Result<Manifest, RecordError> {
        read_json(&self.dir.join("run.json"), RUN_SCHEMA)
    }

    /// That the run holds trials with jobs; the error says who reads the others.
    fn must_have_jobs(&self) -> Result<(), RecordError> {
        if self.is_series() {
            return Err(RecordError::malformed(
                &self.dir,
                "this run holds single measurements (series.json) and no jobs; `timecell report` and `timecell \
                 export --csv` read it, one run at a time",
            ));
        }
        if self.is_supply() {
            return Err(RecordError::malformed(
                &self.dir,
                "this run holds the gaps of spinning threads (supply.json) and no jobs; `timecell report` and `timecell \
                 export --csv` read it, one run at a time",
            ));
        }
        if self.is_isolation() {
            return Err(RecordError::malformed(
                &self.dir,
                "this run holds contests of two cells (isolation.json), which are no trials of an experiment; `timecell \
                 report` and `timecell export --csv` read it, one run at a time",
            ));
        }
        Ok(())
    }

    /// Whether the run is a study of its own kind, without an experiment and its trials.
    pub fn has_no_experiment(&self) -> bool {
        self.is_series() || self.is_supply() || self.is_isolation()
    }

    /// Whether the run holds single measurements (`series.json`) instead of trials with jobs.
    pub fn is_series(&self) -> bool {
        self.dir.join(SERIES).is_file()
    }

    /// Replaces `series.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_series(&self, record: &SeriesRecord) -> Result<(), RecordError> {
        write_json(&self.dir.join(SERIES), record)
    }

    /// Reads `series.json`.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn series(&self) -> Result<SeriesRecord, RecordError> {
        read_json(&self.dir.join(SERIES), SERIES_SCHEMA)
    }

    /// Writes `summary.json` of a run of single measurements.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_series_summary(&self, summary: &SeriesSummary) -> Result<(), RecordError> {
        write_json(&self.dir.join("summary.json"), summary)
    }

    /// Reads `summary.json` of a run of single measurements.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn series_summary(&self) -> Result<SeriesSummary, RecordError> {
        read_json(&self.dir.join("summary.json"), SERIES_SUMMARY_SCHEMA)
    }

    /// Reads `experiment.toml`.
    ///
    /// # Errors
    /// When it cannot be read or parsed, or the run holds single measurements and no jobs.
    pub fn experiment(&self) -> Result<Experiment, RecordError> {
        self.must_have_jobs()?;
        let path = self.dir.join("experiment.toml");
        let text = fs::read_to_string(&path).map_err(RecordError::io(&path, "read"))?;
        Experiment::parse("experiment.toml", &text)
            .map_err(|error| RecordError::malformed(&path, error.to_string()))
    }

    /// Reads `provenance.json`.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn provenance(&self) -> Result<Provenance, RecordError> {
        read_json(
            &self.dir.join("provenance.json"),
            host::provenance::SCHEMA.into(),
        )
    }

    /// Writes a trial: its record, and a samples file per cell, copied from `samples` (cell id, file).
    ///
    /// # Errors
    /// When the disk is full or a file cannot be written; the unfinished trial directory is removed.
    pub fn write_trial(
        &self,
        trial: &TrialRecord,
        samples: &[(String, PathBuf)],
    ) -> Result<(), RecordError> {
        // Under another name until it is whole: a power cut leaves no half trial that looks like one.
        let part = self.part_dir(trial.number);
        let dir = self.trial_dir(trial.number);
        let written = self
            .try_write_trial(&part, trial, samples)
            .and_then(|()| writer::rename(&part, &dir).map_err(RecordError::io(&dir, "write")))
            .and_then(|()| sync_dir(&self.dir.join("trials")));
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
        writer::create_dir(dir).map_err(RecordError::io(dir, "make the directory"))?;
        for (id, from) in samples {
            copy_samples(from, &dir.join(format!("{id}.samples")))?;
        }
        write_json(&dir.join("trial.json"), trial)
    }

    /// Numbers of the trials on record, ascending.
    ///
    /// # Errors
    /// When the directory cannot be listed, or the run holds single measurements and no jobs.
    pub fn trial_numbers(&self) -> Result<Vec<u32>, RecordError> {
        self.must_have_jobs()?;
        self.numbers(|name| name.parse().ok())
    }

    /// What was on record and is not there any more, one sentence each: trials that `run.json` counts and whose
    /// directories are gone, and directories of trials without their `trial.json` in a run that ended by itself.
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
                "{noun} {} {verb} gone: run.json counts {counted} on record, and {} are here; what is gone is not in the numbers",
                gone.join(", "),
                there.len(),
            ));
        }
        if manifest.status == Status::Complete {
            let bare = |number: &&u32| !self.trial_dir(**number).join("trial.json").exists();
            sentences.extend(there.iter().filter(bare).map(|number| {
                format!("trial {number} has lost its trial.json since the run was completed; it is not in the numbers")
            }));
        }
        Ok(sentences)
    }

    fn numbers(&self, number: impl Fn(&str) -> Option<u32>) -> Result<Vec<u32>, RecordError> {
        let dir = self.dir.join("trials");
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
        read_json(&self.trial_dir(number).join("trial.json"), TRIAL_SCHEMA)
    }

    /// Reads the samples of one cell; `None` when the cell left none, as a failed one does.
    ///
    /// # Errors
    /// As [`samples::read`].
    pub fn samples(&self, number: u32, cell: &str) -> Result<Option<Samples>, RecordError> {
        let path = self.trial_dir(number).join(format!("{cell}.samples"));
        if !path.exists() {
            return Ok(None);
        }
        samples::read(&path).map(Some)
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

    /// Where the histogram log of one cell is; `None` when the cell left none.
    pub fn histogram_path(&self, number: u32, cell: &str) -> Option<PathBuf> {
        let path = self.trial_dir(number).join(format!("{cell}.hlog"));
        path.exists().then_some(path)
    }

    /// Writes `summary.json`, which belongs to the record's reading, not to the record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_summary(&self, summary: &RunSummary) -> Result<(), RecordError> {
        write_json(&self.dir.join("summary.json"), summary)
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is of a newer schema.
    pub fn summary(&self) -> Result<RunSummary, RecordError> {
        read_json(&self.dir.join("summary.json"), SUMMARY_SCHEMA)
    }

    fn trial_dir(&self, number: u32) -> PathBuf {
        self.dir.join("trials").join(number.to_string())
    }

    /// The trial's directory while it is not whole.
    fn part_dir(&self, number: u32) -> PathBuf {
        self.dir.join("trials").join(format!("{number}.part"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            schema: RUN_SCHEMA,
            timecell_version: "0".to_owned(),
            status: Status::Complete,
            started: String::new(),
            finished: None,
            trials_planned: 1,
            trials_done: 0,
            requirements: Vec::new(),
            not_measured: Vec::new(),
            failure: None,
            resumed: Vec::new(),
        }
    }

    #[test]
    fn a_newer_or_shortened_manifest_is_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        fs::write(dir.path().join("experiment.toml"), "").unwrap();
        let text = |m: &Manifest| serde_json::to_string(m).unwrap();
        let open = || {
            Run::open(dir.path())
                .and_then(|run| run.manifest())
                .map_err(|e| e.to_string())
        };
        assert!(
            open()
                .unwrap_err()
                .contains("not a run: it holds no run.json")
        );
        fs::write(&path, text(&manifest())).unwrap();
        assert_eq!(open(), Ok(manifest()));
        let mut newer = manifest();
        newer.schema = 2;
        fs::write(&path, text(&newer)).unwrap();
        assert!(open().unwrap_err().contains("schema 2 is newer"));
        fs::write(&path, &text(&manifest())[..40]).unwrap();
        assert!(open().unwrap_err().contains("cut short"));
        fs::write(&path, "{\"schema\": 1}").unwrap();
        assert!(open().unwrap_err().contains("missing field"));
    }

    #[test]
    fn a_device_or_a_link_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().unwrap();
        write_atomically(Path::new("/dev/null"), b"x").unwrap();
        let null = fs::metadata("/dev/null").unwrap();
        assert!(null.file_type().is_char_device(), "the device is still one");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
