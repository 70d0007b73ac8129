//! Thresholds: is a number good enough? Judging is separate from measuring and from summing up: a verdict is a pure
//! function of a summary, the thresholds, and the ratios to a baseline, and can be had again with other thresholds.
//!
//! A verdict rests on 95 % intervals wherever there is one. `missed` means that the whole interval lies where it must
//! not, `met` that none of it does, `undecided` that the limit lies within. Smallest and largest value, mean, deviation
//! and counts are facts about what was seen and are compared as they are; shares of activations have an interval.

mod cell;
mod isolation;
mod measured;
mod page;
mod parse;
mod ratios;
mod series;
mod supply;
mod text;
mod threshold;
mod until;
mod verdict;

pub use isolation::judge_isolation;
pub use measured::judge_measured;
pub use parse::ThresholdError;
pub use ratios::{RatioOf, Ratios, between, within};
pub use series::judge_series;
pub use supply::judge_supply;
pub use text::judged_table;
pub use threshold::{Count, Figure, Limit, Operator, Selector, Statistic, Threshold};
pub use until::judge_run;
pub use verdict::{CellVerdict, Judged, JudgedThreshold, Outcome, Unit, Why};

pub(crate) use page::section;

use record::summary::{CellSummary, RunSummary};

/// Judges every cell that each threshold is about.
pub fn judge(summary: &RunSummary, thresholds: &[Threshold], ratios: &Ratios) -> Judged {
    let judged = |threshold: &Threshold| JudgedThreshold {
        threshold: threshold.to_string(),
        cells: verdicts(summary, threshold, ratios),
    };
    Judged {
        baseline: ratios.to.clone(),
        cautions: ratios.cautions.clone(),
        thresholds: thresholds.iter().map(judged).collect(),
    }
}

/// The names that a selector may be about: of trials, `trial/cell`, cells and engines.
pub fn names(cell: &CellSummary) -> [String; 4] {
    [
        cell.trial.clone(),
        cell.label.clone(),
        cell.cell.clone(),
        cell.engine.to_string(),
    ]
}

fn verdicts(summary: &RunSummary, threshold: &Threshold, ratios: &Ratios) -> Vec<CellVerdict> {
    let selected = |names: &[String]| match &threshold.selector {
        None => true,
        Some(selector) => names.iter().any(|name| selector.matches(name)),
    };
    let mut found: Vec<CellVerdict> = match threshold.figure {
        Figure::Skew(statistic) => summary
            .skews
            .iter()
            .filter(|skew| selected(std::slice::from_ref(&skew.trial)))
            .map(|skew| cell::skew(summary, skew, statistic, threshold))
            .collect(),
        _ => {
            let cells = summary.cells.iter().filter(|cell| selected(&names(cell)));
            cells
                .filter_map(|cell| cell::verdict(cell, threshold, ratios))
                .collect()
        }
    };
    let general = threshold.selector.as_ref().is_none_or(Selector::is_pattern);
    for absent in &summary.not_measured {
        if selected(std::slice::from_ref(&absent.trial)) {
            let why = if general {
                Why::NotMeasured
            } else {
                Why::NamedAndNotMeasured
            };
            let reason = format!("not measured: {}", absent.reason);
            found.push(CellVerdict::not_applicable(&absent.trial, why, reason));
        }
    }
    // A trial that was not measured does not stand for those that were and have no skew.
    let unmet = |verdict: &CellVerdict| verdict.why == Some(Why::NotMeasured);
    let alone = matches!(threshold.figure, Figure::Skew(_)) && found.iter().all(unmet);
    if found.is_empty() || alone {
        found.push(nothing(summary, threshold));
    }
    found
}

/// What stands for a threshold that no cell is judged by.
fn nothing(summary: &RunSummary, threshold: &Threshold) -> CellVerdict {
    let reason = match (&threshold.selector, threshold.figure, threshold.limit) {
        (_, _, Limit::Ratio(_)) => "there is nothing to compare with a baseline".to_owned(),
        (None, Figure::Skew(_), _) => "no trial that was measured has several cells".to_owned(),
        (_, Figure::Skew(_), _) => {
            "no trial of this name that was measured has several cells".to_owned()
        }
        _ => {
            let labels: Vec<&str> = summary.cells.iter().map(|c| c.label.as_str()).collect();
            format!("no cell of this name; there are {}", labels.join(", "))
        }
    };
    let name = threshold.selector.as_ref().map_or("*", |s| s.0.as_str());
    CellVerdict::not_applicable(name, Why::NothingSelected, reason)
}
