//! Files of other tools: their distributions summed up. A quantile that lies among values beyond a tool's histogram is "above", and never
//! a number that was not measured.

mod readings;
mod summary;

pub use readings::measured_readings;
pub use summary::{
    DistributionSummary, FileSummary, MeasuredSummary, OverflowSummary, QuantileSummary,
    measured_summary,
};

use record::import::measured::{Distribution, Reach};

/// The quantiles that are shown, and their names.
pub const QUANTILES: [(f64, &str); 4] = [
    (0.5, "median"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// A quantile, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The value, ns.
    At(i64),
    /// Among the overflowed: at least this, ns.
    Above(i64),
    /// More values are needed: so many.
    Needs(u64),
    /// The file does not hold it.
    Absent,
}

/// The quantile if enough values bound it, as everywhere in timecell.
pub fn shown(d: &Distribution, probability: f64) -> Shown {
    let needed = stats::needed_count(probability, stats::DEFAULT_CONFIDENCE);
    match (d.quantile(probability), d.total(), needed) {
        (Reach::Unknown, ..) | (_, None, _) => Shown::Absent,
        // The tool's own figure.
        (Reach::At(ns), Some(0), _) => Shown::At(ns),
        (_, Some(total), Some(needed)) if total < needed => Shown::Needs(needed),
        (Reach::At(ns), ..) => Shown::At(ns),
        (Reach::Above(ns), ..) => Shown::Above(ns),
    }
}
