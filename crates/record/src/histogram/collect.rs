//! From samples to the lines of the log.

use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::moments::Moments;
use super::{
    BEGIN, Counts, END, HistogramLog, INTERVAL, Interval, Job, MetricInterval, WORST,
    WORST_OF_INTERVAL, Worst, empty,
};
use crate::Metric;
use crate::samples::{Header, Sample};

/// One metric of the open interval.
struct Tally {
    metric: Metric,
    histogram: Histogram<u64>,
    min_ns: i64,
    max_ns: i64,
    below_zero: u64,
    moments: Moments,
}

impl Tally {
    fn new(metric: Metric) -> Tally {
        Tally {
            metric,
            histogram: empty(),
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            below_zero: 0,
            moments: Moments::default(),
        }
    }

    fn take(&mut self, value: i64) {
        // Cannot fail: the histogram grows with its values.
        let _ = self.histogram.record(u64::try_from(value).unwrap_or(0));
        self.below_zero += u64::from(value < 0);
        self.min_ns = self.min_ns.min(value);
        self.max_ns = self.max_ns.max(value);
        self.moments.take(value);
    }

    fn clear(&mut self) {
        self.histogram.clear();
        (self.min_ns, self.max_ns, self.below_zero) = (i64::MAX, i64::MIN, 0);
        self.moments = Moments::default();
    }
}

/// Makes the log of one cell in one trial. Its memory does not depend on the number of samples.
///
/// The methods return the text to append to the file: whole intervals, each ending with the line that closes it.
pub struct Collector {
    go_ns: i64,
    interval_ns: i64,
    tallies: Vec<Tally>,
    /// The current interval.
    open: u64,
    /// The next expected activation.
    next: u64,
    here: Counts,
    total: Counts,
    /// Samples taken before this interval.
    before: u64,
    worst: Worst,
    worst_here: Worst,
    begun: bool,
}

impl Collector {
    /// A collector of `metrics`, the primary one first, for a cell released at `go_ns`.
    pub fn new(metrics: &[Metric], go_ns: i64, interval_ns: i64) -> Collector {
        Collector {
            go_ns,
            interval_ns: interval_ns.max(1),
            tallies: metrics.iter().map(|metric| Tally::new(*metric)).collect(),
            open: 0,
            next: 0,
            here: Counts::default(),
            total: Counts::default(),
            before: 0,
            worst: Worst::new(WORST),
            worst_here: Worst::new(WORST_OF_INTERVAL),
            begun: false,
        }
    }

    /// A collector that continues after the end of `log`. It does not know the worst jobs of the cell so far, so its next
    /// interval may name more jobs than otherwise.
    pub(super) fn after(metrics: &[Metric], log: &HistogramLog, interval_ns: i64) -> Collector {
        let last = log.intervals.last();
        Collector {
            open: last.map_or(0, |last| last.interval + 1),
            next: log.counts.accounted(),
            total: log.counts,
            before: log.counts.executed,
            begun: true,
            ..Collector::new(metrics, log.begin.go_ns, interval_ns)
        }
    }

    /// The head of the file: the probe's header when it was released, at wall time `released`.
    pub fn begin(&mut self, header: &Header, released: SystemTime) -> Vec<u8> {
        self.begun = true;
        let mut text = Vec::new();
        let log = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[Values are nanoseconds; intervals are counted from the release]")
            .with_start_time(released)
            .with_base_time(released)
            .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
            .map(|_| ());
        log.expect("writing to memory does not fail");
        text.extend_from_slice(
            b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        );
        comment(&mut text, BEGIN, header);
        text
    }

    /// Whether [`Collector::begin`] was called.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes the next sample; returns an interval if the sample is the first of a later one.
    pub fn take(&mut self, sample: &Sample) -> Option<Vec<u8>> {
        let since = sample.release_ns.saturating_sub(self.go_ns).max(0);
        let interval = (since / self.interval_ns).unsigned_abs();
        // A job that starts so late that its interval has been closed belongs to the one that is open.
        let closed = (interval > self.open).then(|| {
            let text = self.close();
            self.open = interval;
            text
        });
        let skipped = u64::from(sample.skipped);
        let expected = self.next.saturating_add(skipped);
        self.here.skipped += skipped;
        self.here.lost += u64::from(sample.index).saturating_sub(expected);
        self.here.executed += 1;
        self.next = u64::from(sample.index) + 1;
        let order = self.before + self.here.executed;
        for (place, tally) in self.tallies.iter_mut().enumerate() {
            let value = sample.of(tally.metric);
            tally.take(value);
            if place == 0 {
                self.worst.offer(value, order, sample);
                self.worst_here.offer(value, order, sample);
            }
        }
        closed.flatten()
    }

