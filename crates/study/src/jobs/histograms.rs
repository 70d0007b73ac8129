//! Cells that kept histograms, which do not hold the order of jobs: comparisons rest on the rounds' quantiles, and correlation on the
//! log's intervals.

use super::Source;
use super::cell::{classes, distinct, faults, label, median_cost, notes};
use super::deadlines::Deadlines;
use super::pass::Read;
use super::source::{self, is_good};
use super::{drawing, points, tails};
use model::{Pacing, TrialPlan};
use record::RecordError;
use record::histogram::{HistogramLog, RELATIVE_ERROR, Total};
use record::samples::Header;
use record::summary::{
    CellSummary, HistogramSummary, IntervalFigures, Metric, MetricSummary, WorstJob,
};
use record::trial::{CellRecord, TrialRecord};
use stats::{Bin, Binned, Quantile, RoundQuantiles, Summary, median_of};
use std::collections::BTreeMap;

/// Worst jobs that a summary lists; the record holds more.
const LISTED: usize = 100;

/// Quantiles by round.
type Quantiles = BTreeMap<u32, RoundQuantiles>;

/// Sums up every cell of the run.
pub(super) fn study(source: &Source) -> Result<Read, RecordError> {
    let plan = &source.plan;
    let primary = super::metrics(plan.workload.work)[0];
    let mut baselines: BTreeMap<Vec<String>, Quantiles> = BTreeMap::new();
    let mut cells = Vec::new();
    for trial in &plan.trials {
        for id in source.cell_ids(&trial.name) {
            let same = source.counterparts(&trial.name, &id);
            if !baselines.contains_key(&same) {
                let mut pooled = BTreeMap::new();
                for id in &same {
                    for (record, log) in logs(source, &plan.baseline, id)? {
                        if is_good(record) {
                            pool(&mut pooled, record.round, &log);
                        }
                    }
                }
                baselines.insert(same.clone(), quantiles(&pooled, primary));
            }
            let against = baselines.get(&same).filter(|_| trial.name != plan.baseline);
            cells.push(cell(source, trial, &id, against)?);
        }
    }
    let mut drawn = Vec::new();
    for index in drawing::choose(&cells).0 {
        drawn.extend(drawing::of_histograms(source, &cells, index, primary)?);
    }
    Ok(Read {
        tails: tails::of_histograms(source, &cells)?,
        points: points::study(source, &cells),
        cells,
        drawn,
        counted: Vec::new(),
    })
}

/// The logs of one cell over the trial's records, in their order.
pub(crate) fn logs<'s>(
    source: &'s Source,
    trial: &str,
    id: &str,
) -> Result<Vec<(&'s TrialRecord, HistogramLog)>, RecordError> {
    let mut found = Vec::new();
    for record in source.records(trial) {
        if let Some(log) = source.run.histograms(record.number, id)? {
            found.push((record, log));
        }
    }
    Ok(found)
}

/// The bins of a histogram.
pub(crate) fn binned(total: &Total) -> Binned {
    let histogram = &total.histogram;
    let ns = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let bins = histogram.iter_recorded().map(|step| Bin {
        low_ns: ns(histogram.lowest_equivalent(step.value_iterated_to())),
        high_ns: ns(histogram.highest_equivalent(step.value_iterated_to())),
        count: step.count_since_last_iteration(),
    });
    Binned::new(bins.collect(), total.min_ns, total.max_ns)
}

/// Adds the log's histograms to their round.
pub(super) fn pool(pooled: &mut BTreeMap<u32, Vec<Total>>, round: u32, log: &HistogramLog) {
    let totals = pooled.entry(round).or_default();
    for part in &log.totals {
        match totals.iter_mut().find(|total| total.metric == part.metric) {
            Some(total) => total.add(part),
            None => totals.push(part.clone()),
        }
    }
}

/// The quantiles of one metric of one cell in each of its good rounds, in a run that kept histograms.
pub(crate) fn round_quantiles(
    source: &Source,
    trial: &str,
    id: &str,
    metric: Metric,
) -> Result<BTreeMap<u32, RoundQuantiles>, RecordError> {
    let mut pooled = BTreeMap::new();
    for (record, log) in logs(source, trial, id)? {
        if is_good(record) {
            pool(&mut pooled, record.round, &log);
        }
    }
    Ok(quantiles(&pooled, metric))
}

