//! Resuming a run that ended before its time: a power cut, an interrupt, a full disk. The common part of every kind is here: refusals,
//! changes since, the note of the gap. How far the run has come is read by its kind.

use host::provenance::Provenance;
use model::InputError;
use record::NotMeasured;
use record::run::{Manifest, Resumption, Run, Status};

use super::alone::alone;
use super::lock::Lock;
use super::progress::Progress;
use super::{Opening, Session, Settings, keep_once, provenance};
use crate::BenchError;
use crate::utc::utc_now;

/// How a run ended that has no note of its end.
const NO_NOTE: &str = "it ended without a note, as in a power cut";

/// How far a run has come.
pub(crate) struct Reached {
    /// Trials on record.
    pub done: u32,
    /// Trials on record and those that are left.
    pub planned: u32,
    /// When something was last put on record, UTC.
    pub last_record: String,
    /// The trial that was cut off and is on record, by its number.
    pub cut_off_trial: Option<u32>,
}

/// Whether the run can be resumed where these trials cannot be measured.
///
/// # Errors
/// When the run is complete, or one of the trials was to be measured.
pub fn check_resume(run: &Run, not_measured: &[NotMeasured]) -> Result<(), BenchError> {
    let manifest = run.manifest()?;
    if manifest.status == Status::Complete {
        let what = "the run is complete, so there is nothing left to do";
        return Err(refused(run, what, ""));
    }
    // Resuming without it would end in a run that calls itself complete.
    let known = |trial: &str| manifest.not_measured.iter().any(|n| n.trial == trial);
    match not_measured.iter().find(|n| !known(&n.trial)) {
        None => Ok(()),
        Some(now) => Err(BenchError::Unmet(format!(
            "{}: trial {} of the run cannot be measured now: {} ({})",
            run.dir().display(),
            now.trial,
            now.reason,
            now.fix
        ))),
    }
}

/// The error of a run that cannot be resumed.
pub(crate) fn refused(run: &Run, what: impl Into<String>, fix: &str) -> BenchError {
    InputError::new(run.dir().display().to_string(), what, fix).into()
}

impl Session {
    /// Resumes a run, alone on the machine; `read` tells how far it has come, given how it had ended. Until `read` is called, nothing of
    /// the run is changed.
    ///
    /// # Errors
    /// As [`check_resume`], while another process measures the run, on another machine, and as `read`.
    pub(crate) fn resume<T>(
        run: &Run,
        opening: &Opening<'_>,
        settings: &Settings,
        read: impl FnOnce(&Manifest, &str) -> Result<(Reached, T), BenchError>,
        progress: &mut dyn Progress,
    ) -> Result<(Session, T), BenchError> {
        check_resume(run, opening.not_measured)?;
        let (interrupt, remarks) = alone(progress)?;
        let _lock = Lock::of(run)?;
        // Another process may have ended the run since.
        check_resume(run, opening.not_measured)?;
        let now = provenance(opening.engines.as_ref(), settings);
        let differences = differences(run, &now)?;
        for difference in &differences {
            progress.note(&format!("since the run began, {difference}"));
        }
        let mut manifest = run.manifest()?;
        let ended = match (manifest.status, &manifest.failure) {
            (Status::Interrupted, _) => "interrupted".to_owned(),
            (_, Some(failure)) => failure.clone(),
            _ => NO_NOTE.to_owned(),
        };
        let (reached, told) = read(&manifest, &ended)?;
        manifest.trials_done = reached.done;
        manifest.trials_planned = reached.planned;
        manifest.status = Status::Running;
        manifest.finished = None;
        manifest.failure = None;
        for remark in remarks {
            keep_once(&mut manifest.remarks, remark);
        }
        manifest.resumed.push(Resumption {
            resumed: utc_now(),
            last_record: reached.last_record,
            ended,
            cut_off_trial: reached.cut_off_trial,
            differences,
        });
        run.write(&manifest)?;
        progress.began(run, manifest.trials_planned);
        let session = Session {
            run: run.clone(),
            manifest,
            interrupt,
            _lock,
        };
        Ok((session, told))
    }
}

/// Whether the run was begun on this machine.
///
/// # Errors
/// When it was begun on another one.
pub fn check_machine(run: &Run, settings: &Settings) -> Result<(), BenchError> {
    differences(run, &provenance(None, settings)).map(|_| ())
}

/// Differences between the machine that began the run and this one; another cpu is another machine.
fn differences(run: &Run, now: &Provenance) -> Result<Vec<String>, BenchError> {
    let then = run.provenance()?;
    let model = |p: &Provenance| p.cpu_model.clone().unwrap_or_else(|| p.arch.clone());
    if model(&then) != model(now) || then.cpus_online != now.cpus_online {
        let what = format!(
            "the run was begun on another machine: {} cpus {} then, {} cpus {} now",
            then.cpus_online.len(),
            model(&then),
            now.cpus_online.len(),
            model(now)
        );
        let fix = "resume it there, or run the experiment again here";
        return Err(refused(run, what, fix));
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut found = Vec::new();
    let mut compare = |what: &str, then: String, now: String| {
        if then != now {
            found.push(format!("the {what} changed from `{then}` to `{now}`"));
        }
    };
    compare("host name", text(&then.hostname), text(&now.hostname));
    compare(
        "kernel",
        text(&then.kernel_release),
        text(&now.kernel_release),
    );
    compare(
        "kernel build",
        text(&then.kernel_version),
        text(&now.kernel_version),
    );
    compare(
        "kernel command line",
        text(&then.cmdline),
        text(&now.cmdline),
    );
    compare(
        "version of timecell",
        then.timecell_version.clone(),
        now.timecell_version.clone(),
    );
    for engine in &then.engines {
        let again = now.engines.iter().find(|e| e.name == engine.name);
        let version = again.and_then(|e| e.version.clone());
        compare(
            &format!("version of {}", engine.name),
            text(&engine.version),
            text(&version),
        );
    }
    Ok(found)
}
