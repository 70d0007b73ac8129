//! Interval logs for HdrHistogram's own tools: one file per trial, cell and metric, without tags, which some of those
//! tools do not know. Only one of our comment lines is kept, [`METRIC`], which names the metric.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use crate::Metric;
use crate::RecordError;
use crate::histogram::{Interval, visit};
use crate::output::Output;
use crate::run::Run;

/// The beginning of the comment that names the metric by its tag and says that values are nanoseconds.
pub(crate) const METRIC: &str = "timecell-metric ";

/// Writes the interval logs of the run into `dir` as `<trial>-<cell>-<metric>.hlog`. Returns the number of files.
///
/// # Errors
/// When the run cannot be read or a file not written.
pub fn write_hdr(run: &Run, dir: &Path) -> Result<u64, RecordError> {
    let mut files = 0;
    let caution = run.caution()?;
    for number in run.trial_numbers()? {
        for cell in &run.trial(number)?.cells {
            let Some(path) = run.histogram_path(number, &cell.id) else {
                continue;
            };
            let mut logs = Logs {
                stem: dir.join(format!("{number}-{}", cell.id)),
                begun: base_time(&path)?,
                open: BTreeMap::new(),
                failed: None,
                caution: caution.as_deref(),
            };
            let file = File::open(&path).map_err(RecordError::io(&path, "open"))?;
            visit(&path, BufReader::new(file), |interval, histograms| {
                logs.add(interval, histograms);
            })?;
            files += logs.finish()?;
        }
    }
    Ok(files)
}

/// The wall time of the release, from the line that HdrHistogram calls BaseTime; the epoch if there is none.
fn base_time(path: &Path) -> Result<SystemTime, RecordError> {
    use std::io::{BufRead, Read};
    let file = File::open(path).map_err(RecordError::io(path, "open"))?;
    let head = BufReader::new(file.take(4096)).split(b'\n');
    for line in head.take(8) {
        let line = line.map_err(RecordError::io(path, "read"))?;
        let text = String::from_utf8_lossy(&line);
        let seconds = text
            .strip_prefix("#[BaseTime: ")
            .and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if let Some(time) = seconds.and_then(|s| SystemTime::UNIX_EPOCH.checked_add(s)) {
            return Ok(time);
        }
    }
    Ok(SystemTime::UNIX_EPOCH)
}

/// The files of one cell in one trial.
struct Logs<'c> {
    stem: PathBuf,
    begun: SystemTime,
    open: BTreeMap<&'static str, (PathBuf, Output)>,
    failed: Option<RecordError>,
    /// That the values are those of an emulated machine.
    caution: Option<&'c str>,
}

impl Logs<'_> {
    fn add(&mut self, interval: &Interval, histograms: &[(Metric, Histogram<u64>)]) {
        for (metric, histogram) in histograms {
            if self.failed.is_none()
                && let Err(error) = self.try_add(interval, *metric, histogram)
            {
                self.failed = Some(error);
            }
        }
    }

    fn try_add(
        &mut self,
        interval: &Interval,
        metric: Metric,
        histogram: &Histogram<u64>,
    ) -> Result<(), RecordError> {
        let mut builder = IntervalLogWriterBuilder::new();
        if !self.open.contains_key(metric.tag()) {
            let mut name = self.stem.clone().into_os_string();
            name.push(format!("-{}.hlog", metric.tag()));
            let path = PathBuf::from(name);
            let file = Output::create(&path)?;
            self.open.insert(metric.tag(), (path, file));
            builder
                .add_comment("[Histogram log format version 1.3]")
                .add_comment("[Values are nanoseconds]")
                .add_comment(&format!("{METRIC}{}", metric.tag()))
                .with_start_time(self.begun)
                .with_base_time(self.begun);
            if let Some(caution) = self.caution {
                builder.add_comment(caution);
            }
        }
        let Some((path, file)) = self.open.get_mut(metric.tag()) else {
            return Ok(());
        };
        let ns = |ns: i64| Duration::from_nanos(ns.unsigned_abs());
        let failed = |error: String| RecordError::malformed(path, error);
        let mut text = Vec::new();
        builder
            .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
            .map_err(|error| failed(error.to_string()))?
            .write_histogram(
                histogram,
                ns(interval.start_ns),
                ns(interval.end_ns - interval.start_ns),
                None,
            )
            .map_err(|error| failed(error.to_string()))?;
        file.write_all(&text)
            .map_err(RecordError::io(path, "write"))
    }

    fn finish(self) -> Result<u64, RecordError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let files = self.open.len() as u64;
        for (_, file) in self.open.into_values() {
            file.finish()?;
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::measured::{Options, import};

    #[test]
    fn logs_of_an_emulated_machine_say_so_and_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir
            .path()
            .join(format!("1-cell-{}.hlog", Metric::WakeupLatency.tag()));
        for caution in [None, Some(host::virt::NOT_REPRESENTATIVE)] {
            let mut logs = Logs {
                stem: dir.path().join("1-cell"),
                begun: SystemTime::UNIX_EPOCH,
                open: BTreeMap::new(),
                failed: None,
                caution,
            };
            let mut histogram = Histogram::new(3).unwrap();
            histogram.record(5_000).unwrap();
            let interval = Interval {
                interval: 0,
                start_ns: 0,
                end_ns: 1_000_000,
                closed: String::new(),
                executed: 1,
                skipped: 0,
                lost: 0,
                metrics: Vec::new(),
                worst: Vec::new(),
            };
            logs.add(&interval, &[(Metric::WakeupLatency, histogram)]);
            assert_eq!(logs.finish().unwrap(), 1);
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(
                text.contains("#emulated: not representative of timing\n"),
                caution.is_some(),
                "{text}"
            );
            let back = import(None, "f", text.as_bytes(), Options::default()).unwrap();
            assert_eq!(back.distributions[0].counted(), 1);
        }
    }
}
