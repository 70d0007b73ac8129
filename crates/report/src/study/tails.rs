//! The tails of every metric of every cell that left samples, and of the primary metric of those of which histograms
//! and the worst jobs were kept.

use super::Source;
use super::histograms::logs;
use super::source::is_good;
use record::RecordError;
use record::histogram::HistogramLog;
use record::summary::{CellSummary, Metric, TailSummary};
use record::trial::TurnsRecord;
use stats::{KeptInterval, KeptRound, Tail, TailRound};
use std::collections::BTreeMap;

/// Seed of all resampling: the same run gives the same report.
const SEED: u64 = 0x7a11_5eed;

/// Samples of one metric by round, and the activation number and release of each.
#[derive(Default)]
struct Jobs {
    values: super::source::Rounds,
    activations: BTreeMap<u32, Vec<u32>>,
    releases: super::source::Rounds,
}

/// One entry for each metric of each cell; cells of which histograms were kept have one for the primary metric, by
/// which their worst jobs were chosen.
pub(super) fn study(
    source: &Source,
    cells: &[CellSummary],
) -> Result<Vec<TailSummary>, RecordError> {
    let mut tails = Vec::new();
    for cell in cells {
        if cell.histograms.is_some() {
            tails.extend(kept(source, cell)?);
            continue;
        }
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
    let mut in_turns = false;
    for record in source.good(&cell.trial) {
        if let Some(samples) = source.samples(record, &cell.cell)? {
            let numbered = (samples.samples.iter())
                .filter_map(|sample| Some((number(record.turns, sample.index)?, sample)));
            let round = record.round;
            let mut later_ns = None;
            for (number, sample) in numbered {
                jobs.values
                    .entry(round)
                    .or_default()
                    .push(metric.of(sample));
                jobs.activations.entry(round).or_default().push(number);
                let releases = jobs.releases.entry(round).or_default();
                // What a trial had done before it was resumed lies right before what it did then.
                let later_ns = *later_ns.get_or_insert_with(|| match releases.last() {
                    Some(last) => last + period_ns(source, cell) - sample.release_ns,
                    None => 0,
                });
                releases.push(sample.release_ns + later_ns);
            }
            in_turns |= record.turns.is_some();
        }
    }
    let rounds: Vec<TailRound> = jobs
        .values
        .iter()
        .filter_map(|(round, values_ns)| {
            Some(TailRound {
                activations: jobs.activations.get(round)?,
                values_ns,
                releases_ns: jobs.releases.get(round)?,
            })
        })
        .collect();
    let found = Tail::of(&rounds, SEED);
    let spacing_ns = in_turns.then(|| spacing_ns(&rounds)).flatten();
    Ok(found.map(|tail| TailSummary {
        spacing_ns,
        ..summary(source, cell, metric, tail)
    }))
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

/// The number of an activation. Where trials took turns, those that let a turn settle are left out and not numbered: a pattern
/// that repeats with the turns is made by them.
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
        // The last of a trial is a part of one; what a job more or less makes is none.
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

fn period_ns(source: &Source, cell: &CellSummary) -> i64 {
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
