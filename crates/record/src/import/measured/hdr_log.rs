//! Interval logs of HdrHistogram (`.hlog`), those of `timecell export --hdr` among them: the histograms of all intervals
//! added up, one distribution for each tag. The format names neither unit nor quantity; timecell's logs name both in a
//! comment.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use model::InputError;

use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Source, Unit, excerpt, fault, scaled};
use crate::Metric;
use crate::export::METRIC;

pub(super) const READER: Reader = Reader {
    unit_is_open: true,
    ..Reader::new(
        "hdr-log",
        "Interval logs of HdrHistogram (.hlog)",
        senses,
        read,
    )
};

fn senses(head: &Head) -> bool {
    head.line(|line| {
        line.starts_with("#[Histogram log format version")
            || line.starts_with("\"StartTimestamp\",\"Interval_Length\"")
    })
}

/// A log written by timecell, which says what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// For other tools: one metric, named in a comment.
    Exported(Metric),
    /// Within a run: the tags are the metrics.
    Kept,
}

impl Ours {
    /// What a comment says.
    fn of(line: &str) -> Option<Ours> {
        let comment = line.strip_prefix('#')?;
        if comment.starts_with("timecell-begin ") {
            return Some(Ours::Kept);
        }
        metric(comment.strip_prefix(METRIC)?.trim()).map(Ours::Exported)
    }

    fn quantity(self, tag: &str) -> &'static str {
        let metric = match self {
            Ours::Exported(metric) => Some(metric),
            Ours::Kept => metric(tag),
        };
        metric.map_or("recorded value", Metric::title)
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
        return Err("the line is neither a comment nor an interval".to_owned());
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

fn read(source: &mut Source, options: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut tags: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut ours = None;
    while let Some((line, number)) = source.line()? {
        if let Some(found) = Ours::of(line) {
            if ours.is_some_and(|known| known != found) {
                let what = "a log of another metric begins";
                return Err(fault(&name, number, what, "put each into its own file"));
            }
            ours = Some(found);
            continue;
        }
        let at = |what: String| fault(&name, number, what, "");
        if line.trim().is_empty() || line.starts_with('#') || line.starts_with('"') {
            continue;
        }
        let (tag, histogram) = entry(line).map_err(at)?;
        let full = tags.len() >= 1_000;
        match tags.get_mut(&tag) {
            Some(sum) => sum
                .add(&histogram)
                .map_err(|_| at("the histogram does not fit those before it".to_owned()))?,
            None if full => return Err(at("there are over 1,000 tags".to_owned())),
            None => {
                let mut histogram = histogram;
                histogram.auto(true);
                tags.insert(tag, histogram);
            }
        }
    }
    if ours.is_some() && options.unit.is_some_and(|unit| unit != Unit::Ns) {
        let what = "timecell wrote the file, in ns";
        return Err(InputError::new(&name, what, "remove --unit"));
    }
    let unit_ns = options.unit.unwrap_or(Unit::Ns).ns();
    let mut measured = Measured::by(if ours.is_some() {
        "timecell"
    } else {
        "HdrHistogram"
    });
    for (tag, histogram) in tags {
        let quantity = ours.map_or("recorded value", |ours| ours.quantity(&tag));
        let mut d = Distribution::new(tag, quantity, unit_ns);
        for bin in histogram.iter_recorded() {
            let upper = histogram.highest_equivalent(bin.value_iterated_to());
            let upper = i64::try_from(upper).unwrap_or(i64::MAX);
            let upper = scaled(upper, unit_ns).map_err(|what| InputError::new(&name, what, ""))?;
            d.counts.push((upper, bin.count_at_value()));
        }
        if let Some(&(highest, _)) = d.counts.last() {
            let low = histogram.lowest_equivalent(histogram.max());
            let width = highest / unit_ns - i64::try_from(low).unwrap_or(0) + 1;
            d.resolution_ns = width.max(1).saturating_mul(unit_ns);
        }
        measured.distributions.push(d);
    }
    measured.notes.push(
        "values are the upper ends of their bins; the width is that of the widest".to_owned(),
    );
    if options.unit.is_none() && ours.is_none() {
        measured.notes.push(
            "an interval log names no unit; nanoseconds are assumed, as timecell writes (--unit)"
                .to_owned(),
        );
    }
    Ok(measured)
}
