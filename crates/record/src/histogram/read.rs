//! Reading and summing up the lines of the log, one line in memory at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::{BEGIN, Counts, DIGITS, END, INTERVAL, Interval, WORST, Worst, empty, metric_of};
use crate::Metric;
use crate::RecordError;
use crate::samples::{Header, Sample};

/// Longest line that is read: an interval with all of the worst jobs takes some 100 kB.
const LONGEST_LINE: u64 = 4 << 20;
/// Longest histogram that is unpacked, bytes: one of ours with every bin taken has fewer.
const LONGEST_HISTOGRAM: u64 = 4 << 20;

/// The summed-up log of one cell.
#[derive(Debug, Clone)]
pub struct HistogramLog {
    /// The probe's header when it was released.
    pub begin: Header,
    /// The probe's header when it had ended normally; `None` after a power cut or when it was killed.
    pub end: Option<Header>,
    /// Activations accounted for.
    pub counts: Counts,
    /// The intervals in order.
    pub intervals: Vec<IntervalSummary>,
    /// The histogram of each metric over all intervals, the primary one first.
    pub totals: Vec<Total>,
    /// The worst jobs with their value of the primary metric, the worst first; at most [`WORST`].
    pub worst: Vec<(i64, Sample)>,
    /// Whether the last interval was cut off while it was written; it is then not in the numbers.
    pub cut_off: bool,
}

/// One interval in short.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalSummary {
    /// Its number from 0.
    pub interval: u64,
    /// Where it begins, ns since the release.
    pub start_ns: i64,
    /// Where it ends, ns since the release.
    pub end_ns: i64,
    /// When it was closed: UTC, RFC 3339.
    pub closed: String,
    /// Activations.
    pub counts: Counts,
    /// Metric, smallest value, median, p99, largest value in ns; empty when nothing ran.
    pub metrics: Vec<(Metric, [i64; 4])>,
}

/// One metric over all intervals.
#[derive(Debug, Clone)]
pub struct Total {
    /// Which metric.
    pub metric: Metric,
    /// Its histogram, in ns; values below 0 are in it as 0.
    pub histogram: Histogram<u64>,
    /// Smallest value, ns, exact.
    pub min_ns: i64,
    /// Largest value, ns, exact.
    pub max_ns: i64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Sum of the squared deviations from the mean, ns².
    pub squares_ns2: f64,
    /// Correlation of neighbouring jobs within an interval, the mean over intervals.
    pub lag1_autocorrelation: Option<f64>,
    /// Values below 0.
    pub below_zero: u64,
}

impl Total {
    fn new(metric: Metric) -> Total {
        Total {
            metric,
            histogram: empty(),
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            mean_ns: 0.0,
            squares_ns2: 0.0,
            lag1_autocorrelation: None,
            below_zero: 0,
        }
    }

    /// Adds the values of another part of the same metric. The correlation becomes the mean of both, weighted by
    /// their jobs.
    ///
    /// Moments of two parts: Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American
    /// Statistician 37(3), 1983.
    pub fn add(&mut self, other: &Total) {
        let (ours, theirs) = (self.histogram.len() as f64, other.histogram.len() as f64);
        let part = theirs / (ours + theirs).max(1.0);
        let apart = other.mean_ns - self.mean_ns;
        self.mean_ns += apart * part;
        self.squares_ns2 += other.squares_ns2 + apart * apart * ours * part;
        self.lag1_autocorrelation = match (self.lag1_autocorrelation, other.lag1_autocorrelation) {
            (Some(a), Some(b)) => Some(a + (b - a) * part),
            (a, b) => a.or(b),
        };
        // Cannot fail: the sum grows with its parts.
        let _ = self.histogram.add(&other.histogram);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.below_zero = self.below_zero.saturating_add(other.below_zero);
    }
}

impl HistogramLog {
    /// Planned activations of the cell.
    pub fn planned(&self) -> u64 {
        self.begin.planned
    }

    /// Planned activations that are neither executed, skipped nor lost: a cell that was killed leaves some.
    pub fn unexplained(&self) -> u64 {
        self.planned().saturating_sub(self.counts.accounted())
    }

    /// The last header that the probe wrote.
    pub fn header(&self) -> Header {
        self.end.unwrap_or(self.begin)
    }
}

/// Reads the log at `path`; `None` when not even its head was written.
///
/// # Errors
/// [`RecordError::Malformed`] when a line is not as it should be or the counts contradict each other.
pub fn read(path: &Path) -> Result<Option<HistogramLog>, RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open"))?;
    parse(path, BufReader::with_capacity(1 << 16, file))
}

/// [`read`] from any source; the entry point of the fuzz target.
pub fn parse(path: &Path, from: impl BufRead) -> Result<Option<HistogramLog>, RecordError> {
    let mut sums = Sums::default();
    let ends = visit(path, from, |interval, histograms| {
        sums.add(interval, histograms)
    })?;
    let Some(begin) = ends.begin else {
        return Ok(None);
    };
    Ok(Some(HistogramLog {
        begin,
        end: ends.end,
        counts: ends.counts,
        intervals: sums.intervals,
        totals: sums.totals,
        worst: sums.worst.sorted(),
        cut_off: ends.cut_off,
    }))
}

