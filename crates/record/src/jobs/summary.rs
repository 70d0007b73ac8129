//! `summary.json`: the summary of a run's samples. Computed from the record, and computable again.

use model::{EngineKind, LoadKind, Requirement};
use serde::{Deserialize, Serialize};

use super::trial::{EMULATED, HeldBy};
use crate::document::Document;
pub use crate::ground::{Metric, NotMeasured};
use crate::run::Resumption;

/// Schema of `summary.json`.
pub const SUMMARY_SCHEMA: u64 = 1;

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// Name of the experiment.
    pub experiment: String,
    /// The trial with which others are compared.
    pub baseline: String,
    /// The metric that tables and comparisons are about.
    pub primary: Metric,
    /// Whether every measured cell ran in a real-time class.
    pub real_time: bool,
    /// One entry per cell of every trial of the experiment, rounds pooled, in the experiment's order.
    pub cells: Vec<CellSummary>,
    /// The task of the user's program that the cells are about; `None` if they run no program that reports its tasks, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The other tasks of the program of each cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideSummary>,
    /// The loads of each trial that had any.
    #[serde(default)]
    pub loads: Vec<LoadSummary>,
    /// The conditions of each cell; empty if they were the same for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointSummary>,
    /// Start skew of each trial that has more than one cell.
    pub skews: Vec<SkewSummary>,
    /// Engines and trials that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Requirements that the machine did not meet.
    pub unmet: Vec<Requirement>,
    /// Trials that failed, as sentences.
    pub failures: Vec<String>,
    /// Why activations were skipped or jobs were late, as far as the record shows, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overloads: Vec<String>,
    /// Tails of every metric of every cell that left samples, in the cells' order, the primary metric first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailSummary>,
    /// Every resumption of the run after it had ended early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// Total time of its rounds, ns; `None` for a single trial, or if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasted_ns: Option<i64>,
}

impl Document for RunSummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = SUMMARY_SCHEMA;
}

/// A task of a cell's program beside the one that is compared, over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BesideSummary {
    /// Trial's name.
    pub trial: String,
    /// Cell's identity in the trial.
    pub cell: String,
    /// The name in tables, as that of the cell.
    pub label: String,
    /// The task's name.
    pub task: String,
    /// Time between its releases, ns, which is also its deadline.
    pub period_ns: i64,
    /// Jobs recorded.
    pub executed: u64,
    /// Activations skipped; of a program that takes turns, none is counted.
    #[serde(alias = "missed")]
    pub skipped: u64,
    /// Jobs that ended more than a period after their release.
    pub late: u64,
    /// The execution time; `None` without jobs.
    pub execution: Option<stats::Summary>,
    /// The response time; `None` without jobs.
    pub response: Option<stats::Summary>,
}

