//! `summary.json` of a scale study: how growing numbers of cells fared. Computed from the record, computable again.

use model::{EngineKind, Requirement};
use serde::{Deserialize, Serialize};
use stats::{BoxPlot, Fairness, Growth, Spread};

use crate::document::Document;
use crate::ground::NotMeasured;
use crate::ground::crowd::CrowdRecord;

/// Schema of `summary.json` of a scale study.
pub const SCALE_SUMMARY_SCHEMA: u64 = 1;

/// The summary of a scale study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScaleSummary {
    /// [`SCALE_SUMMARY_SCHEMA`].
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Whether every measured cell ran in a real-time class.
    pub real_time: bool,
    /// The result of each engine over its numbers of cells.
    pub engines: Vec<ScaleEngine>,
    /// One entry for each number of cells of each engine that has a record, in the experiment's order.
    pub points: Vec<ScalePoint>,
    /// Numbers of cells that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Requirements that the machine did not meet.
    pub unmet: Vec<Requirement>,
    /// Failures, as sentences.
    pub failures: Vec<String>,
    /// Remarks on the run that explain results ([`crate::run::Manifest::remarks`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Document for ScaleSummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = SCALE_SUMMARY_SCHEMA;
}

impl ScaleSummary {
    /// The points of an engine, ascending.
    pub fn of(&self, engine: EngineKind) -> impl Iterator<Item = &ScalePoint> {
        self.points.iter().filter(move |p| p.engine == engine)
    }
}

/// One engine over all numbers of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScaleEngine {
    /// The engine.
    pub engine: EngineKind,
    /// The largest number of cells at which no more failed than the study allows.
    pub largest: Option<u32>,
    /// The number of cells from which its cpus are saturated: N* of [`stats::Closed::saturation`] over all cpus.
    pub saturation: Option<f64>,
    /// How figures grow with the number of cells.
    pub growth: Vec<GrowthOf>,
}

/// How one figure grows with the number of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowthOf {
    /// Such as `mean response time`.
    pub what: String,
    /// The smallest and the largest number of cells that were used.
    pub cells: (u32, u32),
    /// One line or two; y in ns.
    pub growth: Growth,
}

/// One number of cells of one engine; rounds pooled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalePoint {
    /// The trial's name.
    pub trial: String,
    /// The engine that made the cells.
    pub engine: EngineKind,
    /// Planned number of cells.
    pub count: u32,
    /// Rounds that are in the numbers.
    pub rounds: u32,
    /// Class that the kernel reported, such as `FIFO 80`.
    pub class: String,
    /// Whether that is a real-time class.
    pub real_time: bool,
    /// Whether every cell was pinned to a cpu; SCHED_DEADLINE threads are not.
    #[serde(default = "yes")]
    pub pinned: bool,
    /// Cells on each cpu, by cpu; for cells that are not pinned, the cpu on which they began.
    pub cpus: Vec<CellsOfCpu>,
    /// Activations planned, of all cells that were armed.
    pub planned: u64,
    /// Jobs executed.
    pub executed: u64,
    /// Activations skipped and counted.
    #[serde(alias = "missed")]
    pub skipped: u64,
    /// Activations that neither ran nor were counted, of cells that did not end normally.
    pub lost_with_cells: u64,
    /// Activations that neither ran nor were counted, of cells that ended normally: unexplained losses.
    pub unexplained: u64,
    /// Activations that were not reached because the trial was cut off, and that no other trial made up for.
    #[serde(default)]
    pub not_reached: u64,
    /// Causes of cuts that no trial made up for, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<String>,
    /// How the cells ran out of band, and how often they were in band; `None` for threads of Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_band: Option<String>,
    /// Cells that failed.
    pub failed_cells: u32,
    /// Cells in the numbers, in the order of the record, round after round.
    pub cells: CellColumns,
    /// How the execution times of the cells compare; `None` without a cell.
    pub execution: Option<Between>,
    /// The same for response times, which include the wait for a cpu.
    pub response: Option<Between>,
    /// Compared with the prediction for sharing the cpus; `None` if there is none.
    pub sharing: Option<Sharing>,
    /// Latest minus earliest start of each round, ns.
    pub skew_ns: Vec<u64>,
    /// The same for the first cell of each cpu.
    pub first_of_cpu_skew_ns: Vec<u64>,
    /// Creation, memory and waiting of each round.
    pub crowds: Vec<CrowdRecord>,
    /// Why the trial is not in the numbers.
    pub failure: Option<String>,
}

fn yes() -> bool {
    true
}

/// Cells that share a cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellsOfCpu {
    /// The cpu.
    pub cpu: u32,
    /// Cells that were armed on it.
    pub cells: u32,
}

/// One value for each cell, list by list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellColumns {
    /// Place in the trial, from 1.
    pub number: Vec<u32>,
    /// Cpu to which the cell is pinned or, if it is not, on which it began.
    pub cpu: Vec<u32>,
    /// Jobs executed.
    pub jobs: Vec<u64>,
    /// First start after the barrier's instant, ns.
    pub start_ns: Vec<Option<i64>>,
    /// Execution times.
    pub execution: StatColumns,
    /// Response times.
    pub response: StatColumns,
}

/// Statistics of each cell, ns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatColumns {
    /// Means, rounded.
    pub mean_ns: Vec<i64>,
    /// Standard deviations, rounded; `None` for fewer than two jobs.
    pub sd_ns: Vec<Option<i64>>,
    /// 95th percentiles; `None` if there are too few jobs to bound them.
    pub p95_ns: Vec<Option<i64>>,
    /// 99th percentiles; likewise.
    pub p99_ns: Vec<Option<i64>>,
}

/// Distributions between cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// Distribution of the cells' means.
    pub mean: BoxPlot,
    /// Distribution of their standard deviations.
    pub sd: Option<BoxPlot>,
    /// Distribution of their 95th percentiles.
    pub p95: Option<BoxPlot>,
    /// Distribution of their 99th percentiles.
    pub p99: Option<BoxPlot>,
    /// Coefficient of variation and Gini index of the means.
    pub spread: Spread,
    /// Whether cells that share a cpu were treated alike.
    pub fairness: Option<Fairness>,
}

/// Response times compared with the prediction for sharing the cpus.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sharing {
    /// Cpu time of a job, ns.
    pub demand_ns: f64,
    /// The same in the engine's smallest trial, on which the prediction is based, ns.
    pub demand_alone_ns: f64,
    /// The time in which all cells ran, ns.
    pub window_ns: i64,
    /// Share of all jobs within it.
    pub jobs_in_window: f64,
    /// Mean response time of those jobs, ns.
    pub response_ns: f64,
    /// No order of service gives a shorter mean, ns.
    pub floor_ns: f64,
    /// The mean under processor sharing, ns.
    pub sharing_ns: f64,
    /// No order of service that leaves no cpu idle gives a longer mean, ns.
    pub ceiling_ns: f64,
    /// Share of the cpus that the jobs of the window used.
    pub utilization: f64,
    /// The predicted share.
    pub predicted_utilization: f64,
}
