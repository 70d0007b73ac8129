//! Completes histogram logs whose writer is gone: the rest that the disk had no room for, the contents of the rings, the end.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use host::{foreign_file, writer};
use model::Keep;
use probe::{RingReader, clock};
use record::Metric;
use record::run::Run;
use record::samples::Sample;
use record::trial::TrialRecord;
use record::{RecordError, histogram};

use super::was_released;

/// Where the rest of a log goes that the disk has no room for, in the directory that a trial shares with its cells.
pub(crate) fn rest_of_log(shared: &Path, cell: &str) -> PathBuf {
    shared.join(format!("{cell}.rest"))
}

/// Appends the whole text to a file, or leaves the file as it was.
pub(crate) fn append_whole(file: &mut File, text: &[u8]) -> std::io::Result<()> {
    let before = file.metadata()?.len();
    let written = file.write_all(text).and_then(|()| file.sync_data());
    if written.is_err() {
        file.set_len(before)?;
    }
    written
}

/// Appends their rests to the logs of a begun trial.
pub(super) fn complete(run: &Run, shared: &Path, record: &TrialRecord) -> Result<(), RecordError> {
    for cell in &record.cells {
        let rest = rest_of_log(shared, &cell.id);
        let log = run.log_path(record.number, &cell.id);
        let io = |doing: &'static str| {
            let path = log.clone();
            move |source| RecordError::Io {
                path,
                doing,
                source,
            }
        };
        if rest.is_file() && log.is_file() {
            let mut text = Vec::new();
            foreign_file::open(&rest)
                .and_then(|mut rest| rest.read_to_end(&mut text))
                .map_err(io("read the rest of"))?;
            let mut file = writer::append(&log).map_err(io("open"))?;
            append_whole(&mut file, &text).map_err(io("write"))?;
            fs::remove_file(&rest).map_err(io("remove the rest of"))?;
        }
    }
    Ok(())
}

/// Appends to the logs of a begun trial the rings' contents beyond them.
pub(super) fn empty_rings(
    run: &Run,
    shared: &Path,
    record: &TrialRecord,
) -> Result<(), RecordError> {
    let experiment = run.experiment()?;
    let Keep::Histograms { interval } = experiment.keep else {
        return Ok(());
    };
    let metrics = Metric::of_work(experiment.workload.work);
    for cell in &record.cells {
        let path = shared.join(format!("{}.samples", cell.id));
        let log = run.log_path(record.number, &cell.id);
        let (true, Ok(ring)) = (was_released(&path), RingReader::open(&path)) else {
            continue;
        };
        let header = ring.header();
        let age = u64::try_from(clock::now() - header.go_ns).unwrap_or(0);
        let released = SystemTime::now() - Duration::from_nanos(age);
        let held = |take: &mut dyn FnMut(&Sample)| ring.held(take);
        let rest = histogram::continued(&log, metrics, interval.ns(), &header, released, held)?;
        if let Some(rest) = rest {
            let io = |source| RecordError::Io {
                path: log.clone(),
                doing: "write",
                source,
            };
            let mut file = writer::append(&log).map_err(io)?;
            file.set_len(rest.whole)
                .and_then(|()| append_whole(&mut file, &rest.text))
                .map_err(io)?;
        }
    }
    Ok(())
}

/// Puts trials that began but did not end on record, as cut off; forgets those that hold nothing. Returns the last one's number.
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
