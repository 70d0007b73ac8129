//! Baselines of cells: a trial of their own run, or the same cells of another run.

use super::readings::Absent;
use super::threshold::{Figure, Limit, Statistic, Threshold};
use super::verdict::Why;
use crate::compare::{RunComparison, pairs_of};
use crate::jobs::{Source, compare_rounds};
use model::Keep;
use record::RecordError;
use record::run::Run;
use record::summary::{CellSummary, Metric, RunSummary};
use stats::{Comparison, Ratio};

/// Cells compared with a baseline.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ratios {
    /// The baseline, as a reader knows it.
    pub to: String,
    /// The trial that is the baseline itself; `None` where that is another run.
    pub itself: Option<String>,
    /// Cautions, as sentences.
    pub cautions: Vec<String>,
    /// One for each requested cell and metric.
    pub all: Vec<RatioOf>,
}

/// One metric of one cell against the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioOf {
    /// The cell.
    pub label: String,
    /// The metric.
    pub metric: Metric,
    /// The comparison, or why there is none.
    pub comparison: Result<Comparison, String>,
}

impl Ratios {
    /// Whether this cell belongs to the baseline.
    pub(super) fn is_baseline(&self, cell: &CellSummary) -> bool {
        self.itself.as_ref() == Some(&cell.trial)
    }

    /// The ratio of this statistic, and the rounds it rests on; `None` for the baseline itself.
    pub(super) fn of(
        &self,
        cell: &CellSummary,
        metric: Metric,
        statistic: Statistic,
    ) -> Option<Result<(Ratio, u32), Absent>> {
        if self.is_baseline(cell) {
            return None;
        }
        let found = self
            .all
            .iter()
            .find(|r| r.label == cell.label && r.metric == metric);
        let Some(found) = found else {
            let what = format!("{} has no cell of this name", self.to);
            return Some(Err((Why::NoBaseline, what)));
        };
        let comparison = match &found.comparison {
            Ok(comparison) => comparison,
            Err(why) => return Some(Err((Why::NoBaseline, why.clone()))),
        };
        let (ratio, rounds) = match statistic {
            Statistic::P99 => (comparison.ratio_of_p99.clone(), comparison.rounds_of_p99),
            _ => (Some(comparison.ratio_of_medians.clone()), comparison.rounds),
        };
        Some(match ratio {
            Some(ratio) => Ok((ratio, rounds)),
            None => {
                let needed = stats::needed_count(0.99, stats::DEFAULT_CONFIDENCE).unwrap_or(0);
                let what = format!(
                    "needs {needed} jobs of both in every round (in 3 rounds or more if trials took turns)"
                );
                Err((Why::TooFew, what))
            }
        })
    }
}

/// Metrics whose ratios these thresholds need.
fn wanted(thresholds: &[Threshold]) -> Vec<Metric> {
    let of = |threshold: &Threshold| match (threshold.figure, threshold.limit) {
        (Figure::Job(metric, _), Limit::Ratio(_)) => Some(metric),
        _ => None,
    };
    let all: Vec<Metric> = thresholds.iter().filter_map(of).collect();
    Metric::ALL
        .into_iter()
        .filter(|metric| all.contains(metric))
        .collect()
}

/// Compares the cells of a run with its own baseline trial, as far as the thresholds need it.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn within(
    run: &Run,
    summary: &RunSummary,
    thresholds: &[Threshold],
) -> Result<Ratios, RecordError> {
    let mut ratios = Ratios {
        to: format!("trial {}", summary.baseline),
        itself: Some(summary.baseline.clone()),
        ..Ratios::default()
    };
    let metrics = wanted(thresholds);
    if metrics.is_empty() {
        return Ok(ratios);
    }
    let source = Source::open(run)?;
    for metric in metrics {
        let others = summary
            .cells
            .iter()
            .filter(|cell| cell.trial != summary.baseline && !cell.metrics.is_empty());
        // Read only if a cell took no turns with the baseline.
        let mut baseline = None;
        for cell in others {
            let by_turns = (cell.in_turns.iter())
                .find(|turns| turns.metric == metric && turns.against == summary.baseline)
                .map(|turns| turns.comparison.clone());
            let comparison = if by_turns.is_some() {
                Ok(by_turns)
            } else if metric == summary.primary {
                Ok(cell.against_baseline.clone())
            } else if source.plan.keep == Keep::Samples {
                let baseline = match &baseline {
                    Some(read) => read,
                    None => baseline.insert(source.pooled(&summary.baseline, metric)?),
                };
                let rounds = source.rounds(&cell.trial, &cell.cell, metric)?;
                compare_rounds(baseline, &rounds).map_err(|error| error.to_string())
            } else {
                Err(format!(
                    "in a run that kept histograms, only the {} is compared with its own baseline",
                    summary.primary.title()
                ))
            };
            ratios.all.push(RatioOf {
                label: cell.label.clone(),
                metric,
                comparison: comparison.and_then(|comparison| {
                    comparison.ok_or_else(|| {
                        format!("it has no good round in common with {}", summary.baseline)
                    })
                }),
            });
        }
    }
    Ok(ratios)
}

/// Compares the cells of the second run with those of the first, as far as the thresholds need it.
///
/// # Errors
/// When a file of either record cannot be read.
pub fn between(
    runs: [&Run; 2],
    compared: &RunComparison,
    thresholds: &[Threshold],
) -> Result<Ratios, RecordError> {
    let mut ratios = Ratios {
        to: format!("run {}", compared.first.run),
        itself: None,
        cautions: compared.cautions.clone(),
        all: Vec::new(),
    };
    for metric in wanted(thresholds) {
        let pairs = match metric == compared.metric {
            true => compared.pairs.clone(),
            false => pairs_of(runs, [&compared.first, &compared.second], metric)?,
        };
        ratios.all.extend(pairs.into_iter().map(|pair| {
            RatioOf {
                label: pair.label,
                metric,
                comparison: pair
                    .comparison
                    .ok_or_else(|| pair.problem.unwrap_or_else(|| "no rounds".to_owned())),
            }
        }));
    }
    Ok(ratios)
}
