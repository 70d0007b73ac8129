//! The run directory: `runs/<time>-<name>/`.

use std::fs;
use std::path::{Path, PathBuf};

use host::provenance::Provenance;
use host::virt::NOT_REPRESENTATIVE;
use host::writer;
use model::{EngineKind, Experiment, Requirement};
use serde::{Deserialize, Serialize};

use crate::document::{Document, write_json};
use crate::ground::NotMeasured;
use crate::jobs::trial::EMULATED;
use crate::series::SeriesRecord;
use crate::{Kind, RecordError};

pub use crate::document::write_atomically;

/// Schema of `run.json`.
pub const RUN_SCHEMA: u64 = 1;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Still running, or ended without notice (power cut, `kill -9`).
    Running,
    /// Every planned trial took place.
    Complete,
    /// Ctrl-C or a signal.
    Interrupted,
    /// An error ended it.
    Failed,
    /// The process that measured was killed; its measurements were written later.
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
    /// Requirements of the experiment, met and unmet.
    pub requirements: Vec<Requirement>,
    /// Trials that did not take place.
    pub not_measured: Vec<NotMeasured>,
    /// Why the run ended early, one sentence.
    #[serde(default)]
    pub failure: Option<String>,
    /// Every resumption of the run after it had ended early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// Limits and disturbances of the machine that explain results, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Document for Manifest {
    const FILE: &'static str = "run.json";
    const SCHEMA: u64 = RUN_SCHEMA;
    const OVERWRITES_ON_A_FULL_DISK: bool = true;
}

/// The resumption of a run after a power cut, an interrupt or a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// When: UTC, RFC 3339.
    pub resumed: String,
    /// The last thing on record before that, UTC, RFC 3339; nothing was measured between the two.
    pub last_record: String,
    /// How the run had ended.
    pub ended: String,
    /// The number of the trial that was cut off.
    pub cut_off_trial: Option<u32>,
    /// Differences from before, one sentence each.
    pub differences: Vec<String>,
}

/// A run directory.
#[derive(Debug, Clone)]
pub struct Run {
    dir: PathBuf,
}

impl Run {
    /// Creates `base/<time>-<name>/` for a run of this kind, with `begin`'s output, which must be the file that identifies the
    /// kind, the provenance, and finally the manifest.
    ///
    /// `time` is UTC as `2026-11-21T210500`; a suffix is added if the directory exists.
    ///
    /// # Errors
    /// When the directory cannot be created or written.
    pub fn create(
        base: &Path,
        time: &str,
        kind: Kind,
        name: &str,
        begin: impl FnOnce(&Run) -> Result<(), RecordError>,
        provenance: &Provenance,
        manifest: &Manifest,
    ) -> Result<Run, RecordError> {
        let run = Run::make(base, time, name)?;
        if kind.keeps_trials() {
            let trials = run.trials_dir();
            writer::create_dir(&trials)
                .map_err(RecordError::io(&trials, "create the directory"))?;
        }
        begin(&run)?;
        run.write(provenance)?;
        run.write(manifest)?;
        Ok(run)
    }

