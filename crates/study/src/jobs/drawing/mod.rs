//! The data of the pictures, collected and thinned in the pass over the samples of each cell.

mod conditions;
mod histograms;

pub(super) use conditions::OfPoint;
pub use conditions::{CpuHistogram, Moved, Scatter};
pub use histograms::Stretch;
pub(super) use histograms::gather as of_histograms;

use super::Source;
use super::pass::{CellSamples, Part};
use record::summary::{CellSummary, Metric, Per, RunSummary};
use stats::{BoxPlot, Sorted, ccdf, median_of, thin_series};

/// Outliers drawn of one box.
pub const OUTLIERS: usize = 60;
/// Points drawn of one distribution's tail curve.
pub const CCDF_POINTS: usize = 220;
/// Spans drawn of one round's time series.
pub const SPANS: usize = 120;
/// Tail samples drawn of one round's time series: the largest.
pub const TAIL: usize = 120;
/// With more cells than this, one cell is drawn of every trial.
const MOST_CELLS: usize = 24;

/// Drawn data of a run beyond its summary.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// The measured cells that figures draw, in the experiment's order.
    pub cells: Vec<CellData>,
    /// Cells left out of the figures; empty when none were.
    pub left_out: String,
    /// Jobs of each cpu under each condition.
    pub histograms: Vec<CpuHistogram>,
    /// The counters most closely correlated with the primary metric: one over windows, one over activations.
    pub scatters: Vec<Scatter>,
    /// Cost of reading the counters once for each activation, ns: smallest and largest of all cells.
    pub reading_cost_ns: Option<(u64, u64)>,
    /// Moves off the cpus of trials.
    pub moved: Vec<Moved>,
    /// Missing counters, each once.
    pub lacking: Vec<String>,
}

/// One cell, ready to be drawn.
#[derive(Debug, Clone)]
pub struct CellData {
    /// Its place in the summary's list.
    pub index: usize,
    /// Its name in tables.
    pub label: String,
    /// Whether it ran in a real-time class.
    pub real_time: bool,
    /// Number of its colour, dash and marker.
    pub look: usize,
    /// Of the primary metric, ns.
    pub box_plot: BoxPlot,
    /// See [`stats::ccdf`].
    pub ccdf: Vec<(i64, f64)>,
    /// Its good rounds.
    pub rounds: Vec<RoundData>,
    /// Beyond this, in ns, samples are the tail; `None` with too few samples.
    pub p99_ns: Option<i64>,
    /// The intervals of a run that kept histograms; empty where samples were kept.
    pub stretches: Vec<Stretch>,
}

/// One round of a cell; times in ns since its first release.
#[derive(Debug, Clone)]
pub struct RoundData {
    /// Its number, from 1.
    pub number: u32,
    /// Of the primary metric.
    pub median_ns: i64,
    /// From the first release to the last.
    pub length_ns: i64,
    /// Start, smallest and largest value of each span.
    pub spans: Vec<(i64, i64, i64)>,
    /// Samples beyond p99, the largest of them.
    pub tail: Vec<(i64, i64)>,
}

impl Drawing {
    /// Chooses drawn data of the cells and points that were read.
    pub(super) fn of(
        source: &Source,
        summary: &RunSummary,
        mut cells: Vec<CellData>,
        points: Vec<OfPoint>,
    ) -> Drawing {
        let (chosen, left_out) = choose(&summary.cells);
        let by_trial = chosen.len() > 8;
        cells.retain(|cell| chosen.contains(&cell.index));
        for (place, cell) in cells.iter_mut().enumerate() {
            let own = &summary.cells[cell.index].trial;
            let trials = || {
                source
                    .plan
                    .trials
                    .iter()
                    .take_while(|plan| plan.name != *own)
            };
            cell.look = if by_trial { trials().count() } else { place };
        }
        let mut lacking: Vec<String> = Vec::new();
        for what in (source.trials.iter()).flat_map(|t| t.counters.iter().flat_map(|c| &c.lacking))
        {
            if !lacking.contains(what) {
                lacking.push(what.clone());
            }
        }
        let moved = source.trials.iter().filter_map(|trial| {
            Some(Moved {
                isolated: trial.isolation.clone()?,
            })
        });
        Drawing {
            cells,
            left_out,
            scatters: [Per::Window, Per::Activation]
                .into_iter()
                .filter_map(|per| conditions::scatter(source, summary, &points, per))
                .collect(),
            histograms: conditions::histograms(summary, points),
            reading_cost_ns: conditions::reading_cost(source),
            moved: moved.collect(),
            lacking,
        }
    }
}

