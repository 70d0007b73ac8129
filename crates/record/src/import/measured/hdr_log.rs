//! Interval logs of HdrHistogram (`.hlog`), those of `timecell export --hdr` among them: the histograms of all intervals added up, one
//! distribution for each tag. The format names neither unit nor quantity; timecell's logs name both in a comment.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::lines::{Line, Lines, Run};
use super::sense::Reader;
use super::{Unit, excerpt, scaled};
use crate::Metric;
use crate::export::METRIC;

pub(super) const READER: Reader =
    Reader::text::<Log>("hdr-log", "Interval logs of HdrHistogram (.hlog)", |line| {
        line.starts_with("#[Histogram log format version")
            || line.starts_with("\"StartTimestamp\",\"Interval_Length\"")
    })
    .without_unit();

#[derive(Default)]
pub(super) struct Log {
    tags: BTreeMap<String, Histogram<u64>>,
    /// timecell wrote it; the metric that it names, or none within a run, where the tags are metrics.
    ours: Option<Option<Metric>>,
    /// Bins of all tags.
    room: usize,
}

/// Their maximum: 256 MiB.
const MOST_BINS: usize = 1 << 25;

impl Lines for Log {
    fn tool(&self) -> &'static str {
        "HdrHistogram"
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        let comment = line.strip_prefix('#').unwrap_or_default();
        let ours = match comment.strip_prefix(METRIC) {
            Some(tag) => metric(tag.trim()).map(Some),
            None => comment.starts_with("timecell-begin ").then_some(None),
        };
        if let Some(ours) = ours {
            if self.ours.replace(ours).is_some_and(|known| known != ours) {
                return Err("a log of another metric begins: put each into its own file".to_owned());
            }
            if run.unit.is_some_and(|unit| unit != Unit::Ns) {
                return Err("timecell wrote the file, in ns: remove --unit".to_owned());
            }
        }
        if line.starts_with(['#', '"']) {
            return Ok(Line::Own);
        }
        if !line.contains(',') {
            return Ok(Line::Other);
        }
        let (tag, mut histogram) = entry(line)?;
        match self.tags.get_mut(&tag) {
            Some(sum) => {
                self.room -= sum.distinct_values();
                (sum.add(&histogram))
                    .map_err(|_| "the histogram does not fit those before it".to_owned())?;
                self.room += sum.distinct_values();
            }
            None => {
                histogram.auto(true);
                self.room += histogram.distinct_values();
                self.tags.insert(tag, histogram);
            }
        }
        if self.room > MOST_BINS || self.tags.len() > 1_000 {
            return Err("there are too many tags, or too many bins".to_owned());
        }
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        let unit_ns = run.unit.unwrap_or(Unit::Ns).ns();
        for (tag, histogram) in std::mem::take(&mut self.tags) {
            let known = self.ours.and_then(|named| named.or_else(|| metric(&tag)));
            let quantity = known.map_or("recorded value", Metric::title);
            let d = &mut run.series(&tag, quantity, unit_ns)?.d;
            for bin in histogram.iter_recorded() {
                let upper = histogram.highest_equivalent(bin.value_iterated_to());
                let upper = i64::try_from(upper).unwrap_or(i64::MAX);
                d.counts
                    .push((scaled(upper, unit_ns)?, bin.count_at_value()));
            }
            if let Some(&(highest, _)) = d.counts.last() {
                let low = histogram.lowest_equivalent(histogram.max());
                let width = highest / unit_ns - i64::try_from(low).unwrap_or(0) + 1;
                d.resolution_ns = width.max(1).saturating_mul(unit_ns);
            }
        }
        run.note("values are the upper ends of their bins; the width is that of the widest");
        if self.ours.is_some() {
            "timecell".clone_into(&mut run.measured.tool);
        } else if run.unit.is_none() {
            run.note("an interval log names no unit; nanoseconds are assumed, as timecell writes (--unit)");
        }
        Ok(())
    }
}

fn metric(tag: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.tag() == tag)
}

/// The histogram of one line, and its tag.
fn entry(line: &str) -> Result<(String, Histogram<u64>), String> {
    let text = format!("{line}\n");
    let entry = IntervalLogIterator::new(text.as_bytes()).next();
    let Some(Ok(LogEntry::Interval(entry))) = entry else {
        return Err("the line is neither a comment nor an interval with its histogram".to_owned());
    };
    let tag = entry.tag().map_or("values", |tag| tag.as_str());
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(entry.encoded_histogram())
        .map_err(|_| "the histogram is not base64, or cut short".to_owned())?;
    let plain = crate::histogram::unpacked(&bytes)?;
    let histogram = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|_| "the histogram is damaged".to_owned())?;
    Ok((excerpt(tag).into_owned(), histogram))
}
