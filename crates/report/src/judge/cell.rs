//! One threshold in one cell.

use super::ratios::Ratios;
use super::threshold::{Count, Figure, Limit, Statistic, Threshold};
use super::verdict::{CellVerdict, Measured, Outcome, Unit, Why};
use crate::words::{count, ends, part, plural};
use record::summary::{CellSummary, Metric, RunSummary, SkewSummary};
use stats::{Ratio, Share, Sorted, Summary};

/// Why a figure is not to be had, and in words.
pub(super) type Absent = (Why, String);

/// The verdict on one cell; `None` where the cell is itself what ratios are to.
pub(super) fn verdict(
    cell: &CellSummary,
    threshold: &Threshold,
    ratios: &Ratios,
) -> Option<CellVerdict> {
    let absent = |(why, reason): Absent| CellVerdict::not_applicable(&cell.label, why, reason);
    let decided = |measured: Measured, unit, limit: f64| {
        let outcome = measured.outcome(threshold.operator, limit);
        CellVerdict::of(&cell.label, measured, unit, outcome)
    };
    Some(match (threshold.figure, threshold.limit) {
        (Figure::Job(metric, statistic), Limit::Ratio(limit)) => {
            if let Err(why) = applicable(cell, metric) {
                return (!ratios.is_baseline(cell)).then(|| absent(why));
            }
            match ratios.of(cell, metric, statistic)? {
                Err(why) => absent(why),
                Ok((ratio, rounds)) => relative(cell, &ratio, rounds, threshold, limit),
            }
        }
        (Figure::Job(metric, statistic), Limit::Time(limit)) => {
            let summary = match applicable(cell, metric) {
                Ok(summary) => summary,
                Err(why) => return Some(absent(why)),
            };
            match of_summary(summary, statistic, "job") {
                Err(why) => absent(why),
                Ok(measured) => {
                    let mut verdict = decided(measured, Unit::Ns, limit.ns() as f64);
                    if verdict.reason.is_empty() {
                        verdict.reason = seen(summary, statistic);
                    }
                    let lost = crate::words::lost(cell);
                    if lost > 0 && verdict.verdict == Outcome::Met {
                        verdict.verdict = Outcome::Undecided;
                        verdict.reason = format!(
                            "{} lost, and the worst of all may be among them",
                            plural(lost, "job")
                        );
                    }
                    verdict
                }
            }
        }
        (Figure::CreationMedian, Limit::Time(limit)) => match cell.create_median_ns {
            Some(ns) => decided(Measured::fact(ns as f64), Unit::Ns, limit.ns() as f64),
            None => absent((Why::NoFigure, "its creation was not timed".to_owned())),
        },
        (Figure::Count(kind), Limit::Number(limit)) => {
            let number = match number(cell, kind) {
                Ok(number) => number,
                Err(why) => return Some(absent(why)),
            };
            let mut verdict = decided(Measured::fact(number as f64), Unit::Count, limit as f64);
            verdict.reason = of_planned(cell, kind);
            verdict
        }
        (Figure::Count(kind), Limit::Percent(limit)) => {
            if let Err(why) = number(cell, kind) {
                return Some(absent(why));
            }
            let Some(share) = share(cell, kind) else {
                let what = "no activation of it was planned".to_owned();
                return Some(absent((Why::NoFigure, what)));
            };
            let measured = Measured {
                value: share.value,
                interval: share.low.zip(share.high),
            };
            let outcome = match measured.interval {
                Some(_) => measured.outcome(threshold.operator, limit / 100.0),
                None => Outcome::Undecided,
            };
            let mut verdict = CellVerdict::of(&cell.label, measured, Unit::Share, outcome);
            if measured.interval.is_none() {
                verdict.reason = ONE_ROUND.to_owned();
            } else if verdict.reason.is_empty() {
                verdict.reason = of_planned(cell, kind);
            }
            verdict
        }
        _ => {
            let what = "a run with jobs does not measure memory; `timecell bench footprint` does";
            absent((Why::NoFigure, what.to_owned()))
        }
    })
}

/// Why there is no interval.
const ONE_ROUND: &str = "one round gives no interval; measure 3 rounds or more";

/// What a cell counts of this.
fn number(cell: &CellSummary, kind: Count) -> Result<u64, Absent> {
    match kind {
        Count::Late | Count::Missed if !cell.real_time => Err(no_class(&cell.class)),
        Count::Late => cell.late.ok_or_else(|| {
            let what = "its jobs pause instead of having a period, and have no deadline";
            (Why::NoFigure, what.to_owned())
        }),
        Count::Missed => Ok(cell.missed),
        Count::Lost => Ok(cell.lost.saturating_add(cell.unexplained)),
        Count::Faults => Ok(cell.faults),
    }
}

/// The same as a share of all activations, where it is known.
fn share(cell: &CellSummary, kind: Count) -> Option<&Share> {
    match kind {
        Count::Late => cell.late_share.as_ref(),
        Count::Missed => cell.missed_share.as_ref(),
        Count::Lost | Count::Faults => None,
    }
}

