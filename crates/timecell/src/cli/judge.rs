//! The options that say how `bench` and `report` judge a run.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use study::judge::Threshold;

/// Options of judging.
#[derive(Debug, Args)]
pub struct Judge {
    /// Fail (exit code 3) if this holds, such as 'latency.p99 > 100us'; may be repeated.
    ///
    /// The form is [NAME.]METRIC.STATISTIC OP LIMIT or [NAME.]COUNT OP LIMIT. NAME is a trial, a cell, trial/cell or an
    /// engine, with * for any characters; without it, every cell is judged. METRIC is latency, execution, response, skew, creation,
    /// memory, time or gap, if the kind of run has it; STATISTIC is min, median, mean, p90, p95, p99, p99.9, p99.99, max or sd; COUNT
    /// is late, skipped, missed, lost, faults or failed. OP is >, >=, < or <=. LIMIT is a time with its unit, a size with its unit
    /// (memory), a number (counts), or a ratio such as 1.1x (median and p99) to --baseline, or without it to the run's own baseline trial.
    ///
    /// The 95 % interval decides: fails if all of it lies beyond the limit, undecided if the limit lies within it.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Threshold>,
    /// Compare each cell with the cell of the same name in this run of the same kind, to which ratios of --fail-if then refer.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub baseline: Option<PathBuf>,
    /// Compare with --baseline even if its work, period or load differs.
    #[arg(long, requires = "baseline")]
    pub allow_unlike: bool,
}
