//! Output of `timecell report FILE... --json`.

use record::import::measured::{Distribution, Measured};
use serde::Serialize;

use super::{QUANTILES, Shown, shown};

/// Schema of the summary.
const SCHEMA: u64 = 1;

/// Files of other tools in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredSummary {
    /// 1.
    pub schema: u64,
    /// In the order given.
    pub files: Vec<FileSummary>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileSummary {
    /// Its path, or the name of a run.
    pub file: String,
    /// The format that it was read as; `None` for a run of timecell.
    pub format: Option<&'static str>,
    /// The tool.
    pub tool: String,
    /// Its version, where known.
    pub version: Option<String>,
    /// Its command line, where known.
    pub command: Option<String>,
    /// The machine, where known.
    pub machine: Option<String>,
    /// One entry per thread, cpu or task.
    pub distributions: Vec<DistributionSummary>,
    /// Assumptions, roundings and omissions.
    pub notes: Vec<String>,
}

/// One thread, cpu or task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DistributionSummary {
    /// Its name.
    pub name: String,
    /// The quantity.
    pub quantity: String,
    /// The cpu, where known.
    pub cpu: Option<u32>,
    /// Width of a bucket, ns.
    pub resolution_ns: i64,
    /// Values in the histogram.
    pub counted: u64,
    /// Values beyond it.
    pub overflow: Option<OverflowSummary>,
    /// Values measured, as the tool says.
    pub cycles: Option<u64>,
    /// Smallest value, ns.
    pub min_ns: Option<i64>,
    /// Mean, ns.
    pub mean_ns: Option<f64>,
    /// Largest value, ns; a lower bound of the worst case.
    pub max_ns: Option<i64>,
    /// Median, p99, p99.9 and p99.99.
    pub quantiles: Vec<QuantileSummary>,
}

/// Values beyond the histogram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverflowSummary {
    /// How many; `None` when the file only shows that there are some.
    pub count: Option<u64>,
    /// They are at least this, ns.
    pub at_least_ns: i64,
}

/// One quantile; exactly one of the options is set, none if the file does not hold it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantileSummary {
    /// Strictly between 0 and 1.
    pub probability: f64,
    /// The value, ns.
    pub value_ns: Option<i64>,
    /// It lies among the overflowed: at least this, ns.
    pub above_ns: Option<i64>,
    /// So many values would bound it.
    pub needed_count: Option<u64>,
}

/// The summary of files, in the order given.
pub fn measured_summary(files: &[Measured]) -> MeasuredSummary {
    MeasuredSummary {
        schema: SCHEMA,
        files: files.iter().map(file).collect(),
    }
}

fn file(file: &Measured) -> FileSummary {
    FileSummary {
        file: file.file.clone(),
        format: file.format.map(|format| format.name()),
        tool: file.tool.clone(),
        version: file.version.clone(),
        command: file.command.clone(),
        machine: file.machine.clone(),
        distributions: file.distributions.iter().map(distribution).collect(),
        notes: file.notes.clone(),
    }
}

fn distribution(d: &Distribution) -> DistributionSummary {
    let quantile = |(probability, _): (f64, &str)| {
        let (mut value_ns, mut above_ns, mut needed_count) = (None, None, None);
        match shown(d, probability) {
            Shown::At(ns) => value_ns = Some(ns),
            Shown::Above(ns) => above_ns = Some(ns),
            Shown::Needs(needed) => needed_count = Some(needed),
            Shown::Absent => {}
        }
        QuantileSummary {
            probability,
            value_ns,
            above_ns,
            needed_count,
        }
    };
    DistributionSummary {
        name: d.name.clone(),
        quantity: d.quantity.clone(),
        cpu: d.cpu,
        resolution_ns: d.resolution_ns,
        counted: d.counted(),
        overflow: d.overflow.map(|over| OverflowSummary {
            count: over.count,
            at_least_ns: over.at_least_ns,
        }),
        cycles: d.said.cycles,
        min_ns: d.min_ns(),
        mean_ns: d.mean_ns(),
        max_ns: d.max_ns(),
        quantiles: QUANTILES.map(quantile).into(),
    }
}
