//! Continuing a log whose writer has died, from the samples that are still in the cell's ring.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::{BEGIN, Collector, END, INTERVAL, read};
use crate::Metric;
use crate::RecordError;
use crate::samples::{Header, Sample};

/// A log's rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continued {
    /// Bytes of the log that are intact; the rest was being written when the writer died.
    pub whole: u64,
    /// The text after them.
    pub text: Vec<u8>,
}

/// The rest of the log at `path`, if anything is missing: `held` samples beyond it, and its end if the probe has ended.
///
/// `held` are the samples that the ring still holds, in order; activations that are neither in the log nor there are
/// counted as lost once a later one is. `header` is the probe's last, `released` the wall time of the release.
///
/// # Errors
/// As [`read`].
pub fn continued(
    path: &Path,
    metrics: &[Metric],
    interval_ns: i64,
    header: &Header,
    released: SystemTime,
    held: impl FnOnce(&mut dyn FnMut(&Sample)),
) -> Result<Option<Continued>, RecordError> {
    let log = if path.exists() { read(path)? } else { None };
    if log.as_ref().is_some_and(|log| log.end.is_some()) {
        return Ok(None);
    }
    let mut text = Vec::new();
    let (whole, mut collector) = match &log {
        Some(log) => (whole(path)?, Collector::after(metrics, log, interval_ns)),
        None => {
            let mut collector = Collector::new(metrics, header.go_ns, interval_ns);
            text = collector.begin(header, released);
            (0, collector)
        }
    };
    let next = collector.counts().accounted();
    held(&mut |sample| {
        if u64::from(sample.index) >= next {
            text.extend(collector.take(sample).unwrap_or_default());
        }
    });
    // The end of a log whose ring has lost jobs would say more than its intervals hold.
    let ended = header.complete == 1
        && header.count + header.skipped <= header.planned
        && header.count == collector.counts().executed;
    text.extend(match ended {
        true => collector.end(header),
        false => collector.close().unwrap_or_default(),
    });
    Ok(Some(Continued { whole, text }))
}

/// Bytes up to the end of the last line that closes a piece.
fn whole(path: &Path) -> Result<u64, RecordError> {
    let bytes = fs::read(path).map_err(RecordError::io(path, "read"))?;
    let mut whole = 0;
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += line.len() as u64;
        let closes = [BEGIN, INTERVAL, END]
            .iter()
            .any(|head| line.starts_with(head.as_bytes()));
        if closes && line.ends_with(b"\n") {
            whole = at;
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const METRICS: [Metric; 2] = [Metric::WakeupLatency, Metric::ExecutionTime];

    fn header(jobs: u32, complete: bool) -> Header {
        Header {
            planned: jobs.into(),
            count: if complete { jobs.into() } else { 0 },
            complete: complete.into(),
            go_ns: 1_000,
            ..Header::new()
        }
    }

    fn sample(index: u32) -> Sample {
        let release_ns = 1_000 + i64::from(index) * 100;
        Sample {
            index,
            skipped: 0,
            release_ns,
            start_ns: release_ns + 7,
            end_ns: release_ns + 9 + i64::from(index % 5),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Wherever the writer died, the continued log says the same as one that was never interrupted.
        #[test]
        fn a_log_cut_anywhere_goes_on(jobs in 1u32..60, cut in 0usize..20_000, ring in 60usize..80) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.hlog");
            let mut collector = Collector::new(&METRICS, 1_000, 1_000);
            let mut text = collector.begin(&header(jobs, false), SystemTime::UNIX_EPOCH);
            (0..jobs).for_each(|index| text.extend(collector.take(&sample(index)).unwrap_or_default()));
            text.extend(collector.end(&header(jobs, true)));
            fs::write(&path, &text).unwrap();
            let uncut = read(&path).unwrap().unwrap();

            let cut = cut % (text.len() + 1);
            fs::write(&path, &text[..cut]).unwrap();
            let first = jobs.saturating_sub(ring as u32);
            let held = |take: &mut dyn FnMut(&Sample)| (first..jobs).for_each(|index| take(&sample(index)));
            let rest = continued(&path, &METRICS, 1_000, &header(jobs, true), SystemTime::UNIX_EPOCH, held).unwrap();
            if let Some(rest) = rest {
                let mut bytes = text[..rest.whole as usize].to_vec();
                bytes.extend(rest.text);
                fs::write(&path, bytes).unwrap();
            }
            let again = read(&path).unwrap().unwrap();
            prop_assert_eq!(again.counts, uncut.counts);
            prop_assert_eq!(again.end, uncut.end);
            prop_assert_eq!(again.unexplained(), 0);
            for (again, uncut) in again.totals.iter().zip(&uncut.totals) {
                prop_assert_eq!(&again.histogram, &uncut.histogram);
                prop_assert_eq!((again.min_ns, again.max_ns), (uncut.min_ns, uncut.max_ns));
            }
        }
    }

    #[test]
    fn what_the_ring_no_longer_holds_is_counted_as_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.hlog");
        let held = |take: &mut dyn FnMut(&Sample)| (20..30).for_each(|index| take(&sample(index)));
        let open = header(100, false);
        let rest = continued(&path, &METRICS, 1_000, &open, SystemTime::UNIX_EPOCH, held)
            .unwrap()
            .unwrap();
        fs::write(&path, rest.text).unwrap();
        let log = read(&path).unwrap().unwrap();
        assert_eq!(
            (log.counts.executed, log.counts.lost, log.unexplained()),
            (10, 20, 70)
        );
    }

    #[test]
    fn a_work_that_ended_after_the_ring_lost_jobs_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lost.hlog");
        let held = |take: &mut dyn FnMut(&Sample)| (20..30).for_each(|index| take(&sample(index)));
        let ended = header(30, true);
        let rest = continued(&path, &METRICS, 1_000, &ended, SystemTime::UNIX_EPOCH, held)
            .unwrap()
            .unwrap();
        fs::write(&path, rest.text).unwrap();
        let log = read(&path).unwrap().unwrap();
        assert!(log.end.is_none());
        assert_eq!((log.counts.executed, log.counts.lost), (10, 20));
    }
}
