//! The figures of a run of periodic jobs that can be judged: for each cell the times of its jobs, its creation and counts; for each trial
//! of several cells their skew; ratios to the baseline, if there is one.

use super::ratios::Ratios;
use super::readings::{Absent, Reading, Readings, Subject};
use super::threshold::{Count, Figure, Statistic};
use super::verdict::{Measured, Unit, Why};
use crate::kind::Kind;
use record::summary::{CellSummary, Metric, RunSummary, SkewSummary};
use stats::{Ratio, Share, Sorted, Summary};
use text::words::{count, ends, part, plural};

/// The figures of a run of periodic jobs, with ratios to a baseline where one is given.
pub fn jobs_readings(summary: &RunSummary, ratios: &Ratios) -> Readings {
    let cells = summary.cells.iter().map(|cell| {
        let names = [
            cell.trial.clone(),
            cell.cell.clone(),
            cell.engine.to_string(),
        ];
        Subject::new(&cell.label, readings(cell, ratios)).also(names)
    });
    let skews = summary.skews.iter();
    let skews = skews.map(|skew| Subject::new(&skew.trial, skews_of(summary, skew)));
    let absent = summary.not_measured.iter();
    let absent = absent.map(|absent| Subject::absent(&absent.trial, &absent.reason));
    Readings {
        to: ratios.to.clone(),
        cautions: ratios.cautions.clone(),
        ..Readings::new(Kind::Jobs, cells.chain(skews).chain(absent).collect())
    }
}

fn readings(cell: &CellSummary, ratios: &Ratios) -> Vec<Reading> {
    let mut all = Vec::new();
    for metric in Metric::ALL {
        let summary = applicable(cell, metric);
        all.extend(Statistic::ALL.map(|statistic| time(cell, &summary, metric, statistic)));
        if !ratios.to.is_empty() && !ratios.is_baseline(cell) {
            let of = |statistic| relative(cell, &summary, metric, statistic, ratios);
            all.extend(
                [Statistic::Median, Statistic::P99]
                    .into_iter()
                    .filter_map(of),
            );
        }
    }
    let created = cell.create_median_ns.ok_or_else(|| {
        let what = "its creation was not timed".to_owned();
        (Why::NoFigure, what)
    });
    let created = created.map(|ns| Measured::fact(ns as f64));
    all.push(Reading::new(Figure::CreationMedian, Unit::Ns, created));
    for kind in [Count::Late, Count::Skipped, Count::Lost, Count::Faults] {
        all.push(counted(cell, kind));
        all.extend(kind.has_share().then(|| shared(cell, kind)));
    }
    all
}

/// A statistic of a time of its jobs.
fn time(
    cell: &CellSummary,
    summary: &Result<&Summary, Absent>,
    metric: Metric,
    statistic: Statistic,
) -> Reading {
    let found = match summary {
        Ok(summary) => of_summary(summary, statistic, "job"),
        Err(why) => Err(why.clone()),
    };
    let seen = summary.as_ref().map_or(0, |summary| summary.count);
    let remark = match statistic {
        Statistic::Max => format!("the largest of {} seen", plural(seen, "job")),
        Statistic::Min => format!("the smallest of {} seen", plural(seen, "job")),
        _ => String::new(),
    };
    let lost = text::words::lost(cell);
    Reading {
        doubt: (lost > 0).then(|| {
            let lost = plural(lost, "job");
            format!("{lost} lost, possibly including the worst")
        }),
        ..Reading::new(Figure::Job(metric, statistic), Unit::Ns, found).remarked(remark)
    }
}

/// Why there is no interval.
const ONE_ROUND: &str = "one round gives no interval; measure 3 rounds or more";

/// A ratio to the baseline; without an interval nothing is decided. `None` if the cell itself is the baseline.
fn relative(
    cell: &CellSummary,
    summary: &Result<&Summary, Absent>,
    metric: Metric,
    statistic: Statistic,
    ratios: &Ratios,
) -> Option<Reading> {
    let found = match summary {
        Ok(_) => ratios.of(cell, metric, statistic)?,
        Err(why) => Err(why.clone()),
    };
    let found = found.map(|(ratio, rounds): (Ratio, u32)| {
        let why_none = match rounds {
            0 | 1 => ONE_ROUND,
            _ => "its rounds give no interval",
        };
        Measured::estimate(ratio.value, ratio.low.zip(ratio.high), why_none)
    });
    Some(Reading::new(
        Figure::Job(metric, statistic),
        Unit::Ratio,
        found,
    ))
}

