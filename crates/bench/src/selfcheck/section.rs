//! Input and findings of a part of the self-check.

use std::path::PathBuf;

use model::LoadKind;
use serde::Serialize;

/// A part's settings.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Fewer repetitions: shows that the part works, but gives no figures to rely on.
    pub quick: bool,
    /// Cpu for single cells.
    pub cpu: u32,
    /// SCHED_FIFO priority.
    pub priority: u8,
    /// A directory on the disk that loads work on.
    pub out: PathBuf,
    /// The loads to look at; empty: every one.
    pub loads: Vec<LoadKind>,
}

/// One figure and its goal.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The quantity.
    pub what: String,
    /// The figure in words, with its unit and interval.
    pub figure: String,
    /// The goal; `None`: there is none.
    pub goal: Option<String>,
    /// Whether it holds; `None` also if the interval encloses the goal and so decides nothing.
    pub holds: Option<bool>,
}

/// A part's findings.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Name of the part.
    pub part: &'static str,
    /// The comparison, how often, and how.
    pub method: String,
    /// Lines of a table, header first; cells of a line in order.
    pub table: Vec<Vec<String>>,
    /// The figures that have goals, and those worth a sentence.
    pub findings: Vec<Finding>,
    /// Everything measured, for machines.
    pub data: serde_json::Value,
    /// Why the part could not be measured, or only in part.
    pub unmet: Vec<String>,
}

impl Finding {
    pub(super) fn goal(
        what: impl Into<String>,
        figure: impl Into<String>,
        goal: impl Into<String>,
        holds: bool,
    ) -> Finding {
        Finding {
            what: what.into(),
            figure: figure.into(),
            goal: Some(goal.into()),
            holds: Some(holds),
        }
    }

    /// A ratio that should be at most `most`, judged by its whole interval.
    pub(super) fn ratio_goal(what: impl Into<String>, found: &stats::Ratio, most: f64) -> Finding {
        let holds = match (found.low, found.high) {
            (_, Some(high)) if high <= most => Some(true),
            (Some(low), _) if low > most => Some(false),
            _ => None,
        };
        Finding {
            what: what.into(),
            figure: ratio(found),
            goal: Some(format!("at most {most:.2}")),
            holds,
        }
    }

    pub(super) fn fact(what: impl Into<String>, figure: impl Into<String>) -> Finding {
        Finding {
            what: what.into(),
            figure: figure.into(),
            goal: None,
            holds: None,
        }
    }
}

/// Microseconds with one decimal, for tables.
pub(super) fn us(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

/// Milliseconds with two decimals, for tables.
pub(super) fn ms(ns: i64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

/// `1.02 (0.99..1.05)`.
pub(super) fn ratio(ratio: &stats::Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.3} ({low:.3}..{high:.3})", ratio.value),
        _ => format!("{:.3} (no interval)", ratio.value),
    }
}