    /// Creates a new directory `base/<time>-<name>/`.
    fn make(base: &Path, time: &str, name: &str) -> Result<Run, RecordError> {
        writer::create_dir_all(base).map_err(RecordError::io(base, "create the directory"))?;
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
                Err(error) => return Err(RecordError::io(&dir, "create the directory")(error)),
            }
        }
    }

    /// Opens a run to study it.
    ///
    /// # Errors
    /// [`RecordError::NotARun`] when `dir` has no `run.json`, or none of the files that identify a [`Kind`].
    pub fn open(dir: &Path) -> Result<Run, RecordError> {
        for (missing, there) in [
            (Manifest::FILE, dir.join(Manifest::FILE).is_file()),
            (Kind::Jobs.file(), Kind::by_files(dir).is_some()),
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

    /// The kind of the run.
    ///
    /// # Errors
    /// When its experiment cannot be read, if it has one.
    pub fn kind(&self) -> Result<Kind, RecordError> {
        match Kind::by_files(&self.dir) {
            Some(kind) if kind.instead_of_jobs().is_some() => Ok(kind),
            _ if self.experiment()?.scale.is_some() => Ok(Kind::Scale),
            _ => Ok(Kind::Jobs),
        }
    }

    /// Whether the run is a study of its own kind, without an experiment and its trials.
    pub fn has_no_experiment(&self) -> bool {
        self.held_instead_of_jobs().is_some()
    }

    fn held_instead_of_jobs(&self) -> Option<&'static str> {
        Kind::by_files(&self.dir)?.instead_of_jobs()
    }

    /// Checks that the run holds trials with jobs; the error names other runs' readers.
    pub(crate) fn must_have_jobs(&self) -> Result<(), RecordError> {
        let Some(held) = self.held_instead_of_jobs() else {
            return Ok(());
        };
        Err(RecordError::malformed(
            &self.dir,
            format!(
                "this run holds {held} `timecell report` and `timecell export --csv` read it, one run at a time"
            ),
        ))
    }

    /// Reads one of its documents.
    ///
    /// # Errors
    /// When it cannot be read, is malformed or cut short, or is of a newer schema.
    pub fn read<D: Document>(&self) -> Result<D, RecordError> {
        D::read(&self.dir.join(D::FILE))
    }

    /// Reads one of its documents; `None` if it has none of this kind.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn read_if_there<D: Document>(&self) -> Result<Option<D>, RecordError> {
        let path = self.dir.join(D::FILE);
        path.exists().then(|| D::read(&path)).transpose()
    }

    /// Writes one of its documents, or replaces it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write<D: Document>(&self, document: &D) -> Result<(), RecordError> {
        document.write(&self.dir.join(D::FILE))
    }

    /// Reads `run.json`.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn manifest(&self) -> Result<Manifest, RecordError> {
        self.read()
    }

    /// Reads `provenance.json`.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn provenance(&self) -> Result<Provenance, RecordError> {
        self.read()
    }

    /// The caution that belongs to every figure of the run: the machine was emulated, or cells of it were such machines.
    ///
    /// # Errors
    /// When a file of it cannot be read.
    pub fn caution(&self) -> Result<Option<String>, RecordError> {
        let machine = self.read_if_there::<Provenance>()?;
        if let Some(caution) = machine.and_then(|machine| machine.virtualization.caution()) {
            return Ok(Some(caution));
        }
        let some_are = match self.kind()? {
            Kind::Jobs if self.has_no_experiment() => false,
            // Machines are few: where the experiment has none, no trial is read.
            Kind::Jobs => {
                let machines =
                    (self.experiment()?.engines().into_iter()).any(EngineKind::is_machine);
                let numbers = if machines {
                    self.trial_numbers()?
                } else {
                    Vec::new()
                };
                let trials = numbers.into_iter().map(|number| self.trial(number));
                let trials = trials.collect::<Result<Vec<_>, _>>()?;
                let mut cells = trials.iter().flat_map(|trial| &trial.cells);
                cells.any(|cell| !cell.caution().is_empty())
            }
            Kind::Series => {
                let record = self.read_if_there::<SeriesRecord>()?;
                let mut series = record.iter().flat_map(|record| &record.series);
                series.any(|series| series.subject.contains(EMULATED))
            }
            _ => false,
        };
        Ok(some_are.then(|| format!("{NOT_REPRESENTATIVE} (some cells)")))
    }

    /// Writes the summary of the run, or replaces it, with the run's caution as its key `emulated`.
    ///
    /// # Errors
    /// When it cannot be written, or a file of the run not read.
    pub fn write_summary<D: Document>(&self, summary: &D) -> Result<(), RecordError> {
        #[derive(Serialize)]
        struct Labelled<'s, D> {
            #[serde(flatten)]
            summary: &'s D,
            #[serde(skip_serializing_if = "Option::is_none")]
            emulated: Option<String>,
        }
        let emulated = self.caution()?;
        write_json(&self.dir.join(D::FILE), &Labelled { summary, emulated })
    }

    /// Reads `experiment.toml`.
    ///
    /// # Errors
    /// When it cannot be read or parsed, or the run has none because it is of another kind.
    pub fn experiment(&self) -> Result<Experiment, RecordError> {
        self.must_have_jobs()?;
        let path = self.dir.join(Kind::Jobs.file());
        let text = fs::read_to_string(&path).map_err(RecordError::io(&path, "read"))?;
        Experiment::parse("experiment.toml", &text)
            .map_err(|error| RecordError::malformed(&path, error.to_string()))
    }

    /// Writes `experiment.toml`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_experiment(&self, experiment: &Experiment) -> Result<(), RecordError> {
        let path = self.dir.join(Kind::Jobs.file());
        write_atomically(&path, experiment.to_toml().as_bytes())
    }

    /// Directory of the raw files of trials.
    pub(crate) fn trials_dir(&self) -> PathBuf {
        self.dir.join("trials")
    }

    /// Directory of the raw files of one trial that has several.
    pub(crate) fn trial_dir(&self, number: u32) -> PathBuf {
        self.trials_dir().join(number.to_string())
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
            remarks: Vec::new(),
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
                .contains("not a run: it contains no run.json")
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