/// Number of activations that the log at `path` accounts for.
///
/// # Errors
/// As [`read`].
pub fn accounted(path: &Path) -> Result<Counts, RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open"))?;
    let ends = visit(path, BufReader::with_capacity(1 << 16, file), |_, _| {})?;
    Ok(ends.counts)
}

/// The head and end around the intervals.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// The probe's header when it was released.
    pub begin: Option<Header>,
    /// The probe's header at its end.
    pub end: Option<Header>,
    /// Activations of all intervals.
    pub counts: Counts,
    /// Whether lines follow the last whole interval.
    pub cut_off: bool,
}

/// Calls `each` with every whole interval of the log and its histograms, in order.
///
/// # Errors
/// As [`read`].
pub fn visit(
    path: &Path,
    mut from: impl BufRead,
    mut each: impl FnMut(&Interval, &[(Metric, Histogram<u64>)]),
) -> Result<Ends, RecordError> {
    let mut ends = Ends::default();
    let mut pending: Vec<(Metric, Histogram<u64>)> = Vec::new();
    let mut next = 0u64;
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let length = (&mut from)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(RecordError::io(path, "read"))?;
        if length == 0 {
            break;
        }
        let wrong = |what: String| RecordError::malformed(path, format!("line {number}: {what}"));
        if line.last() != Some(&b'\n') {
            if length as u64 == LONGEST_LINE {
                return Err(wrong(format!("longer than {LONGEST_LINE} bytes")));
            }
            // The power failed while it was written.
            ends.cut_off = true;
            break;
        }
        if let Some(json) = line.strip_prefix(BEGIN.as_bytes()) {
            let header = json_of::<Header>(json).map_err(wrong)?;
            if ends.begin.replace(header).is_some() {
                return Err(wrong("a second `#timecell-begin`".to_owned()));
            }
        } else if let Some(json) = line.strip_prefix(END.as_bytes()) {
            let header = json_of::<Header>(json).map_err(wrong)?;
            if ends.end.replace(header).is_some() {
                return Err(wrong("a second `#timecell-end`".to_owned()));
            }
        } else if let Some(json) = line.strip_prefix(INTERVAL.as_bytes()) {
            let interval = json_of::<Interval>(json).map_err(wrong)?;
            check(&interval, &pending, next).map_err(wrong)?;
            next = interval.interval.saturating_add(1);
            let sum = |a: u64, b: u64| {
                a.checked_add(b)
                    .ok_or_else(|| wrong("counts beyond 2^64".to_owned()))
            };
            ends.counts = Counts {
                executed: sum(ends.counts.executed, interval.executed)?,
                skipped: sum(ends.counts.skipped, interval.skipped)?,
                lost: sum(ends.counts.lost, interval.lost)?,
            };
            each(&interval, &pending);
            pending.clear();
        } else if !line.starts_with(b"#") && !line.starts_with(b"\"") {
            if pending.len() >= Metric::ALL.len() {
                return Err(wrong("more histograms than metrics".to_owned()));
            }
            pending.push(histogram(&line).map_err(wrong)?);
        }
    }
    ends.cut_off |= !pending.is_empty();
    match &ends.begin {
        None if ends.counts != Counts::default() || ends.end.is_some() => Err(
            RecordError::malformed(path, "a histogram log without its `#timecell-begin` line"),
        ),
        Some(begin) => {
            consistent(begin, &ends).map_err(|what| RecordError::malformed(path, what))?;
            Ok(ends)
        }
        None => Ok(ends),
    }
}

/// The accounted activations must not exceed the planned ones, and must equal them at the end.
fn consistent(begin: &Header, ends: &Ends) -> Result<(), String> {
    let counts = ends.counts;
    let sum =
        (counts.executed.checked_add(counts.skipped)).and_then(|n| n.checked_add(counts.lost));
    if sum.is_none_or(|sum| sum > begin.planned) {
        return Err(format!(
            "{} recorded, {} skipped and {} lost activations are more than the {} planned",
            counts.executed, counts.skipped, counts.lost, begin.planned
        ));
    }
    if let Some(end) = &ends.end
        && (end.planned != begin.planned
            || sum != Some(end.planned)
            || end.count != counts.executed
            || end.skipped != counts.skipped)
    {
        return Err(format!(
            "its intervals hold {} jobs, {} skipped and {} lost activations, but its end says {} and {} of {} planned",
            counts.executed, counts.skipped, counts.lost, end.count, end.skipped, end.planned
        ));
    }
    Ok(())
}

fn json_of<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|error| format!("not of this format: {error}"))
}

