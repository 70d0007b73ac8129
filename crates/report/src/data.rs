//! What the figures are drawn from: one pass over the samples of each cell, thinned.

use crate::data_of_conditions;
use crate::data_of_histograms::{self, Stretch};
use crate::study::Source;
use host::provenance::Provenance;
use model::Keep;
use record::RecordError;
use record::run::{Manifest, Run};
use record::samples::Samples;
use record::summary::{CellSummary, RunSummary};
use stats::{BoxPlot, Sorted, ccdf, median_of, thin_series};

/// Outliers drawn of one box.
pub(crate) const OUTLIERS: usize = 60;
/// Points drawn of one distribution's tail curve.
pub(crate) const CCDF_POINTS: usize = 220;
/// Spans drawn of one round's time series.
pub(crate) const SPANS: usize = 120;
/// Tail samples drawn of one round's time series: the largest.
pub(crate) const TAIL: usize = 120;
/// With more cells than this, one cell is drawn of every trial.
const MOST_CELLS: usize = 24;

/// A run, ready to be drawn.
pub(crate) struct Data<'a> {
    pub summary: &'a RunSummary,
    pub plan: model::Experiment,
    pub manifest: Manifest,
    pub provenance: Provenance,
    /// The measured cells that figures draw, in the experiment's order.
    pub cells: Vec<CellData>,
    /// What was left out of the figures; empty when nothing was.
    pub left_out: String,
    /// Jobs of each cpu under each condition.
    pub histograms: Vec<CpuHistogram>,
    /// The counters that go with the primary metric most closely: one over windows, one over activations.
    pub scatters: Vec<Scatter>,
    /// Cost of reading the counters once for each activation, ns: smallest and largest of all cells.
    pub reading_cost_ns: Option<(u64, u64)>,
    /// What trials moved off their cpus.
    pub moved: Vec<Moved>,
    /// What could not be counted, each once.
    pub lacking: Vec<String>,
}

pub(crate) use crate::data_of_conditions::{CpuHistogram, Moved, Scatter};

/// One cell, ready to be drawn.
pub(crate) struct CellData {
    /// Its place in the summary's list.
    pub index: usize,
    pub label: String,
    pub real_time: bool,
    /// Number of its colour, dash and marker.
    pub look: usize,
    pub box_plot: BoxPlot,
    /// See [`stats::ccdf`].
    pub ccdf: Vec<(i64, f64)>,
    pub rounds: Vec<RoundData>,
    /// Beyond this, in ns, samples are the tail; `None` with too few samples.
    pub p99_ns: Option<i64>,
    /// The intervals of a run that kept histograms; empty where samples were kept.
    pub stretches: Vec<Stretch>,
}

/// One round of a cell; times in ns since its first release.
pub(crate) struct RoundData {
    /// Its number, from 1.
    pub number: u32,
    pub median_ns: i64,
    pub length_ns: i64,
    /// Start, smallest and largest value of each span.
    pub spans: Vec<(i64, i64, i64)>,
    /// Samples beyond p99, the largest of them.
    pub tail: Vec<(i64, i64)>,
}

impl<'a> Data<'a> {
    /// Reads what the figures need; one cell's samples are in memory at a time.
    pub fn gather(run: &Run, summary: &'a RunSummary) -> Result<Data<'a>, RecordError> {
        let source = Source::open(run)?;
        let (drawn, left_out) = choose(&summary.cells);
        let by_trial = drawn.len() > 8;
        let mut cells = Vec::new();
        for (place, index) in drawn.into_iter().enumerate() {
            let trial = |cell: &CellSummary| {
                let names = source.plan.trials.iter();
                names.take_while(|plan| plan.name != cell.trial).count()
            };
            let cell = &summary.cells[index];
            let look = if by_trial { trial(cell) } else { place };
            cells.extend(match source.plan.keep {
                Keep::Samples => gather_cell(&source, summary, index, look)?,
                Keep::Histograms { .. } => {
                    data_of_histograms::gather(&source, summary, index, look)?
                }
            });
        }
        let conditions = data_of_conditions::gather(&source, summary)?;
        Ok(Data {
            histograms: conditions.histograms,
            scatters: conditions.scatters,
            reading_cost_ns: conditions.reading_cost_ns,
            moved: conditions.moved,
            lacking: conditions.lacking,
            summary,
            manifest: run.manifest()?,
            provenance: run.provenance()?,
            plan: source.plan,
            cells,
            left_out,
        })
    }

    /// The summary of a drawn cell.
    pub fn summary_of(&self, cell: &CellData) -> &CellSummary {
        &self.summary.cells[cell.index]
    }
}

/// Places of the cells to draw. Of many, the one with the largest p99 (else maximum) of each trial.
fn choose(cells: &[CellSummary]) -> (Vec<usize>, String) {
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

fn gather_cell(
    source: &Source,
    summary: &RunSummary,
    index: usize,
    look: usize,
) -> Result<Option<CellData>, RecordError> {
    let cell = &summary.cells[index];
    let p99_ns = cell
        .metrics
        .first()
        .and_then(|m| m.summary.quantile(0.99)?.value_ns);
    let mut pooled = Vec::new();
    let mut rounds = Vec::new();
    for record in source.good(&cell.trial) {
        let Some(samples) = source.samples(record, &cell.cell)? else {
            continue;
        };
        if !samples.samples.is_empty() {
            pooled.extend(samples.samples.iter().map(|s| summary.primary.of(s)));
            rounds.push(round(record.round, &samples, summary, p99_ns));
        }
    }
    let sorted = Sorted::new(pooled);
    Ok(BoxPlot::of(&sorted, OUTLIERS).map(|box_plot| CellData {
        index,
        label: cell.label.clone(),
        real_time: cell.real_time,
        look,
        box_plot,
        ccdf: ccdf(&sorted, CCDF_POINTS),
        rounds,
        p99_ns,
        stretches: Vec::new(),
    }))
}

fn round(number: u32, samples: &Samples, summary: &RunSummary, p99_ns: Option<i64>) -> RoundData {
    let start = samples.samples.iter().map(|s| s.release_ns).min();
    let start = start.unwrap_or(0);
    let points: Vec<(i64, i64)> = samples
        .samples
        .iter()
        .map(|s| (s.release_ns.saturating_sub(start), summary.primary.of(s)))
        .collect();
    let mut tail: Vec<(i64, i64)> = points
        .iter()
        .copied()
        .filter(|&(_, value)| p99_ns.is_some_and(|p99| value > p99))
        .collect();
    tail.sort_unstable_by_key(|&(_, value)| std::cmp::Reverse(value));
    tail.truncate(TAIL);
    let values: Vec<i64> = points.iter().map(|&(_, value)| value).collect();
    RoundData {
        number,
        median_ns: median_of(&values).unwrap_or(0),
        length_ns: points.iter().map(|point| point.0).max().unwrap_or(0),
        spans: thin_series(&points, SPANS)
            .into_iter()
            .map(|span| (span.start_ns, span.min_ns, span.max_ns))
            .collect(),
        tail,
    }
}