    /// Closes the open interval if it is over at `now_ns` by more than `grace_ns`, so that the measurements of a cell that
    /// stalls do not stay only in memory.
    pub fn close_if_over(&mut self, now_ns: i64, grace_ns: i64) -> Option<Vec<u8>> {
        let since = now_ns.saturating_sub(self.go_ns).saturating_sub(grace_ns);
        let now = u64::try_from(since / self.interval_ns).unwrap_or(0);
        if now <= self.open {
            return None;
        }
        let text = self.close();
        self.open = now;
        text
    }

    /// Closes the open interval; `None` when nothing was accounted for in it.
    pub fn close(&mut self) -> Option<Vec<u8>> {
        self.close_by(i64::MAX)
    }

    /// Like [`Collector::close`], for an interval that ended at `ended_ns` after the release if it was not over then.
    fn close_by(&mut self, ended_ns: i64) -> Option<Vec<u8>> {
        if self.here == Counts::default() {
            return None;
        }
        let start_ns = self.interval_ns.saturating_mul(self.open as i64);
        let interval = Interval {
            interval: self.open,
            start_ns,
            end_ns: start_ns
                .saturating_add(self.interval_ns)
                .min(ended_ns.max(start_ns)),
            closed: now_utc(),
            executed: self.here.executed,
            skipped: self.here.skipped,
            lost: self.here.lost,
            metrics: self.tallies.iter().map(metric_interval).collect(),
            worst: self.worst_of_interval(),
        };
        let mut text = Vec::new();
        if self.here.executed > 0 {
            self.histograms(&mut text, &interval);
        }
        comment(&mut text, INTERVAL, &interval);
        self.total = self.counts();
        self.before = self.total.executed;
        self.here = Counts::default();
        self.tallies.iter_mut().for_each(Tally::clear);
        self.worst_here.clear();
        self.open += 1;
        Some(text)
    }

    /// The end of the file, once the probe has ended normally: the last interval, with activations skipped and lost after the
    /// last record, and the probe's header.
    pub fn end(&mut self, header: &Header) -> Vec<u8> {
        let left = header.planned.saturating_sub(self.next);
        let skipped = header
            .skipped
            .saturating_sub(self.counts().skipped)
            .min(left);
        self.here.skipped += skipped;
        self.here.lost += left - skipped;
        self.next = self.next.max(header.planned);
        // The last interval ends with the last job, not with the minute that it began.
        let ended_ns = match header.ended_ns {
            0 => i64::MAX,
            ended_ns => ended_ns.saturating_sub(self.go_ns),
        };
        let mut text = self.close_by(ended_ns).unwrap_or_default();
        comment(&mut text, END, header);
        text
    }

    /// Activations accounted for so far, including the open interval.
    pub fn counts(&self) -> Counts {
        Counts {
            executed: self.total.executed + self.here.executed,
            skipped: self.total.skipped + self.here.skipped,
            lost: self.total.lost + self.here.lost,
        }
    }

    /// Largest value of the primary metric so far, ns.
    pub fn worst_ns(&self) -> Option<i64> {
        self.worst.entries().map(|(value, ..)| value).max()
    }

    fn worst_of_interval(&self) -> Vec<Job> {
        let new = self
            .worst
            .entries()
            .filter(|(_, order, _)| *order > self.before);
        let mut jobs: Vec<(u64, Job)> = new
            .chain(self.worst_here.entries())
            .map(|(_, order, sample)| (order, Job(sample)))
            .collect();
        jobs.sort_unstable_by_key(|(order, _)| *order);
        jobs.dedup_by_key(|(order, _)| *order);
        jobs.into_iter().map(|(_, job)| job).collect()
    }

    fn histograms(&self, text: &mut Vec<u8>, interval: &Interval) {
        let ns = |ns: i64| Duration::from_nanos(ns.unsigned_abs());
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new()
            .begin_log_with(text, &mut serializer)
            .expect("writing to memory does not fail");
        for tally in &self.tallies {
            log.write_histogram(
                &tally.histogram,
                ns(interval.start_ns),
                ns(interval.end_ns - interval.start_ns),
                Tag::new(tally.metric.tag()),
            )
            .expect("writing to memory does not fail");
        }
    }
}

fn metric_interval(tally: &Tally) -> MetricInterval {
    let some = tally.min_ns <= tally.max_ns;
    MetricInterval {
        metric: tally.metric,
        min_ns: if some { tally.min_ns } else { 0 },
        max_ns: if some { tally.max_ns } else { 0 },
        mean_ns: tally.moments.mean(),
        squares_ns2: tally.moments.squared_deviations(),
        lag1_autocorrelation: tally.moments.lag1(),
        below_zero: tally.below_zero,
    }
}

fn comment<T: serde::Serialize>(text: &mut Vec<u8>, head: &str, value: &T) {
    text.extend_from_slice(head.as_bytes());
    serde_json::to_writer(&mut *text, value).expect("these types are JSON");
    let _ = text.write_all(b"\n");
}

fn now_utc() -> String {
    let format =
        time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    time::OffsetDateTime::now_utc()
        .format(&format)
        .unwrap_or_default()
}