/// One cell over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The task of this thread, if a task set was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskSummary>,
    /// Trial's name.
    pub trial: String,
    /// Cell's identity in the trial, such as `1-podman`.
    pub cell: String,
    /// The name in tables: the trial's for a single cell, else `trial/cell`.
    pub label: String,
    /// The engine that made the cell.
    pub engine: EngineKind,
    /// Rounds that were measured.
    pub rounds: u32,
    /// Class that the kernel reported, such as `FIFO 80`.
    pub class: String,
    /// Whether that is a real-time class.
    pub real_time: bool,
    /// Cpus that the cell was pinned to over the rounds.
    pub cpus: Vec<u32>,
    /// Activations planned.
    pub planned: u64,
    /// Jobs executed.
    pub executed: u64,
    /// Activations skipped and counted.
    #[serde(alias = "missed")]
    pub skipped: u64,
    /// Jobs that ended after their deadline; skipped activations are separate. `None` where jobs have no deadline (`pacing =
    /// "relative"`), and in summaries of versions that did not count it.
    #[serde(default)]
    pub late: Option<u64>,
    /// Their share of the activations planned, with the 95 % interval over rounds. Absent exactly when `late` is, and where
    /// nothing was planned.
    #[serde(default)]
    pub late_share: Option<stats::Share>,
    /// The share of the activations planned that were skipped, likewise.
    #[serde(default)]
    #[serde(alias = "missed_share")]
    pub skipped_share: Option<stats::Share>,
    /// Relative deadline, ns: the task's, or the next release if only a period is given. `None` if jobs have none.
    #[serde(default)]
    pub deadline_ns: Option<i64>,
    /// Time between releases, ns; `None` with relative pacing.
    #[serde(default)]
    pub period_ns: Option<i64>,
    /// Activations neither executed nor counted: more than 0 fails the run.
    pub unexplained: u64,
    /// Jobs that ran but were not recorded, because the reader was not scheduled in time; only where histograms were
    /// kept. More than 0 fails the run.
    #[serde(default)]
    pub lost: u64,
    /// The metrics, the primary one first.
    pub metrics: Vec<MetricSummary>,
    /// Comparison of the primary metric with the baseline; `None` for the baseline itself.
    pub against_baseline: Option<stats::Comparison>,
    /// The same for each metric, turn by turn, where it took turns with the baseline; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_turns: Vec<InTurns>,
    /// The cell's work, if the cells of its trial have their own tasks; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does: Option<String>,
    /// Whether each of its jobs is one execution of a program, so that every time includes its start and exit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executions: bool,
    /// Median wall time of creation, from the request until the payload's first message, ns.
    pub create_median_ns: Option<i64>,
    /// Cpu time of the measuring thread per activation, ns, work included.
    pub cpu_time_per_activation_ns: Option<f64>,
    /// Cpu time of a program that neither ends nor reports its jobs, ns per second that it runs; absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_second_ns: Option<f64>,
    /// The probe's own cost: one clock reading, ns (median over rounds).
    pub clock_cost_ns: u64,
    /// The probe's own cost: recording one job, ns (median over rounds).
    pub loop_cost_ns: u64,
    /// Page faults in the measuring loop over all rounds.
    pub faults: u64,
    /// Remarks, each once.
    pub notes: Vec<String>,
    /// Values of histograms besides the metrics; `None` if samples were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<HistogramSummary>,
}

impl CellSummary {
    /// The end of its name in tables where it is a virtual machine whose instructions were translated, else nothing.
    pub fn caution(&self) -> &'static str {
        match self.label.ends_with(EMULATED) {
            true => EMULATED,
            false => "",
        }
    }
}

/// One metric of a cell compared with the baseline, from neighbouring turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InTurns {
    /// The metric.
    pub metric: Metric,
    /// The trial with which it took turns and is compared: the baseline, or its counterpart with the same load.
    pub against: String,
    /// Trials that repeat that one: each round's ratio is to the mean of all of them. Empty for such a trial itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled_with: Vec<String>,
    /// Number of laps, over all rounds.
    pub laps: u64,
    /// The ratios over all jobs.
    pub comparison: stats::Comparison,
    /// Activations per round that the ratio of p99 would need, if there were too few: the jobs needed, divided by the share of
    /// activations that was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_for_p99: Option<u32>,
    /// The factor between the machine's slow state and its fast one, where the jobs of all cells show two.
    pub slow_over_fast: Option<f64>,
    /// The ratios within each of them.
    pub within: Option<stats::WithinStates>,
    /// If the jobs show one state: the smallest share of jobs at which a second one, 1.5 times as slow, would have been found,
    /// determined by planting one in the same jobs; absent if there are two states, for metrics other than the primary one, and
    /// if not even a fifth would have sufficed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_state_share: Option<f64>,
}

/// The record of a cell instead of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// Every median and quantile is too large by at most this share of its value.
    pub relative_error: f64,
    /// Values below 0 of the primary metric, which are in its histogram as 0.
    pub below_zero: u64,
    /// Trials and intervals in the order measured.
    pub intervals: Vec<IntervalFigures>,
    /// The worst jobs by the primary metric, the worst first.
    pub worst: Vec<WorstJob>,
}

