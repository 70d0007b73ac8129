//! A run of any kind from its beginning to its end: nobody else measures meanwhile, it is on record from the start, the caller learns how
//! it goes, and how it ended is recorded.
//!
//! Measurements are chosen elsewhere; `run` conducts runs of an experiment, [`conduct`] the others.

mod alone;
mod elsewhere;
mod interrupt;
mod lock;
mod progress;
mod quiet;
mod resume;
mod study;
mod time_left;

use std::path::PathBuf;

use host::provenance::Provenance;
use model::Requirement;
use record::run::{Manifest, Run, Status};
use record::{Document, Kind, NotMeasured, RecordError};

use alone::alone;
pub(crate) use elsewhere::Elsewhere;
pub(crate) use interrupt::Interrupt;
use lock::Lock;
pub use progress::{Going, Progress};
pub(crate) use quiet::Quiet;
pub(crate) use resume::Reached;
pub use resume::{check_machine, check_resume};
pub(crate) use study::{Grows, Step, Study, conduct, in_turn};
pub(crate) use time_left::TimeLeft;

use crate::BenchError;
use crate::utc::{stamp, utc_now};

/// Where a run is recorded, and by which version.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory in which the run directory is made.
    pub out: PathBuf,
    /// Version of timecell, for the record.
    pub version: String,
    /// The run to resume; `None`: a new one is made.
    pub resume: Option<Run>,
    /// Only check whether the study can be resumed: nothing is measured or changed.
    pub only_check: bool,
}

/// How a run ended: with its record complete, or why not, together with the run if it had begun.
pub type Finished = Result<Run, (Option<Run>, BenchError)>;

/// A run before its first measurement.
pub(crate) struct Opening<'a> {
    pub kind: Kind,
    /// Its directory's name, after the time.
    pub name: &'a str,
    /// Trials of all rounds.
    pub trials: u32,
    pub requirements: &'a [Requirement],
    pub not_measured: &'a [NotMeasured],
    /// The engines to put on record; `None`: the run uses none.
    pub engines: Option<engine::Options>,
}

/// A run under way.
pub(crate) struct Session {
    pub run: Run,
    pub manifest: Manifest,
    pub interrupt: Interrupt,
    /// Keeps others from resuming the run meanwhile.
    _lock: Lock,
}

impl Session {
    /// Begins a run, alone on the machine; `begin` writes the document that identifies its kind.
    pub(crate) fn open(
        opening: &Opening<'_>,
        settings: &Settings,
        begin: impl FnOnce(&Run) -> Result<(), RecordError>,
        progress: &mut dyn Progress,
    ) -> Result<Session, BenchError> {
        let (interrupt, remarks) = alone(progress)?;
        let mut session = Session::begin(interrupt, opening, settings, begin, progress)?;
        session.manifest.remarks = remarks;
        Ok(session)
    }

    fn begin(
        interrupt: Interrupt,
        opening: &Opening<'_>,
        settings: &Settings,
        begin: impl FnOnce(&Run) -> Result<(), RecordError>,
        progress: &mut dyn Progress,
    ) -> Result<Session, BenchError> {
        let manifest = Manifest {
            schema: Manifest::SCHEMA,
            timecell_version: settings.version.clone(),
            status: Status::Running,
            started: utc_now(),
            finished: None,
            trials_planned: opening.trials,
            trials_done: 0,
            requirements: opening.requirements.to_vec(),
            not_measured: opening.not_measured.to_vec(),
            failure: None,
            resumed: Vec::new(),
            remarks: Vec::new(),
        };
        let run = Run::create(
            &settings.out,
            &stamp(),
            opening.kind,
            opening.name,
            begin,
            &provenance(opening.engines.as_ref(), settings),
            &manifest,
        )?;
        let _lock = Lock::of(&run)?;
        progress.began(&run, manifest.trials_planned);
        Ok(Session {
            run,
            manifest,
            interrupt,
            _lock,
        })
    }

    /// The error of a run that a signal has ended.
    pub(crate) fn unless_interrupted(&self) -> Result<(), BenchError> {
        match self.interrupt.came() {
            true => Err(BenchError::Interrupted),
            false => Ok(()),
        }
    }

    /// Reports a remark that explains results, and puts it on record with the manifest.
    pub(crate) fn remark(&mut self, remark: String, progress: &mut dyn Progress) {
        progress.note(&remark);
        keep_once(&mut self.manifest.remarks, remark);
    }

    /// Puts the manifest on record as it is.
    pub(crate) fn write_manifest(&self) -> Result<(), BenchError> {
        self.run.write(&self.manifest).map_err(BenchError::Record)
    }

    /// Records how the run ended, after `last` has written.
    pub(crate) fn close(
        mut self,
        mut result: Result<(), BenchError>,
        last: impl FnOnce(&Run) -> Result<(), RecordError>,
    ) -> Finished {
        self.manifest.status = match &result {
            Ok(()) => Status::Complete,
            Err(BenchError::Interrupted) => Status::Interrupted,
            Err(_) => Status::Failed,
        };
        self.manifest.failure = result.as_ref().err().map(ToString::to_string);
        self.manifest.finished = Some(utc_now());
        let written = last(&self.run).and_then(|()| self.run.write(&self.manifest));
        if result.is_ok() {
            result = written.map_err(BenchError::Record);
        }
        match result {
            Ok(()) => Ok(self.run),
            Err(error) => Err((Some(self.run), error)),
        }
    }
}

/// A resumed run often finds the same again.
fn keep_once(remarks: &mut Vec<String>, remark: String) {
    if !remarks.contains(&remark) {
        remarks.push(remark);
    }
}

/// The machine as it is now, with these engines if any.
pub(crate) fn provenance(engines: Option<&engine::Options>, settings: &Settings) -> Provenance {
    let mut provenance = Provenance::collect(&settings.version);
    if let Some(options) = engines {
        provenance.engines = engine::found(options);
    }
    provenance
}

/// Why nothing of `what` can be measured here.
pub(crate) fn nothing_of(what: &str, not_measured: &[NotMeasured]) -> BenchError {
    // Each reason once, behind the trials that have it.
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for one in not_measured {
        let why = format!("{} ({})", one.reason, one.fix);
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, trials)) => trials.push(&one.trial),
            None => all.push((why, vec![&one.trial])),
        }
    }
    let why: Vec<String> = (all.iter())
        .map(|(why, trials)| format!("{}: {why}", trials.join(", ")))
        .collect();
    BenchError::Unmet(format!("{what} can be measured here: {}", why.join("; ")))
}