/// Places of the cells to draw. Of many, the one with the largest p99 (else maximum) of each trial.
pub(super) fn choose(cells: &[CellSummary]) -> (Vec<usize>, String) {
    let measured = (0..cells.len()).filter(|&i| !cells[i].metrics.is_empty());
    let measured: Vec<usize> = measured.collect();
    if measured.len() <= MOST_CELLS {
        return (measured, String::new());
    }
    let badness = |i: usize| {
        let summary = &cells[i].metrics[0].summary;
        let p99 = summary.quantile(0.99).and_then(|q| q.value_ns);
        p99.unwrap_or(summary.max_ns)
    };
    let mut worst: Vec<usize> = Vec::new();
    for &i in &measured {
        match worst
            .iter_mut()
            .find(|w| cells[**w].trial == cells[i].trial)
        {
            Some(w) if badness(i) > badness(*w) => *w = i,
            Some(_) => {}
            None => worst.push(i),
        }
    }
    let note = format!(
        "Of {} cells, the one with the largest p99 of each trial is drawn.",
        measured.len()
    );
    (worst, note)
}

impl CellData {
    /// One metric of a cell, of which `sorted` are all values; the caller sets its place and its look.
    pub(super) fn of(
        cell: &CellSummary,
        samples: &CellSamples,
        metric: Metric,
        sorted: Sorted,
        p99_ns: Option<i64>,
    ) -> Option<CellData> {
        let (box_plot, ccdf) = (BoxPlot::of(&sorted, OUTLIERS)?, ccdf(&sorted, CCDF_POINTS));
        drop(sorted);
        let parts = samples.good().filter(|part| !part.jobs.index.is_empty());
        Some(CellData {
            index: 0,
            label: cell.label.clone(),
            real_time: cell.real_time,
            look: 0,
            box_plot,
            ccdf,
            rounds: parts.map(|part| round(part, metric, p99_ns)).collect(),
            p99_ns,
            stretches: Vec::new(),
        })
    }
}

fn round(part: &Part, metric: Metric, p99_ns: Option<i64>) -> RoundData {
    let releases = &part.jobs.release_ns;
    let start = releases.iter().copied().min().unwrap_or(0);
    let points: Vec<(i64, i64)> = (releases.iter())
        .map(|release| release.saturating_sub(start))
        .zip(part.jobs.values(metric))
        .collect();
    let mut tail: Vec<(i64, i64)> = points
        .iter()
        .copied()
        .filter(|&(_, value)| p99_ns.is_some_and(|p99| value > p99))
        .collect();
    tail.sort_unstable_by_key(|&(_, value)| std::cmp::Reverse(value));
    tail.truncate(TAIL);
    let length_ns = points.iter().map(|point| point.0).max();
    let spans = thin_series(&points, SPANS).into_iter();
    drop(points);
    let values: Vec<i64> = part.jobs.values(metric).collect();
    RoundData {
        number: part.record.round,
        median_ns: median_of(&values).unwrap_or(0),
        length_ns: length_ns.unwrap_or(0),
        spans: spans
            .map(|span| (span.start_ns, span.min_ns, span.max_ns))
            .collect(),
        tail,
    }
}