/// The primary metric in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalFigures {
    /// Number of the trial.
    pub trial: u32,
    /// Round.
    pub round: u32,
    /// Where it begins, ns since the trial's release.
    pub start_ns: i64,
    /// Where it ends, ns since the trial's release.
    pub end_ns: i64,
    /// Jobs recorded.
    pub executed: u64,
    /// Activations skipped.
    #[serde(alias = "missed")]
    pub skipped: u64,
    /// Jobs lost.
    pub lost: u64,
    /// Smallest value, ns; the figures are absent when nothing ran.
    pub min_ns: Option<i64>,
    /// Median, ns.
    pub median_ns: Option<i64>,
    /// 99th percentile, ns, with any number of jobs.
    pub p99_ns: Option<i64>,
    /// Largest value, ns.
    pub max_ns: Option<i64>,
}

/// One of the worst jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstJob {
    /// Number of the trial.
    pub trial: u32,
    /// Round.
    pub round: u32,
    /// Its value of the primary metric, ns.
    pub value_ns: i64,
    /// Activation number from 0 within the trial.
    pub index: u32,
    /// Activations skipped right before it.
    #[serde(alias = "missed_before")]
    pub skipped_before: u32,
    /// Its release, ns since the trial's release.
    pub since_release_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub release_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub start_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub end_ns: i64,
}

/// One task of a set that was run, with the result of its analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Its name.
    pub name: String,
    /// Name of its cell in the set.
    pub cell: String,
    /// Whether it competes with the set instead of being part of it.
    pub competes: bool,
    /// Requested worst-case execution time, ns.
    pub wcet_ns: i64,
    /// Time between releases, ns.
    pub period_ns: i64,
    /// Relative deadline, ns.
    pub deadline_ns: i64,
    /// The analysis's bound on its response time, ns; `None` if there is none within the deadline.
    pub bound_ns: Option<i64>,
    /// Jobs that ended after their deadline; those that were never begun are `skipped` of the cell.
    pub late: u64,
    /// Response times in ns, ascending, each with the share of jobs that took at least that long: all rounds, thinned.
    pub response_ccdf: Vec<(i64, f64)>,
    /// Cpu time of one step of its work, ps, by the calibration of each round.
    pub step_ps: Vec<u64>,
    /// The enforcement of its cell's budget; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldSummary>,
}

/// The enforcement of the budget of a task's cell, and its guarantees. The task's bound is then the textbook's in this
/// reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSummary {
    /// The enforcer and the budget.
    pub by: HeldBy,
    /// The cpu.
    pub cpu: u32,
    /// The bound on the task's response time with the enforcer's guaranteed supply, ns; `None` if there is none within the
    /// deadline, or if others may keep the budget from being supplied within its period.
    pub certain_ns: Option<i64>,
    /// The largest lateness of the process that held it, over all rounds, ns; `None` if the kernel enforces.
    pub latest_look_ns: Option<u64>,
    /// The largest overrun of the cell, likewise.
    pub most_overrun_ns: Option<u64>,
}

/// One metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// Which metric.
    pub metric: Metric,
    /// Pooled over rounds.
    pub summary: stats::Summary,
    /// Median of each round, ns, in the order of rounds: shows drift.
    pub round_medians_ns: Vec<i64>,
    /// Mean of each round, ns, in round order.
    #[serde(default)]
    pub round_means_ns: Vec<f64>,
    /// Largest value of each round, ns, in round order.
    #[serde(default)]
    pub round_maxima_ns: Vec<i64>,
    /// Correlation of neighbouring jobs; far from 0, the intervals of quantiles are too narrow.
    pub lag1_autocorrelation: Option<f64>,
}

