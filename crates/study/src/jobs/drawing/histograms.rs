//! Picture data of a cell that kept histograms.

use super::super::source::{Source, is_good};
use super::super::{binned, logs};
use super::{CCDF_POINTS, CellData, OUTLIERS, RoundData, SPANS, TAIL};
use record::RecordError;
use record::histogram::{HistogramLog, Total};
use record::summary::{CellSummary, Metric};
use record::trial::TrialRecord;
use stats::{BoxPlot, ccdf_binned};
use std::collections::BTreeMap;

/// One interval of a cell, placed after the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins and ends, ns since the first release; trials follow each other without a gap.
    pub span: (i64, i64),
    /// Smallest value, median, p99, largest value, ns.
    pub figures: [i64; 4],
}

/// One cell from its logs; `None` when nothing of it is good.
pub(in crate::jobs) fn gather(
    source: &Source,
    cells: &[CellSummary],
    index: usize,
    metric: Metric,
) -> Result<Option<CellData>, RecordError> {
    let cell = &cells[index];
    let p99_ns = cell
        .metrics
        .first()
        .and_then(|m| m.summary.quantile(0.99)?.value_ns);
    let mut rounds: BTreeMap<u32, Vec<(&TrialRecord, HistogramLog)>> = BTreeMap::new();
    for (record, log) in logs(source, &cell.trial, &cell.cell)? {
        if is_good(record) {
            rounds.entry(record.round).or_default().push((record, log));
        }
    }
    let primary = |log: &HistogramLog| -> Option<Total> {
        log.totals.iter().find(|t| t.metric == metric).cloned()
    };
    let mut all: Option<Total> = None;
    let mut drawn = Vec::new();
    for (number, parts) in &rounds {
        let mut of_round: Option<Total> = None;
        for total in parts.iter().filter_map(|(_, log)| primary(log)) {
            for sum in [&mut all, &mut of_round] {
                match sum {
                    Some(sum) => sum.add(&total),
                    None => *sum = Some(total.clone()),
                }
            }
        }
        if let Some(total) = of_round {
            drawn.push(round(*number, &total, parts, metric, p99_ns));
        }
    }
    let Some(all) = all else {
        return Ok(None);
    };
    let bins = binned(&all);
    Ok(
        BoxPlot::of_binned(&bins, OUTLIERS).map(|box_plot| CellData {
            index,
            label: cell.label.clone(),
            real_time: cell.real_time,
            look: 0,
            box_plot,
            ccdf: ccdf_binned(&bins, CCDF_POINTS),
            rounds: drawn,
            p99_ns,
            stretches: stretches(cell),
        }),
    )
}

fn round(
    number: u32,
    total: &Total,
    parts: &[(&TrialRecord, HistogramLog)],
    metric: Metric,
    p99_ns: Option<i64>,
) -> RoundData {
    let mut before = 0i64;
    let mut spans = Vec::new();
    let mut tail = Vec::new();
    for (_, log) in parts {
        let of = |interval: &record::histogram::IntervalSummary| {
            let found = interval.metrics.iter().find(|(m, _)| *m == metric);
            found.map(|(_, figures)| (interval.start_ns, interval.end_ns, figures[0], figures[3]))
        };
        for (start, end, low, high) in log.intervals.iter().filter_map(of) {
            // Both ends, so that the band of few intervals is as wide as they are.
            spans.push((before.saturating_add(start), low, high));
            spans.push((before.saturating_add(end) - 1, low, high));
        }
        let begin = log.begin.go_ns;
        let beyond = log
            .worst
            .iter()
            .filter(|(value, _)| p99_ns.is_some_and(|p99| *value > p99));
        tail.extend(beyond.map(|(value, job)| {
            (
                before.saturating_add(job.release_ns.saturating_sub(begin)),
                *value,
            )
        }));
        before = before.saturating_add(log.intervals.last().map_or(0, |last| last.end_ns));
    }
    tail.sort_unstable_by_key(|&(_, value)| std::cmp::Reverse(value));
    tail.truncate(TAIL);
    RoundData {
        number,
        median_ns: binned(total).nearest_rank(0.5).unwrap_or(0),
        length_ns: before,
        spans: merged(spans),
        tail,
    }
}

/// At most [`SPANS`] spans, neighbours merged.
fn merged(spans: Vec<(i64, i64, i64)>) -> Vec<(i64, i64, i64)> {
    let every = spans.len().div_ceil(SPANS).max(1);
    let merge = |part: &[(i64, i64, i64)]| {
        let low = part.iter().map(|span| span.1).min().unwrap_or(0);
        let high = part.iter().map(|span| span.2).max().unwrap_or(0);
        (part[0].0, low, high)
    };
    spans.chunks(every).map(merge).collect()
}

/// The intervals of a cell one after the other.
fn stretches(cell: &CellSummary) -> Vec<Stretch> {
    let mut before = 0i64;
    let mut trial = None;
    let mut last_end = 0i64;
    let mut found = Vec::new();
    for interval in cell.histograms.iter().flat_map(|h| &h.intervals) {
        if trial.is_some_and(|trial| trial != interval.trial) {
            before = last_end;
        }
        trial = Some(interval.trial);
        last_end = before.saturating_add(interval.end_ns);
        if let (Some(min), Some(median), Some(p99), Some(max)) = (
            interval.min_ns,
            interval.median_ns,
            interval.p99_ns,
            interval.max_ns,
        ) {
            found.push(Stretch {
                span: (before.saturating_add(interval.start_ns), last_end),
                figures: [min, median, p99, max],
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_spans_become_few_and_keep_their_extremes() {
        let spans: Vec<(i64, i64, i64)> = (0..1000).map(|i| (i, 5 - i % 2, 10 + i)).collect();
        let few = merged(spans);
        assert!(few.len() <= SPANS);
        assert_eq!(few[0], (0, 4, 18));
        assert_eq!(few.last().map(|span| span.2), Some(1009));
    }
}