/// What a count is one of, and beside late jobs those activations that never became jobs.
fn of_planned(cell: &CellSummary, kind: Count) -> String {
    let mut reason = format!("of {}", plural(cell.planned, "activation"));
    if let Some(share) = share(cell, kind) {
        reason += &format!(", {}", part(share.value));
        if let Some(ends) = ends(share) {
            reason += &format!(" ({ends})");
        }
    }
    if kind == Count::Late && cell.missed > 0 {
        reason += &format!("; {} others were missed", count(cell.missed));
    }
    reason
}

/// The metric of a cell that it says something about.
fn applicable(cell: &CellSummary, metric: Metric) -> Result<&Summary, Absent> {
    if cell.metrics.is_empty() {
        let what = "no round of it is good".to_owned();
        return Err((Why::NoGoodRound, what));
    }
    if !cell.real_time {
        return Err(no_class(&cell.class));
    }
    let found = cell.metrics.iter().find(|m| m.metric == metric);
    found.map(|m| &m.summary).ok_or_else(|| {
        let what = format!("its jobs have no {}", metric.title());
        (Why::NoFigure, what)
    })
}

fn no_class(class: &str) -> Absent {
    let what = format!("it ran as {class}, in no real-time class");
    (Why::NotRealTime, what)
}

/// A statistic of a summary, with its interval where it has one.
pub(super) fn of_summary(
    summary: &Summary,
    statistic: Statistic,
    sample: &str,
) -> Result<Measured, Absent> {
    Ok(match statistic {
        Statistic::Min => Measured::fact(summary.min_ns as f64),
        Statistic::Max => Measured::fact(summary.max_ns as f64),
        Statistic::Mean => Measured::fact(summary.mean_ns),
        Statistic::Sd => {
            let few = || (Why::TooFew, format!("needs 2 {sample}s, has 1"));
            Measured::fact(summary.sd_ns.ok_or_else(few)?)
        }
        _ => {
            let quantile = statistic.probability().and_then(|p| summary.quantile(p));
            let Some(quantile) = quantile else {
                let what = format!("{} is not summed up", statistic.name());
                return Err((Why::NoFigure, what));
            };
            match (quantile.value_ns, quantile.low_ns, quantile.high_ns) {
                (Some(value), Some(low), Some(high)) => Measured {
                    value: value as f64,
                    interval: Some((low as f64, high as f64)),
                },
                _ => {
                    let what = format!(
                        "needs {}, has {}",
                        plural(quantile.needed_count, sample),
                        count(summary.count)
                    );
                    return Err((Why::TooFew, what));
                }
            }
        }
    })
}

/// What an extreme value is one of.
fn seen(summary: &Summary, statistic: Statistic) -> String {
    match statistic {
        Statistic::Max => format!("the largest of {} seen", plural(summary.count, "job")),
        Statistic::Min => format!("the smallest of {} seen", plural(summary.count, "job")),
        _ => String::new(),
    }
}

/// A ratio to the baseline; without an interval nothing is decided.
fn relative(
    cell: &CellSummary,
    ratio: &Ratio,
    rounds: u32,
    threshold: &Threshold,
    limit: f64,
) -> CellVerdict {
    let measured = Measured {
        value: ratio.value,
        interval: ratio.low.zip(ratio.high),
    };
    let outcome = match measured.interval {
        Some(_) => measured.outcome(threshold.operator, limit),
        None => Outcome::Undecided,
    };
    let mut verdict = CellVerdict::of(&cell.label, measured, Unit::Ratio, outcome);
    if measured.interval.is_none() {
        verdict.reason = if rounds < 2 {
            ONE_ROUND.to_owned()
        } else {
            "its rounds give no interval".to_owned()
        };
    }
    verdict
}

/// The verdict on the start skew of one trial.
pub(super) fn skew(
    summary: &RunSummary,
    skew: &SkewSummary,
    statistic: Statistic,
    threshold: &Threshold,
) -> CellVerdict {
    let absent = |(why, reason): Absent| CellVerdict::not_applicable(&skew.trial, why, reason);
    let mut cells = summary.cells.iter().filter(|c| c.trial == skew.trial);
    if let Some(cell) = cells.find(|cell| !cell.real_time) {
        return absent(no_class(&cell.class));
    }
    let values = skew.skew_ns.iter();
    let values = values.map(|&ns| i64::try_from(ns).unwrap_or(i64::MAX));
    let Some(rounds) = Summary::of(&Sorted::new(values.collect())) else {
        return absent((Why::NoGoodRound, "no round of it is good".to_owned()));
    };
    match (of_summary(&rounds, statistic, "round"), threshold.limit) {
        (Ok(measured), Limit::Time(limit)) => {
            let outcome = measured.outcome(threshold.operator, limit.ns() as f64);
            CellVerdict::of(&skew.trial, measured, Unit::Ns, outcome)
        }
        (Err(why), _) => absent(why),
        (Ok(_), _) => absent((Why::NoBaseline, "skews are not compared".to_owned())),
    }
}
