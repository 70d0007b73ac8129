//! The tails of every metric of every cell that left samples.

use super::Source;
use super::source::add;
use record::RecordError;
use record::summary::{CellSummary, Metric, TailSummary};
use stats::{Tail, TailRound};
use std::collections::BTreeMap;

/// Seed of all resampling: the same run gives the same report.
const SEED: u64 = 0x7a11_5eed;

/// Samples of one metric by round, and the activation number of each.
#[derive(Default)]
struct Jobs {
    values: super::source::Rounds,
    activations: BTreeMap<u32, Vec<u32>>,
}

/// One entry for each metric of each cell; cells of which histograms were kept have none, since the order of their
/// jobs is not on record.
pub(super) fn study(
    source: &Source,
    cells: &[CellSummary],
) -> Result<Vec<TailSummary>, RecordError> {
    let mut tails = Vec::new();
    let sampled = cells.iter().filter(|cell| cell.histograms.is_none());
    for cell in sampled {
        for metric in cell.metrics.iter().map(|metric| metric.metric) {
            tails.extend(tail(source, cell, metric)?);
        }
    }
    Ok(tails)
}

fn tail(
    source: &Source,
    cell: &CellSummary,
    metric: Metric,
) -> Result<Option<TailSummary>, RecordError> {
    let mut jobs = Jobs::default();
    for record in source.good(&cell.trial) {
        if let Some(samples) = source.samples(record, &cell.cell)? {
            add(&mut jobs.values, record.round, &samples, metric);
            let numbers = samples.samples.iter().map(|sample| sample.index);
            let round = jobs.activations.entry(record.round).or_default();
            round.extend(numbers);
        }
    }
    let rounds: Vec<TailRound> = jobs
        .values
        .iter()
        .filter_map(|(round, values_ns)| {
            Some(TailRound {
                activations: jobs.activations.get(round)?,
                values_ns,
            })
        })
        .collect();
    let plan = source.plan.trial(&cell.trial);
    let period = plan.map(|trial| source.plan.workload_of(trial).period);
    let period_ns = period.map_or(0, model::Duration::ns);
    Ok(Tail::of(&rounds, SEED).map(|tail| TailSummary {
        trial: cell.trial.clone(),
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        metric,
        period_ns,
        tail,
    }))
}
