//! `summary.json`: what the samples of a run amount to. Computed from the record, and computable again.

use model::{EngineKind, LoadKind, Requirement};
use serde::{Deserialize, Serialize};

use super::trial::HeldBy;
use crate::document::Document;
pub use crate::ground::{Metric, NotMeasured};
use crate::run::Resumption;

/// Schema of `summary.json`.
pub const SUMMARY_SCHEMA: u64 = 1;

/// A whole run in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// Name of the experiment.
    pub experiment: String,
    /// The trial that others are compared with.
    pub baseline: String,
    /// The metric that tables and comparisons are about.
    pub primary: Metric,
    /// Whether every measured cell ran in a real-time class.
    pub real_time: bool,
    /// One entry per cell of every trial of the experiment, rounds pooled, in the experiment's order.
    pub cells: Vec<CellSummary>,
    /// What disturbed each trial that had a load.
    #[serde(default)]
    pub loads: Vec<LoadSummary>,
    /// Under which conditions each cell ran; empty where all cells ran under the same.
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
    /// Why activations were missed or jobs came late, as far as the record tells, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overloads: Vec<String>,
    /// Tails of every metric of every cell that left samples, in the cells' order, the primary metric first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailSummary>,
    /// Every time the run went on after it had ended before its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// How long its rounds took altogether, ns; `None` of a single trial, or one of which nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasted_ns: Option<i64>,
}

impl Document for RunSummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = SUMMARY_SCHEMA;
}

/// One cell over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The task whose thread this is, where a task set was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskSummary>,
    /// Trial's name.
    pub trial: String,
    /// Cell's identity in the trial, such as `1-podman`.
    pub cell: String,
    /// The name in tables: the trial's for a single cell, else `trial/cell`.
    pub label: String,
    /// What made the cell.
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
    /// Activations missed and counted.
    pub missed: u64,
    /// Jobs that ended after their deadline; activations that were missed are apart. `None` where jobs have no deadline
    /// (`pacing = "relative"`), and in summaries of versions that did not count it.
    #[serde(default)]
    pub late: Option<u64>,
    /// Their share of the activations planned, with the 95 % interval over rounds. Absent exactly when `late` is, and where
    /// nothing was planned.
    #[serde(default)]
    pub late_share: Option<stats::Share>,
    /// The share of the activations planned that were missed, likewise.
    #[serde(default)]
    pub missed_share: Option<stats::Share>,
    /// When a job must have ended, ns after its release: its task's deadline, or the next release where only a period is
    /// given. `None` where jobs have none.
    #[serde(default)]
    pub deadline_ns: Option<i64>,
    /// Time between releases, ns; `None` where jobs pause instead.
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
    /// What the cell does, where the cells of its trial have tasks of their own; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does: Option<String>,
    /// Whether each job of it is one execution of a program: its start and its exit are in every time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executions: bool,
    /// Median wall time of creation, from the request until the payload's first message, ns.
    pub create_median_ns: Option<i64>,
    /// Cpu time of the measuring thread per activation, ns, work included.
    pub cpu_time_per_activation_ns: Option<f64>,
    /// Cpu time of a program that neither ends nor tells its jobs, ns in each second that it runs; absent of all others.
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
    /// What histograms tell beside the metrics; `None` where samples were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<HistogramSummary>,
}

/// One metric of a cell against the baseline, from turns that lay beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InTurns {
    /// What is compared.
    pub metric: Metric,
    /// The trial that it took turns with and is compared with: the baseline, or what the same load disturbs in its place.
    pub against: String,
    /// Trials that repeat that one: each round's ratio is to the mean of all of them. Empty of such a trial itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled_with: Vec<String>,
    /// Laps that it rests on, over all rounds.
    pub laps: u64,
    /// The ratios over all jobs.
    pub comparison: stats::Comparison,
    /// Activations of each round from which the ratio of p99 would be told, where they were too few: as many jobs as that takes, at the
    /// share of activations that was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_for_p99: Option<u32>,
    /// The factor between the machine's slow state and its fast one, where the jobs of all cells show two.
    pub slow_over_fast: Option<f64>,
    /// The ratios within each of them.
    pub within: Option<stats::WithinStates>,
    /// Where the jobs show one state: from which share of jobs on a second one, in which they take half again as long, would have been found, as
    /// the same jobs tell with one planted in them; absent where there are two, of other metrics than the primary one, and where not even a
    /// fifth would have sufficed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_state_share: Option<f64>,
}

