//! Two runs side by side: `timecell report A B`.
//!
//! Cells are matched by their label. The runs were made at different times, so drift between them is not cancelled as
//! it is within a run; every output says so.

mod differences;
mod readings;

pub use differences::{Difference, unlike};
pub(crate) use readings::compare_readings;
pub use readings::{Change, ReadingPair, ReadingsComparison, unlike_runs};

use crate::jobs::{Source, metrics, round_quantiles, study};
use crate::studied::studied;
use model::Keep;
use record::RecordError;
use record::histogram::RELATIVE_ERROR;
use record::run::Run;
use record::summary::{CellSummary, Metric, RunSummary};
use stats::{CompareOptions, Comparison, Quantile, RoundQuantiles, Sorted};

/// First caution of every comparison of runs.
const NOT_INTERLEAVED: &str = "The runs were made at different times and are not interleaved: a difference may come from the machine, not \
    the cell.";

/// Two runs of one kind side by side.
#[derive(Debug, Clone, PartialEq)]
pub enum Compared {
    /// Runs of periodic jobs: ratios over rounds.
    Jobs(Box<RunComparison>),
    /// Runs of every other kind: figures side by side.
    Readings(ReadingsComparison),
}

impl Compared {
    /// Compares two runs of one kind.
    ///
    /// # Errors
    /// When a file of either record cannot be read.
    pub fn of(first: &Run, second: &Run) -> Result<Compared, RecordError> {
        studied(second)?.compared(second, first)
    }
}

/// What is said of every comparison of these two.
pub(crate) fn cautions(first: &Run, second: &Run) -> Result<Vec<String>, RecordError> {
    let mut cautions = vec![NOT_INTERLEAVED.to_owned()];
    for run in [first, second] {
        let caution = run.caution()?;
        cautions.extend(caution.map(|caution| format!("{}: {caution}.", run.name())));
    }
    Ok(cautions)
}

/// Two studied runs side by side. Ratios are of the second to the first.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// The first run, compared against.
    pub first: RunSummary,
    /// The second run.
    pub second: RunSummary,
    /// The metric compared: the primary one of the first run.
    pub metric: Metric,
    /// Cells in both runs, in the first run's order.
    pub pairs: Vec<Pair>,
    /// Labels of cells that only the first has.
    pub only_first: Vec<String>,
    /// Labels of cells that only the second has.
    pub only_second: Vec<String>,
    /// Differences between the machines: name, first, second.
    pub machine: Vec<Difference>,
    /// Differences between the experiments.
    pub experiment: Vec<Difference>,
    /// Cautions for a reader, as sentences with a full stop.
    pub cautions: Vec<String>,
}

/// One cell in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its label in both.
    pub label: String,
    /// Whether it ran in a real-time class in both.
    pub real_time: bool,
    /// Median in the first and second run, ns, rounds pooled.
    pub medians_ns: [i64; 2],
    /// Second over first; `None` where no ratio exists.
    pub comparison: Option<Comparison>,
    /// Why there is none.
    pub problem: Option<String>,
}

/// Compares two runs; reads the samples of one cell of each at a time.
///
/// # Errors
/// When a file of either record cannot be read.
pub fn compare(first: &Run, second: &Run) -> Result<RunComparison, RecordError> {
    compare_with(first, second, &study(second)?.summary)
}

/// The same if the second has been studied already.
pub(crate) fn compare_with(
    first: &Run,
    second: &Run,
    studied: &RunSummary,
) -> Result<RunComparison, RecordError> {
    let summaries = [study(first)?.summary, studied.clone()];
    let sources = [Source::open(first)?, Source::open(second)?];
    let metric = metrics(sources[0].plan.workload.work)[0];
    let mut cautions = cautions(first, second)?;
    let (pairs, uneven) = pairs(&sources, [&summaries[0], &summaries[1]], metric)?;
    if uneven {
        cautions.push(
            "The runs have different numbers of rounds; each cell is compared over as many rounds as both have."
                .to_owned(),
        );
    }
    if summaries[0].primary != summaries[1].primary {
        cautions.push(format!(
            "The runs have different primary metrics, {} and {}; the {} is compared.",
            summaries[0].primary.title(),
            summaries[1].primary.title(),
            metric.title()
        ));
    }
    let experiment = differences::experiment(&sources[0].plan, &sources[1].plan);
    if !experiment.is_empty() {
        cautions.push("The experiments differ, which may explain the ratios.".to_owned());
    }
    if summaries.iter().any(|summary| !summary.real_time) {
        cautions.push("not real-time: cells with this label ran in no real-time class.".to_owned());
    }
    let only = |here: &RunSummary, there: &RunSummary| {
        let absent = measured(here).filter(|cell| measured(there).all(|c| c.label != cell.label));
        absent.map(|cell| cell.label.clone()).collect()
    };
    let [a, b] = summaries;
    Ok(RunComparison {
        metric,
        pairs,
        only_first: only(&a, &b),
        only_second: only(&b, &a),
        machine: differences::machine(&first.provenance()?, &second.provenance()?),
        experiment,
        cautions,
        first: a,
        second: b,
    })
}