fn check(
    interval: &Interval,
    histograms: &[(Metric, Histogram<u64>)],
    next: u64,
) -> Result<(), String> {
    if interval.interval < next {
        return Err(format!(
            "interval {} follows interval {}",
            interval.interval,
            next.saturating_sub(1)
        ));
    }
    if interval.start_ns < 0 || interval.end_ns < interval.start_ns {
        return Err("an interval that ends before it begins".to_owned());
    }
    for (metric, histogram) in histograms {
        if histogram.len() != interval.executed {
            return Err(format!(
                "the histogram `{}` holds {} jobs, but its interval {}",
                metric.tag(),
                histogram.len(),
                interval.executed
            ));
        }
        let closed = interval.metrics.iter().find(|m| m.metric == *metric);
        let Some(closed) = closed else {
            return Err(format!(
                "the interval does not name the metric `{}`",
                metric.tag()
            ));
        };
        if interval.executed > 0
            && (closed.min_ns > closed.max_ns
                || !closed.mean_ns.is_finite()
                || !closed.squares_ns2.is_finite())
        {
            return Err(format!(
                "the figures of `{}` are out of order",
                metric.tag()
            ));
        }
    }
    let listed = if interval.executed > 0 {
        interval.metrics.len()
    } else {
        0
    };
    if histograms.len() != listed {
        return Err(format!(
            "{} histograms for {listed} metrics",
            histograms.len()
        ));
    }
    Ok(())
}

/// One line of HdrHistogram's format.
fn histogram(line: &[u8]) -> Result<(Metric, Histogram<u64>), String> {
    let entry = IntervalLogIterator::new(line).next();
    let Some(Ok(LogEntry::Interval(entry))) = entry else {
        return Err("neither a comment nor a histogram".to_owned());
    };
    let tag = entry
        .tag()
        .map(|tag| tag.as_str().to_owned())
        .unwrap_or_default();
    let metric =
        metric_of(&tag).ok_or_else(|| format!("unknown metric `{}`", tag.escape_debug()))?;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(entry.encoded_histogram())
        .map_err(|error| format!("not base64: {error}"))?;
    let plain = unpacked(&bytes)?;
    if digits(&plain) != Some(DIGITS.into()) {
        return Err(format!(
            "the histogram does not have {DIGITS} significant digits"
        ));
    }
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| format!("not a histogram: {error}"))?;
    Ok((metric, histogram))
}

/// A number of a histogram's head.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Significant digits of a plain V2 encoding.
fn digits(plain: &[u8]) -> Option<u32> {
    const DIGITS_AT: usize = 12;
    number(plain, DIGITS_AT)
}

/// The plain V2 encoding inside a compressed one; lengths are checked before allocating.
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
    const COMPRESSED: u32 = 0x1c84_9314;
    const LENGTH_AT: usize = 4;
    const PAYLOAD_AT: usize = 40;
    if number(bytes, 0) != Some(COMPRESSED) || bytes.len() < 8 {
        return Err("not a compressed V2 histogram".to_owned());
    }
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(&bytes[8..])
        .take(LONGEST_HISTOGRAM)
        .read_to_end(&mut plain)
        .map_err(|error| format!("the histogram cannot be unpacked: {error}"))?;
    let payload = plain.len().checked_sub(PAYLOAD_AT);
    if payload.is_none() || number(&plain, LENGTH_AT).map(|n| n as usize) != payload {
        return Err("the histogram is shorter or longer than it says".to_owned());
    }
    Ok(plain)
}

/// Adds up intervals.
struct Sums {
    intervals: Vec<IntervalSummary>,
    totals: Vec<Total>,
    worst: Worst,
    order: u64,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums {
            intervals: Vec::new(),
            totals: Vec::new(),
            worst: Worst::new(WORST),
            order: 0,
        }
    }
}

impl Sums {
    fn add(&mut self, interval: &Interval, histograms: &[(Metric, Histogram<u64>)]) {
        let mut metrics = Vec::new();
        for (metric, histogram) in histograms {
            let Some(told) = interval.metrics.iter().find(|m| m.metric == *metric) else {
                continue;
            };
            let at = |p| {
                let value = i64::try_from(histogram.value_at_quantile(p)).unwrap_or(i64::MAX);
                value.clamp(told.min_ns, told.max_ns)
            };
            metrics.push((*metric, [told.min_ns, at(0.5), at(0.99), told.max_ns]));
            self.total(told, histogram.clone());
        }
        if let Some(primary) = interval.metrics.first().map(|m| m.metric) {
            for job in &interval.worst {
                self.order += 1;
                self.worst.offer(job.0.of(primary), self.order, &job.0);
            }
        }
        self.intervals.push(IntervalSummary {
            interval: interval.interval,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            closed: interval.closed.clone(),
            counts: Counts {
                executed: interval.executed,
                skipped: interval.skipped,
                lost: interval.lost,
            },
            metrics,
        });
    }

    fn total(&mut self, told: &super::MetricInterval, histogram: Histogram<u64>) {
        let part = Total {
            metric: told.metric,
            histogram,
            min_ns: told.min_ns,
            max_ns: told.max_ns,
            mean_ns: told.mean_ns,
            squares_ns2: told.squares_ns2,
            lag1_autocorrelation: told.lag1_autocorrelation,
            below_zero: told.below_zero,
        };
        match self.totals.iter_mut().find(|t| t.metric == told.metric) {
            Some(total) => total.add(&part),
            None => {
                let mut total = Total::new(told.metric);
                total.add(&part);
                self.totals.push(total);
            }
        }
    }
}
