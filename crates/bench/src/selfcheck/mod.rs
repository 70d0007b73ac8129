//! timecell measured against the field: the evidence behind the README's claims, for anyone to rerun.
//!
//! Each part compares interleaved, in one run on one machine, and says of each goal whether it was met.

#![expect(
    clippy::disallowed_methods,
    reason = "its parts write to a directory of their own in shared memory; the findings are written by who asked"
)]

mod barrier;
mod crowd;
mod loads;
mod memory;
mod probe_process;
mod skew;
mod startup;
mod wakeup;

use std::path::PathBuf;

use model::LoadKind;
use serde::Serialize;

use crate::BenchError;

/// The question that it answers.
pub(crate) const SELF_QUESTION: &str =
    "How does timecell compare with cyclictest, polling barriers and other launchers?";

/// What a part needs to know.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Fewer repetitions: shows that the part works, not what it is worth.
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

/// One figure, and the goal it is held against.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What was measured.
    pub what: String,
    /// The figure in words, with its unit and interval.
    pub figure: String,
    /// What it should be; `None`: no goal was set.
    pub goal: Option<String>,
    /// Whether it is; `None` also where the interval encloses the goal, so that neither can be said.
    pub met: Option<bool>,
}

/// What a part found.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Name of the part.
    pub part: &'static str,
    /// What was compared, how often, and how.
    pub method: String,
    /// Lines of a table, header first; cells of a line in order.
    pub table: Vec<Vec<String>>,
    /// The figures that have goals, and those worth a sentence.
    pub findings: Vec<Finding>,
    /// Everything measured, for machines.
    pub data: serde_json::Value,
    /// Why the part could not be measured, or not wholly.
    pub unmet: Vec<String>,
}

type Part = fn(Setup, &mut dyn FnMut(&str)) -> Result<Section, BenchError>;

/// The parts by name. Adding one: a file here and a line.
pub const PARTS: [(&str, Part); 6] = [
    ("wakeup", wakeup::run),
    ("barrier", barrier::run),
    ("startup", startup::run),
    ("memory", memory::run),
    ("loads", loads::run),
    ("crowd", crowd::run),
];

impl Finding {
    fn goal(
        what: impl Into<String>,
        figure: impl Into<String>,
        goal: impl Into<String>,
        met: bool,
    ) -> Finding {
        Finding {
            what: what.into(),
            figure: figure.into(),
            goal: Some(goal.into()),
            met: Some(met),
        }
    }

    /// A ratio that should be at most `most`, judged by its whole interval.
    fn ratio_goal(what: impl Into<String>, found: &stats::Ratio, most: f64) -> Finding {
        let met = match (found.low, found.high) {
            (_, Some(high)) if high <= most => Some(true),
            (Some(low), _) if low > most => Some(false),
            _ => None,
        };
        Finding {
            what: what.into(),
            figure: ratio(found),
            goal: Some(format!("at most {most:.2}")),
            met,
        }
    }

    fn fact(what: impl Into<String>, figure: impl Into<String>) -> Finding {
        Finding {
            what: what.into(),
            figure: figure.into(),
            goal: None,
            met: None,
        }
    }
}

/// Microseconds with one decimal, for tables.
fn us(ns: i64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

/// Milliseconds with two decimals, for tables.
fn ms(ns: i64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

/// `1.02 (0.99..1.05)`.
fn ratio(ratio: &stats::Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.3} ({low:.3}..{high:.3})", ratio.value),
        _ => format!("{:.3} (no interval)", ratio.value),
    }
}
