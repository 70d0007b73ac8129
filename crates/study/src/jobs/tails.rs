//! The tails of every metric of every cell that left samples, and of the primary metric of those of which histograms
//! and the worst jobs were kept.

use super::Source;
use super::histograms::logs;
use super::pass::CellSamples;
use super::source::is_good;
use record::RecordError;
use record::histogram::HistogramLog;
use record::summary::{CellSummary, Metric, TailSummary};
use record::trial::TurnsRecord;
use stats::{KeptInterval, KeptRound, Tail, TailRound};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Seed of all resampling: the same run gives the same report.
const SEED: u64 = 0x7a11_5eed;

/// Numbers and releases.
type Numbered<'c> = (Cow<'c, [u32]>, Cow<'c, [i64]>);

/// The jobs of a cell for fitting tails, by round: the number of each, and its release, ns.
#[derive(Default)]
pub(super) struct Jobs<'c> {
    rounds: BTreeMap<u32, Numbered<'c>>,
    in_turns: bool,
}

impl<'c> Jobs<'c> {
    /// The jobs of all good trials, except those that let a turn settle.
    pub fn of(samples: &'c CellSamples, period_ns: i64) -> Jobs<'c> {
        let mut all = Jobs::default();
        for part in samples.good().filter(|part| !part.jobs.index.is_empty()) {
            let (record, jobs) = (part.record, &part.jobs);
            all.in_turns |= record.turns.is_some();
            let own: Numbered = match record.turns {
                None => (Cow::Borrowed(&jobs.index), Cow::Borrowed(&jobs.release_ns)),
                Some(_) => {
                    let all = jobs.index.iter().zip(&jobs.release_ns);
                    let kept =
                        all.filter_map(|(&index, &ns)| Some((number(record.turns, index)?, ns)));
                    let (numbers, releases): (Vec<u32>, Vec<i64>) = kept.unzip();
                    (Cow::Owned(numbers), Cow::Owned(releases))
                }
            };
            match all.rounds.entry(record.round) {
                Entry::Vacant(empty) => _ = empty.insert(own),
                Entry::Occupied(mut before) => {
                    // A trial's jobs before it was resumed come right before those afterwards.
                    let (numbers, releases) = before.get_mut();
                    let later_ns = match (releases.last(), own.1.first()) {
                        (Some(last), Some(first)) => last + period_ns - first,
                        _ => 0,
                    };
                    numbers.to_mut().extend(own.0.iter());
                    releases
                        .to_mut()
                        .extend(own.1.iter().map(|ns| ns + later_ns));
                }
            }
        }
        all
    }
}

/// The tail of one metric of a cell that left samples; `values` are the metric by rounds, all that `jobs` were made of.
pub(super) fn of_samples(
    source: &Source,
    cell: &CellSummary,
    metric: Metric,
    samples: &CellSamples,
    jobs: &Jobs,
    values: &super::source::Rounds,
) -> Option<TailSummary> {
    // Those that let a turn settle are left out here, too.
    let settled = jobs.in_turns.then(|| {
        let mut settled = super::source::Rounds::new();
        for part in samples.good() {
            let numbers = part.jobs.index.iter();
            let kept = numbers.zip(part.jobs.values(metric));
            let kept = kept.filter(|&(&index, _)| number(part.record.turns, index).is_some());
            let round = settled.entry(part.record.round).or_default();
            round.extend(kept.map(|(_, value)| value));
        }
        settled
    });
    let values = settled.as_ref().unwrap_or(values);
    let rounds: Vec<TailRound> = (jobs.rounds.iter())
        .filter_map(|(round, (activations, releases_ns))| {
            Some(TailRound {
                activations,
                values_ns: values.get(round)?,
                releases_ns,
            })
        })
        .collect();
    let tail = Tail::of(&rounds, SEED)?;
    let spacing_ns = jobs.in_turns.then(|| spacing_ns(&rounds)).flatten();
    Some(TailSummary {
        spacing_ns,
        ..summary(source, cell, metric, tail)
    })
}

/// The tails of cells that kept histograms: one each, for the primary metric, by which their worst jobs were chosen.
pub(super) fn of_histograms(
    source: &Source,
    cells: &[CellSummary],
) -> Result<Vec<TailSummary>, RecordError> {
    let kept = cells.iter().map(|cell| kept(source, cell));
    kept.filter_map(Result::transpose).collect()
}

/// The mean time from the release of one job to that of the next, ns; `None` without two in a round.
fn spacing_ns(rounds: &[TailRound]) -> Option<f64> {
    let (mut spans_ns, mut steps) = (0.0, 0);
    for releases in rounds.iter().map(|round| round.releases_ns) {
        let (Some(first), Some(last)) = (releases.first(), releases.last()) else {
            continue;
        };
        spans_ns += (last - first) as f64;
        steps += releases.len() - 1;
    }
    (steps > 0).then(|| spans_ns / steps as f64)
}

/// The number of an activation. Where trials took turns, those that let a turn settle are left out and not numbered: a pattern that
/// repeats with the turns comes from the turns.
fn number(turns: Option<TurnsRecord>, index: u32) -> Option<u32> {
    let Some(turns) = turns else {
        return Some(index);
    };
    let kept = turns
        .jobs
        .checked_sub(turns.settle)
        .filter(|&kept| kept > 0)?;
    let within = (index % turns.jobs).checked_sub(turns.settle)?;
    Some(index / turns.jobs * kept + within)
}

/// From the worst jobs of each log and its intervals.
fn kept(source: &Source, cell: &CellSummary) -> Result<Option<TailSummary>, RecordError> {
    let Some(metric) = cell.metrics.first() else {
        return Ok(None);
    };
    let median_ns = metric.summary.median_ns;
    let metric = metric.metric;
    let mut rounds = Vec::new();
    for (record, log) in logs(source, &cell.trial, &cell.cell)? {
        if is_good(record) {
            rounds.push(round(&log, metric, period_ns(source, cell)));
        }
    }
    let found = Tail::of_kept(&rounds, median_ns, cell.lost, SEED);
    Ok(found.map(|tail| summary(source, cell, metric, tail)))
}

fn round(log: &HistogramLog, metric: Metric, period_ns: i64) -> KeptRound {
    let mut largest: Vec<(u32, i64)> = (log.worst.iter())
        .map(|(value_ns, job)| (job.index, *value_ns))
        .collect();
    largest.sort_unstable();
    let all = log.counts.executed <= largest.len() as u64;
    let left_out_ns = largest.iter().map(|(_, value_ns)| *value_ns).min();
    let intervals = log.intervals.iter().filter_map(|interval| {
        let (_, [_, median_ns, _, max_ns]) =
            *(interval.metrics.iter()).find(|(of, _)| *of == metric)?;
        let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
        let whole = length_ns / period_ns.max(1);
        // The last of a trial is a part of one; one that lacks a job or two is not.
        let accounted = i64::try_from(interval.counts.accounted()).unwrap_or(i64::MAX);
        (accounted.saturating_mul(10) >= whole.saturating_mul(9)).then_some(KeptInterval {
            jobs: interval.counts.executed,
            median_ns,
            max_ns,
        })
    });
    KeptRound {
        jobs: log.counts.executed,
        span: u32::try_from(log.counts.accounted()).unwrap_or(u32::MAX),
        left_out_ns: left_out_ns.filter(|_| !all),
        largest,
        intervals: intervals.collect(),
    }
}

pub(super) fn period_ns(source: &Source, cell: &CellSummary) -> i64 {
    let plan = source.plan.trial(&cell.trial);
    let period = plan.map(|trial| source.task_of(trial, &cell.cell).period);
    period.map_or(0, model::Duration::ns)
}

fn summary(source: &Source, cell: &CellSummary, metric: Metric, tail: Tail) -> TailSummary {
    TailSummary {
        trial: cell.trial.clone(),
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        metric,
        period_ns: period_ns(source, cell),
        spacing_ns: None,
        tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settles_is_not_numbered() {
        assert_eq!(number(None, 7), Some(7));
        let turns = Some(TurnsRecord {
            jobs: 5,
            settle: 2,
            arms: 2,
            arm: 0,
            seed: 1,
        });
        let numbers: Vec<Option<u32>> = (0..10).map(|index| number(turns, index)).collect();
        let two = [None, None];
        let expected = [
            &two[..],
            &[Some(0), Some(1), Some(2)],
            &two,
            &[Some(3), Some(4), Some(5)],
        ];
        assert_eq!(numbers, expected.concat());
    }
}
