//! Verdicts for a terminal, and the words that the page shares with it.

use crate::grid::{Cell, Table};
use stats::Share;
use study::judge::{CellVerdict, Judged, Outcome, Unit};
use text::style::{Style, Tone};
use text::units::Scale;
use text::words::{self, count, grouped, part, ratio};

/// One line for each threshold and cell. Ends with a line break.
pub fn judged_table(judged: &Judged, style: Style) -> String {
    let mut out = table(judged).block(style);
    // No empty line between the table and the sentences.
    out.pop();
    if ratios(judged) {
        out += &style.sentences(&[format!("ratios are to {}", judged.baseline)]);
        out += &style.sentences(&judged.cautions);
    }
    out
}

/// Whether some of them is a ratio.
pub(super) fn ratios(judged: &Judged) -> bool {
    let mut cells = judged.thresholds.iter().flat_map(|t| &t.cells);
    cells.any(|cell| cell.unit == Unit::Ratio)
}

/// A row for each threshold and cell.
pub(super) fn table(judged: &Judged) -> Table<(&str, &CellVerdict)> {
    let rows = (judged.thresholds.iter())
        .flat_map(|t| t.cells.iter().map(|cell| (t.threshold.as_str(), cell)));
    Table::new("thresholds", rows)
        .head("fails if", |row| Cell::code(row.0))
        .text("cell", |(_, cell)| cell.cell.as_str())
        .text("measured (95 % interval)", |(_, cell)| measured(cell))
        .text("verdict", |(_, cell)| {
            let tone = match cell.verdict {
                Outcome::Passes => Tone::Good,
                Outcome::Fails => Tone::Bad,
                Outcome::Undecided | Outcome::NotApplicable => Tone::Caution,
            };
            Cell::new(cell.verdict.to_string(), tone)
        })
        .text("remark", |(_, cell)| cell.reason.as_str())
}

/// `98.1 us (97.0..99.2)`.
fn measured(cell: &CellVerdict) -> String {
    match cell.value {
        Some(value) => shown(value, cell.low.zip(cell.high), cell.unit),
        None => "-".to_owned(),
    }
}

/// A value with its unit, and its interval where it has one.
pub(crate) fn shown(value: f64, interval: Option<(f64, f64)>, unit: Unit) -> String {
    let ends = interval.map(|(low, high)| [low, high]);
    match unit {
        Unit::Ns => {
            let scale = Scale::of(ends.into_iter().flatten().chain([value]));
            match ends.map(|ends| scale.with_ends(value, ends)) {
                Some((value, ends)) => format!("{value} ({ends})"),
                None => scale.show(value),
            }
        }
        Unit::Ratio => {
            let interval = ends.map(|[low, high]| format!(" ({}..{})", ratio(low), ratio(high)));
            format!("{}x{}", ratio(value), interval.unwrap_or_default())
        }
        Unit::Count => count(value as u64),
        Unit::Share => {
            let interval = ends.map(|[low, high]| {
                let share = Share {
                    value,
                    low: Some(low),
                    high: Some(high),
                };
                words::ends(&share).map_or_else(String::new, |ends| format!(" ({ends})"))
            });
            part(value) + &interval.unwrap_or_default()
        }
        Unit::Bytes => {
            let mb = |bytes: f64| grouped(format!("{:.3}", bytes / 1e6));
            let interval = ends.map(|[low, high]| format!(" ({}..{})", mb(low), mb(high)));
            format!("{} MB{}", mb(value), interval.unwrap_or_default())
        }
    }
}