/// What was kept of a cell instead of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// Every median and quantile is at most this part of its value too large.
    pub relative_error: f64,
    /// Values below 0 of the primary metric, which stand in its histogram as 0.
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
    /// Activations missed.
    pub missed: u64,
    /// Jobs lost.
    pub lost: u64,
    /// Smallest value, ns; the figures are absent when nothing ran.
    pub min_ns: Option<i64>,
    /// Median, ns.
    pub median_ns: Option<i64>,
    /// 99th percentile, ns, whatever the number of jobs.
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
    /// Activations missed right before it.
    pub missed_before: u32,
    /// Its release, ns since the trial's release.
    pub since_release_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub release_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub start_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub end_ns: i64,
}

/// One task of a set that was run, beside what its analysis says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Its name.
    pub name: String,
    /// Name of its cell in the set.
    pub cell: String,
    /// Whether it competes with the set instead of being of it.
    pub competes: bool,
    /// Worst-case execution time that was asked for, ns.
    pub wcet_ns: i64,
    /// Time between releases, ns.
    pub period_ns: i64,
    /// Relative deadline, ns.
    pub deadline_ns: i64,
    /// The analysis' bound on its response time, ns; `None` where it has none within the deadline.
    pub bound_ns: Option<i64>,
    /// Jobs that ended after their deadline; those that were never begun are `missed` of the cell.
    pub late: u64,
    /// Response times in ns, ascending, each with the share of jobs that took at least so long: all rounds, thinned.
    pub response_ccdf: Vec<(i64, f64)>,
    /// Cpu time of one step of its work, ps, by the calibration of each round.
    pub step_ps: Vec<u64>,
    /// What held its cell; `None`: nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldSummary>,
}

/// What held the cell of a task, and what is certain of that. The task's bound is then the textbook's in this reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSummary {
    /// By what, and to what.
    pub by: HeldBy,
    /// On which cpu.
    pub cpu: u32,
    /// The bound on the task's response time by what the enforcer is certain to supply, ns; `None` where there is none within the
    /// deadline, or where others may keep the budget from coming within its period.
    pub certain_ns: Option<i64>,
    /// The latest look of whoever held it, over all rounds, ns; `None` where that is the kernel itself.
    pub latest_look_ns: Option<u64>,
    /// The most that the cell used beyond its budget, likewise.
    pub most_overrun_ns: Option<u64>,
}

/// One metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// Which metric.
    pub metric: Metric,
    /// Pooled over rounds.
    pub summary: stats::Summary,
    /// Median of each round, ns, in round order: shows drift.
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
    /// Time between releases, ns: what one job is in time, unless cells take turns.
    pub period_ns: i64,
    /// Mean time between the jobs that count of a cell that took turns, ns, in which others work for most of it; absent of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing_ns: Option<f64>,
    /// What its tail is like.
    pub tail: stats::Tail,
}

/// One load of one trial over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Trial's name.
    pub trial: String,
    /// Load's name in it.
    pub name: String,
    /// What it does.
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
    /// What it did.
    pub achieved: Vec<AchievedSummary>,
    /// Seconds in which a steady load did not get its work done, over all rounds.
    pub missed_seconds: Option<u64>,
}

/// One measure of what a load did.
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

/// The conditions of one cell of one trial, and what belongs to them.
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
    /// The primary metric over that of the same engine, cpu, load and period where the cpu was not kept free.
    pub against_shared: Option<stats::Comparison>,
    /// Counters beside the cell against its primary metric.
    pub counters: Vec<CounterSummary>,
}

/// Over what one value of a counter is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// A window of some milliseconds, read from outside of the cell.
    #[default]
    Window,
    /// An activation, read by the thread itself.
    Activation,
}

/// One counter against the primary metric, window by window or activation by activation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterSummary {
    /// What is counted, such as `cache misses of the cell`.
    pub name: String,
    /// Over what each value is taken.
    #[serde(default)]
    pub per: Per,
    /// Values over all rounds: windows in which the cell had a job, or activations but the first of each round.
    pub windows: u64,
    /// Counted in all of them.
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
