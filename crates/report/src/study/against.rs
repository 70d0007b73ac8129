//! Comparing a cell with the baseline, round by round.

use super::source::{Rounds, Source};
use record::RecordError;
use record::summary::Metric;
use stats::{CompareError, CompareOptions, Comparison};

/// One metric of a whole trial: the samples of all its cells, one after the other within each round. What a
/// comparison with that trial is made against.
pub(crate) fn pooled_rounds(
    source: &Source,
    trial: &str,
    metric: Metric,
) -> Result<Rounds, RecordError> {
    rounds_of(source, trial, &source.cell_ids(trial), metric)
}

/// The same of some of its cells.
pub(super) fn rounds_of(
    source: &Source,
    trial: &str,
    ids: &[String],
    metric: Metric,
) -> Result<Rounds, RecordError> {
    let mut pooled = Rounds::new();
    for id in ids {
        for (round, mut values) in source.rounds(trial, id, metric)? {
            pooled.entry(round).or_default().append(&mut values);
        }
    }
    Ok(pooled)
}

/// Compares the rounds that both sides have, paired by their number. `Ok(None)` when they share none.
pub(crate) fn compare_rounds(
    baseline: &Rounds,
    other: &Rounds,
) -> Result<Option<Comparison>, CompareError> {
    let (left, right): (Vec<Vec<i64>>, Vec<Vec<i64>>) = baseline
        .iter()
        .filter_map(|(round, values)| Some((values.clone(), other.get(round)?.clone())))
        .unzip();
    if left.is_empty() {
        return Ok(None);
    }
    stats::compare(&left, &right, &CompareOptions::default()).map(Some)
}
