//! Thresholds on runs of single measurements, which have no jobs: memory, and the time of creation.

use super::threshold::{Figure, Limit, Statistic, Threshold};
use super::verdict::{CellVerdict, Judged, JudgedThreshold, Measured, Unit, Why};
use record::series::{Quantity, SeriesFigure, SeriesSummary};
use stats::needed_count;

/// Judges every subject that each threshold is about.
pub fn judge_series(summary: &SeriesSummary, thresholds: &[Threshold]) -> Judged {
    let judged = |threshold: &Threshold| JudgedThreshold {
        threshold: threshold.to_string(),
        cells: verdicts(summary, threshold),
    };
    Judged {
        baseline: summary.baseline_subject.clone().unwrap_or_default(),
        cautions: Vec::new(),
        thresholds: thresholds.iter().map(judged).collect(),
    }
}

fn verdicts(summary: &SeriesSummary, threshold: &Threshold) -> Vec<CellVerdict> {
    let about = |figure: &SeriesFigure| match threshold.figure {
        Figure::Memory(_) => figure.unit == Quantity::Bytes && figure.of.is_none(),
        Figure::CreationMedian => figure.unit == Quantity::Ns && figure.part == "create",
        _ => false,
    };
    let selected = |name: &str| match &threshold.selector {
        None => true,
        Some(selector) => selector.matches(name),
    };
    let figures = summary.figures.iter().filter(|figure| about(figure));
    let mut found: Vec<CellVerdict> = figures
        .filter(|f| selected(&f.subject) || selected(&label(f)))
        .map(|figure| verdict(figure, threshold))
        .collect();
    let general = threshold.selector.as_ref().is_none_or(|s| s.is_pattern());
    let why = match general {
        true => Why::NotMeasured,
        false => Why::NamedAndNotMeasured,
    };
    for absent in summary.not_measured.iter().filter(|n| selected(&n.trial)) {
        let reason = format!("not measured: {}", absent.reason);
        found.push(CellVerdict::not_applicable(&absent.trial, why, reason));
    }
    if found
        .iter()
        .all(|verdict| verdict.why == Some(Why::NotMeasured))
    {
        let reason = format!(
            "scenario {} has no such figure of this name; it has single measurements and no jobs",
            summary.scenario
        );
        let name = threshold.selector.as_ref().map_or("*", |s| s.0.as_str());
        found.push(CellVerdict::not_applicable(name, Why::NoFigure, reason));
    }
    found
}

fn label(figure: &SeriesFigure) -> String {
    format!("{}/{}", figure.subject, figure.part)
}

fn verdict(figure: &SeriesFigure, threshold: &Threshold) -> CellVerdict {
    let label = label(figure);
    let statistic = match threshold.figure {
        Figure::Memory(statistic) => statistic,
        _ => Statistic::Median,
    };
    let (unit, limit) = match threshold.limit {
        Limit::Bytes(bytes) => (Unit::Bytes, bytes as f64),
        Limit::Time(time) => (Unit::Ns, time.ns() as f64),
        Limit::Number(_) | Limit::Percent(_) | Limit::Ratio(_) => {
            let reason = "single measurements are not compared with a baseline here".to_owned();
            return CellVerdict::not_applicable(&label, Why::NoBaseline, reason);
        }
    };
    let measured = match statistic {
        Statistic::Min => Some(Measured::fact(figure.least as f64)),
        Statistic::Max => Some(Measured::fact(figure.worst as f64)),
        Statistic::Mean => Some(Measured::fact(figure.mean)),
        Statistic::Sd => figure.sd.map(Measured::fact),
        Statistic::Median => figure.median_interval.map(|(low, high)| Measured {
            value: figure.median as f64,
            interval: Some((low as f64, high as f64)),
        }),
        Statistic::P90 => figure.p90.map(|value| Measured::fact(value as f64)),
        Statistic::P99 => figure.p99.map(|value| Measured::fact(value as f64)),
        Statistic::P95 | Statistic::P999 | Statistic::P9999 => {
            let name = statistic.name();
            let reason = format!("{name} of single measurements is not summed up");
            return CellVerdict::not_applicable(&label, Why::NoFigure, reason);
        }
    };
    let Some(measured) = measured else {
        let needed = match statistic.probability() {
            Some(p) => needed_count(p, stats::DEFAULT_CONFIDENCE).unwrap_or(u64::MAX),
            None => 2,
        };
        let reason = format!("needs {needed} values, has {}", figure.count);
        return CellVerdict::not_applicable(&label, Why::TooFew, reason);
    };
    let outcome = measured.outcome(threshold.operator, limit);
    CellVerdict::of(&label, measured, unit, outcome)
}