/// The cells in both runs, compared by a metric other than the primary one.
pub(crate) fn pairs_of(
    runs: [&Run; 2],
    summaries: [&RunSummary; 2],
    metric: Metric,
) -> Result<Vec<Pair>, RecordError> {
    let sources = [Source::open(runs[0])?, Source::open(runs[1])?];
    Ok(pairs(&sources, summaries, metric)?.0)
}

/// The cells in both runs, and whether rounds were left out of any.
fn pairs(
    sources: &[Source; 2],
    summaries: [&RunSummary; 2],
    metric: Metric,
) -> Result<(Vec<Pair>, bool), RecordError> {
    let mut pairs = Vec::new();
    let mut uneven = false;
    for one in measured(summaries[0]) {
        if let Some(other) = measured(summaries[1]).find(|cell| cell.label == one.label) {
            let (pair, cut) = pair(sources, [one, other], metric)?;
            uneven |= cut;
            pairs.extend(pair);
        }
    }
    Ok((pairs, uneven))
}

fn measured(summary: &RunSummary) -> impl Iterator<Item = &CellSummary> {
    summary.cells.iter().filter(|cell| !cell.metrics.is_empty())
}

/// The pair, and whether rounds were left out; no pair if one side never measured the metric.
fn pair(
    sources: &[Source; 2],
    cells: [&CellSummary; 2],
    metric: Metric,
) -> Result<(Option<Pair>, bool), RecordError> {
    let medians = cells.map(|cell| {
        let of = cell.metrics.iter().find(|m| m.metric == metric);
        of.map(|m| m.summary.median_ns)
    });
    let [Some(a), Some(b)] = medians else {
        return Ok((None, false));
    };
    let (compared, cut) = if sources.iter().all(|s| s.plan.keep == Keep::Samples) {
        let rounds = |place: usize| -> Result<Vec<Vec<i64>>, RecordError> {
            let cell = cells[place];
            let rounds = sources[place].rounds(&cell.trial, &cell.cell, metric)?;
            Ok(rounds.into_values().collect())
        };
        let (left, right, cut) = even(rounds(0)?, rounds(1)?);
        let compared = stats::compare(&left, &right, &CompareOptions::default());
        (compared, cut)
    } else {
        let rounds = |place: usize| quantiles(&sources[place], cells[place], metric);
        let (left, right, cut) = even(rounds(0)?, rounds(1)?);
        (stats::compare_quantiles(&left, &right, RELATIVE_ERROR), cut)
    };
    let (comparison, problem) = match compared {
        Ok(comparison) => (Some(comparison), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let pair = Pair {
        label: cells[0].label.clone(),
        real_time: cells.iter().all(|cell| cell.real_time),
        medians_ns: [a, b],
        comparison,
        problem,
    };
    Ok((Some(pair), cut))
}

/// As many rounds of each as both have, and whether any were left out.
fn even<T>(mut left: Vec<T>, mut right: Vec<T>) -> (Vec<T>, Vec<T>, bool) {
    let both = left.len().min(right.len());
    let cut = left.len() != right.len();
    left.truncate(both);
    right.truncate(both);
    (left, right, cut)
}

/// The quantiles of each round, from the run's record. Jobs in histograms cannot be resampled, so a comparison with them rests on the
/// differences between the rounds' quantiles.
fn quantiles(
    source: &Source,
    cell: &CellSummary,
    metric: Metric,
) -> Result<Vec<RoundQuantiles>, RecordError> {
    if let Keep::Histograms { .. } = source.plan.keep {
        let rounds = round_quantiles(source, &cell.trial, &cell.cell, metric)?;
        return Ok(rounds.into_values().collect());
    }
    let rounds = source.rounds(&cell.trial, &cell.cell, metric)?;
    let of = |values: Vec<i64>| {
        let sorted = Sorted::new(values);
        let p99 = Quantile::of(&sorted, 0.99, stats::DEFAULT_CONFIDENCE)?;
        Some(RoundQuantiles {
            median_ns: sorted.nearest_rank(0.5)?,
            p99_ns: p99.value_ns,
        })
    };
    Ok(rounds.into_values().filter_map(of).collect())
}