fn quantiles(pooled: &BTreeMap<u32, Vec<Total>>, metric: Metric) -> Quantiles {
    let of = |(round, totals): (&u32, &Vec<Total>)| {
        let bins = binned(totals.iter().find(|total| total.metric == metric)?);
        let p99 = Quantile::of_binned(&bins, 0.99, stats::DEFAULT_CONFIDENCE)?;
        let found = RoundQuantiles {
            median_ns: bins.nearest_rank(0.5)?,
            p99_ns: p99.value_ns,
        };
        Some((*round, found))
    };
    pooled.iter().filter_map(of).collect()
}

fn cell(
    source: &Source,
    trial: &TrialPlan,
    id: &str,
    against: Option<&Quantiles>,
) -> Result<CellSummary, RecordError> {
    let records = source.records(&trial.name);
    let cells: Vec<&CellRecord> = records.iter().filter_map(|r| source::cell(r, id)).collect();
    let metrics = super::metrics(source.plan.workload.work);
    let logs = logs(source, &trial.name, id)?;
    let mut pooled = BTreeMap::new();
    let mut headers: Vec<Header> = Vec::new();
    let (mut planned, mut executed, mut skipped, mut lost, mut unexplained) = (0, 0, 0, 0, 0);
    let workload = source.task_of(trial, id);
    let deadline_ns = workload.deadline_ns();
    let mut deadlines = Deadlines::default();
    for (record, log) in &logs {
        // The rest of a cut-off trial is planned again by the one that continues it.
        let asked = match record.cut_off {
            Some(_) => log.counts.accounted(),
            None => log.planned(),
        };
        planned += asked;
        executed += log.counts.executed;
        skipped += log.counts.skipped;
        lost += log.counts.lost;
        unexplained += asked.saturating_sub(log.counts.accounted());
        let late = deadline_ns.and_then(|deadline| after(log, deadline));
        deadlines.add(record.round, asked, late, log.counts.skipped);
        if is_good(record) {
            pool(&mut pooled, record.round, log);
            headers.push(log.header());
        }
    }
    for record in records.iter().filter(|r| source::cell(r, id).is_some()) {
        let silent = record.go_ns.is_some() && logs.iter().all(|(r, _)| r.number != record.number);
        if silent && record.cut_off.is_none() {
            // The barrier opened and nothing came back: every requested activation is lost.
            let asked = u64::from(source.task_of(trial, id).jobs);
            planned += asked;
            unexplained += asked;
            deadlines.add(record.round, asked, deadline_ns.map(|_| 0), 0);
        }
    }
    let mut notes = notes(&cells, &headers);
    let primary = quantiles(&pooled, metrics[0]);
    let against_baseline = against.and_then(|baseline| {
        let shared = |(round, ours): (&u32, &RoundQuantiles)| Some((*baseline.get(round)?, *ours));
        let (left, right): (Vec<_>, Vec<_>) = primary.iter().filter_map(shared).unzip();
        if left.is_empty() {
            return None;
        }
        match stats::compare_quantiles(&left, &right, RELATIVE_ERROR) {
            Ok(comparison) => Some(comparison),
            Err(error) => {
                notes.push(format!("not compared with the baseline: {error}"));
                None
            }
        }
    });
    let done: u64 = headers.iter().map(|h| h.count).sum();
    let ended: Vec<Header> = headers
        .iter()
        .filter(|h| h.complete == 1)
        .copied()
        .collect();
    let cpu_time: u128 = ended.iter().map(|h| u128::from(h.cpu_time_ns)).sum();
    let created: Vec<i64> = cells.iter().filter_map(|cell| cell.create_ns).collect();
    let timed: u64 = ended.iter().map(|h| h.count).sum();
    Ok(CellSummary {
        task: None,
        trial: trial.name.clone(),
        cell: id.to_owned(),
        label: label(trial, id),
        engine: cells.first().map_or(trial.cells[0], |cell| cell.engine),
        rounds: primary.len() as u32,
        class: classes(&cells),
        real_time: cells.iter().all(|cell| cell.real_time),
        cpus: distinct(cells.iter().map(|cell| cell.cpu)),
        planned,
        executed,
        skipped,
        late: deadlines.late().filter(|_| deadline_ns.is_some()),
        late_share: deadlines.late_share().filter(|_| deadline_ns.is_some()),
        skipped_share: deadlines.skipped_share(),
        deadline_ns,
        period_ns: (workload.pacing == Pacing::Periodic).then(|| workload.period.ns()),
        unexplained,
        lost,
        metrics: metrics
            .iter()
            .filter_map(|metric| metric_summary(*metric, &pooled))
            .collect(),
        against_baseline,
        in_turns: Vec::new(),
        does: super::cell::does(&source.plan, trial, id),
        executions: super::cell::executions(&source.task_of(trial, id)),
        create_median_ns: median_of(&created),
        cpu_time_per_activation_ns: (timed > 0 && done > 0).then(|| cpu_time as f64 / timed as f64),
        cpu_per_second_ns: None,
        clock_cost_ns: median_cost(&headers, |h| h.clock_cost_ns),
        loop_cost_ns: median_cost(&headers, |h| h.loop_cost_ns),
        faults: headers.iter().map(faults).fold(0, u64::saturating_add),
        notes,
        histograms: Some(beside(metrics[0], &logs)),
    })
}

