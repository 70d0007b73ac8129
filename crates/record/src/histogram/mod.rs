//! The histogram log: the record of a cell when a run is too long to keep its samples.
//!
//! One text file for each cell and trial, in the interval log format of HdrHistogram (version 1.3, histograms in its
//! compressed V2 encoding), which its own tools read: for each interval one line for each metric, tagged with the
//! metric's name. Data unknown to those tools is in comment lines: `#timecell-begin` and `#timecell-end` hold the
//! probe's header, `#timecell-interval` closes an interval with its counts, its exact extremes and moments, and its
//! worst jobs. An interval without that closing line was cut off while it was written, and is not read.
//! docs/src/run-formats.md describes the fields.
//!
//! [`Collector`] makes the log from samples, [`read`] takes it apart again.

mod collect;
mod continued;
mod interval;
mod moments;
mod read;
mod worst;

pub use collect::Collector;
pub use continued::{Continued, continued};
pub use interval::{Counts, Interval, Job, MetricInterval};
pub(crate) use read::unpacked;
pub use read::{HistogramLog, IntervalSummary, Total, accounted, parse, read, visit};
pub use worst::Worst;

use crate::Metric;
use hdrhistogram::Histogram;

/// Significant decimal digits of a histogram's values.
pub const DIGITS: u8 = 3;
/// Largest relative error of a value read from a histogram: its bins are at most this part of their values wide.
pub const RELATIVE_ERROR: f64 = 1.0 / 1024.0;
/// Number of worst jobs kept of each cell.
pub const WORST: usize = 1_000;
/// Number of worst jobs kept of each interval, even if they are not among the worst of the cell.
pub const WORST_OF_INTERVAL: usize = 5;

const BEGIN: &str = "#timecell-begin ";
const INTERVAL: &str = "#timecell-interval ";
const END: &str = "#timecell-end ";

/// An empty histogram of times in ns, 1 ns to 1 h and growing beyond.
fn empty() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(1, 3_600_000_000_000, DIGITS).expect("the bounds are in order");
    histogram.auto(true);
    histogram
}

/// The metric of this tag.
fn metric_of(tag: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.tag() == tag)
}

#[cfg(test)]
mod tests;