fn counted(cell: &CellSummary, kind: Count) -> Reading {
    let found = number(cell, kind).map(|number| Measured::fact(number as f64));
    Reading::new(Figure::Count(kind), Unit::Count, found).remarked(of_planned(cell, kind))
}

/// The same as a share of all activations.
fn shared(cell: &CellSummary, kind: Count) -> Reading {
    let found = number(cell, kind).and_then(|_| {
        let share = share(cell, kind).ok_or_else(|| {
            let what = "no activation of it was planned".to_owned();
            (Why::NoFigure, what)
        })?;
        let interval = share.low.zip(share.high);
        Ok(Measured::estimate(share.value, interval, ONE_ROUND))
    });
    Reading::new(Figure::Count(kind), Unit::Share, found).remarked(of_planned(cell, kind))
}

/// The count of this kind in a cell.
fn number(cell: &CellSummary, kind: Count) -> Result<u64, Absent> {
    match kind {
        Count::Late | Count::Skipped if !cell.real_time => Err(no_class(&cell.class)),
        Count::Late => cell.late.ok_or_else(|| {
            let what = "its jobs are separated by pauses instead of a period, and have no deadline";
            (Why::NoFigure, what.to_owned())
        }),
        Count::Skipped => Ok(cell.skipped),
        Count::Lost => Ok(cell.lost.saturating_add(cell.unexplained)),
        Count::Faults => Ok(cell.faults),
        Count::Missed => {
            let what = "its late jobs and skipped activations are counted apart";
            Err((Why::NoFigure, what.to_owned()))
        }
        Count::Failed => Err((Why::NoFigure, "its trial fails as a whole".to_owned())),
    }
}

/// The same as a share of all activations, where it is known.
fn share(cell: &CellSummary, kind: Count) -> Option<&Share> {
    match kind {
        Count::Late => cell.late_share.as_ref(),
        Count::Skipped => cell.skipped_share.as_ref(),
        Count::Missed | Count::Lost | Count::Faults | Count::Failed => None,
    }
}

/// The total that a count belongs to, and besides late jobs the activations that never became jobs.
fn of_planned(cell: &CellSummary, kind: Count) -> String {
    let mut reason = format!("of {}", plural(cell.planned, "activation"));
    if let Some(share) = share(cell, kind) {
        reason += &format!(", {}", part(share.value));
        if let Some(ends) = ends(share) {
            reason += &format!(" ({ends})");
        }
    }
    if kind == Count::Late && cell.skipped > 0 {
        reason += &format!("; {} others were skipped", count(cell.skipped));
    }
    reason
}

/// The metric of a cell, if it applies to the cell.
fn applicable(cell: &CellSummary, metric: Metric) -> Result<&Summary, Absent> {
    if cell.metrics.is_empty() {
        let what = "it has no good round".to_owned();
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

pub(crate) fn no_class(class: &str) -> Absent {
    let what = format!("it ran as {class}, in no real-time class");
    (Why::NotRealTime, what)
}

/// A statistic of a summary, with its interval where it has one.
pub(crate) fn of_summary(
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
                let what = format!("{} is not computed", statistic.name());
                return Err((Why::NoFigure, what));
            };
            match (quantile.value_ns, quantile.low_ns, quantile.high_ns) {
                (Some(value), Some(low), Some(high)) => {
                    Measured::estimate(value as f64, Some((low as f64, high as f64)), "")
                }
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

/// The start skew of one trial, over its rounds.
fn skews_of(summary: &RunSummary, skew: &SkewSummary) -> Vec<Reading> {
    let mut cells = summary.cells.iter().filter(|c| c.trial == skew.trial);
    let class = cells
        .find(|cell| !cell.real_time)
        .map(|cell| cell.class.as_str());
    of_skews(&skew.skew_ns, class)
}

/// The start skews of one trial round by round, ns; `class`: that of a cell that ran in no real-time class.
pub(crate) fn of_skews(skew_ns: &[u64], class: Option<&str>) -> Vec<Reading> {
    let values = skew_ns
        .iter()
        .map(|&ns| i64::try_from(ns).unwrap_or(i64::MAX));
    let rounds = Summary::of(&Sorted::new(values.collect()));
    let reading = |statistic| {
        let found = match (class, &rounds) {
            (Some(class), _) => Err(no_class(class)),
            (None, None) => Err((Why::NoGoodRound, "it has no good round".to_owned())),
            (None, Some(rounds)) => of_summary(rounds, statistic, "round"),
        };
        Reading::new(Figure::Skew(statistic), Unit::Ns, found)
    };
    Statistic::ALL.map(reading).to_vec()
}