/// Jobs of a log that ended after their deadline; those in the deadline's bin count as late if the largest was; `None` where response
/// times were not kept.
fn after(log: &HistogramLog, deadline_ns: i64) -> Option<u64> {
    let total = (log.totals.iter()).find(|total| total.metric == Metric::ResponseTime)?;
    if total.max_ns <= deadline_ns {
        return Some(0);
    }
    let histogram = &total.histogram;
    let deadline = deadline_ns.unsigned_abs();
    let late = |value: u64| histogram.highest_equivalent(value) > deadline;
    let recorded = histogram.iter_recorded();
    Some(
        recorded
            .filter(|step| late(step.value_iterated_to()))
            .map(|step| step.count_since_last_iteration())
            .sum(),
    )
}

fn metric_summary(metric: Metric, pooled: &BTreeMap<u32, Vec<Total>>) -> Option<MetricSummary> {
    let of_round = |totals: &Vec<Total>| totals.iter().find(|t| t.metric == metric).cloned();
    let rounds: Vec<Total> = pooled.values().filter_map(of_round).collect();
    let round_medians_ns = rounds
        .iter()
        .filter_map(|total| binned(total).nearest_rank(0.5));
    let round_medians_ns = round_medians_ns.collect();
    let round_means_ns = rounds.iter().map(|total| total.mean_ns).collect();
    let round_maxima_ns = rounds.iter().map(|total| total.max_ns).collect();
    let lags: Vec<f64> = rounds
        .iter()
        .filter_map(|t| t.lag1_autocorrelation)
        .collect();
    let lag1_autocorrelation =
        (!lags.is_empty()).then(|| lags.iter().sum::<f64>() / lags.len() as f64);
    let mut rounds = rounds.into_iter();
    let mut all = rounds.next()?;
    rounds.for_each(|round| all.add(&round));
    let count = all.histogram.len();
    let sd = (count >= 2).then(|| (all.squares_ns2 / (count - 1) as f64).sqrt());
    Some(MetricSummary {
        metric,
        summary: Summary::of_binned(&binned(&all), all.mean_ns, sd)?,
        round_medians_ns,
        round_means_ns,
        round_maxima_ns,
        lag1_autocorrelation,
    })
}

/// Intervals and worst jobs of all records, failed ones excepted.
fn beside(primary: Metric, logs: &[(&TrialRecord, HistogramLog)]) -> HistogramSummary {
    let good = || logs.iter().filter(|(record, _)| is_good(record));
    let mut worst: Vec<WorstJob> = good()
        .flat_map(|(record, log)| {
            log.worst.iter().map(|(value_ns, job)| WorstJob {
                trial: record.number,
                round: record.round,
                value_ns: *value_ns,
                index: job.index,
                skipped_before: job.skipped,
                since_release_ns: job.release_ns.saturating_sub(log.begin.go_ns),
                release_ns: job.release_ns,
                start_ns: job.start_ns,
                end_ns: job.end_ns,
            })
        })
        .collect();
    worst.sort_by_key(|job| std::cmp::Reverse(job.value_ns));
    worst.truncate(LISTED);
    let intervals = good().flat_map(|(record, log)| {
        log.intervals.iter().map(|interval| {
            let of = interval
                .metrics
                .iter()
                .find(|(metric, _)| *metric == primary);
            let figure = |at: usize| of.map(|(_, figures)| figures[at]);
            IntervalFigures {
                trial: record.number,
                round: record.round,
                start_ns: interval.start_ns,
                end_ns: interval.end_ns,
                executed: interval.counts.executed,
                skipped: interval.counts.skipped,
                lost: interval.counts.lost,
                min_ns: figure(0),
                median_ns: figure(1),
                p99_ns: figure(2),
                max_ns: figure(3),
            }
        })
    });
    let below = |log: &HistogramLog| {
        let of = log.totals.iter().find(|total| total.metric == primary);
        of.map_or(0, |total| total.below_zero)
    };
    HistogramSummary {
        relative_error: RELATIVE_ERROR,
        below_zero: good().map(|(_, log)| below(log)).sum(),
        intervals: intervals.collect(),
        worst,
    }
}