/// The tail of one metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TailSummary {
    /// Trial's name.
    pub trial: String,
    /// Cell's identity in the trial.
    pub cell: String,
    /// The cell's name in tables.
    pub label: String,
    /// Which metric.
    pub metric: Metric,
    /// Time between releases, ns: the time that one job stands for, unless cells take turns.
    pub period_ns: i64,
    /// Mean time between the counted jobs of a cell that took turns, ns, most of which belongs to others; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing_ns: Option<f64>,
    /// The analysis of its tail.
    pub tail: stats::Tail,
}

/// One load of one trial over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Trial's name.
    pub trial: String,
    /// Load's name in it.
    pub name: String,
    /// Its kind.
    pub kind: LoadKind,
    /// `built in`, or program and version.
    pub form: String,
    /// `host`, or `cell (embedded)`.
    pub place: String,
    /// Cpus that it was allowed to use.
    pub cpus: Vec<u32>,
    /// Its command line.
    pub command: String,
    /// Rounds on record.
    pub rounds: u32,
    /// Rounds in which it failed.
    pub failed: u32,
    /// Its work.
    pub achieved: Vec<AchievedSummary>,
    /// Seconds in which a load with a fixed pace did not finish its work, over all rounds.
    pub missed_seconds: Option<u64>,
}

/// One measure of a load's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AchievedSummary {
    /// Such as `messages`.
    pub quantity: String,
    /// Such as `1/s`.
    pub unit: String,
    /// Rounds in which it was measured.
    pub rounds: Vec<u32>,
    /// The value of each of them.
    pub values: Vec<f64>,
}

/// The conditions of one cell of one trial, with the results that depend on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointSummary {
    /// Trial's name.
    pub trial: String,
    /// Cell's identity in it.
    pub cell: String,
    /// The cell's place in [`RunSummary::cells`].
    pub index: usize,
    /// Its cpu.
    pub cpu: u32,
    /// The trial's loads in one word, `idle` for none.
    pub load: String,
    /// Time between releases, ns.
    pub period_ns: i64,
    /// Whether its cpu was kept free of other work.
    pub isolated: bool,
    /// The virtual machine that it is, such as `qemu, linux-image-amd64 (emulated)`; absent if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The primary metric divided by that of the same engine, cpu, load and period with a cpu that was not kept free.
    pub against_shared: Option<stats::Comparison>,
    /// Counters read beside the cell, compared with its primary metric.
    pub counters: Vec<CounterSummary>,
}

impl PointSummary {
    /// Its engine, or the virtual machine that it is.
    pub fn made_by(&self, engine: EngineKind) -> &str {
        self.machine.as_deref().unwrap_or(engine.name())
    }
}

/// The interval of one value of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// A window of some milliseconds, read from outside of the cell.
    #[default]
    Window,
    /// An activation, read by the thread itself.
    Activation,
}

/// One counter compared with the primary metric, window by window or activation by activation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterSummary {
    /// The event, such as `cache misses of the cell`.
    pub name: String,
    /// The interval of each value.
    #[serde(default)]
    pub per: Per,
    /// Number of values over all rounds: windows in which the cell had a job, or activations except the first of each
    /// round.
    pub windows: u64,
    /// Total count in all of them.
    pub total: u64,
    /// Pearson's correlation of a window's count with its largest value, or of an activation's with its own; `None`
    /// where one of the two never changes.
    pub pearson: Option<f64>,
    /// Spearman's, of the ranks.
    pub spearman: Option<f64>,
}

/// How far apart the cells of a trial started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkewSummary {
    /// Trial's name.
    pub trial: String,
    /// Cells in the trial.
    pub cells: u32,
    /// Latest minus earliest actual start in each round, ns.
    pub skew_ns: Vec<u64>,
    /// The same between the first cell of each cpu; empty when one cpu was used.
    pub first_of_cpu_skew_ns: Vec<u64>,
    /// Earliest actual start minus the published instant in each round, ns.
    pub first_start_after_go_ns: Vec<i64>,
}
