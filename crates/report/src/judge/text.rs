//! Verdicts for a terminal, and the words that the page shares with it.

use stats::Share;
use study::judge::{CellVerdict, Judged, Outcome, Unit};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::Scale;
use text::words::{self, clean, count, grouped, part, ratio};

/// One line for each threshold and cell. Ends with a line break.
pub fn judged_table(judged: &Judged, style: Style) -> String {
    let rows: Vec<(&str, &CellVerdict)> = judged
        .thresholds
        .iter()
        .flat_map(|t| t.cells.iter().map(|cell| (t.threshold.as_str(), cell)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let verdict = |cell: &CellVerdict| {
        let tone = match cell.verdict {
            Outcome::Met => Tone::Good,
            Outcome::Missed => Tone::Bad,
            Outcome::Undecided | Outcome::NotApplicable => Tone::Caution,
        };
        Text(cell.verdict.to_string(), tone)
    };
    let columns = [
        Column::plain("fails if", rows.iter().map(|r| clean(r.0)).collect()),
        Column::plain("cell", rows.iter().map(|r| clean(&r.1.cell)).collect()),
        Column::plain(
            "measured (95% interval)",
            rows.iter().map(|r| measured(r.1)).collect(),
        ),
        Column::new("verdict", rows.iter().map(|r| verdict(r.1)).collect()),
        Column::plain("", rows.iter().map(|r| clean(&r.1.reason)).collect()),
    ];
    let mut out = String::from("thresholds\n\n");
    out += &render(&columns, style);
    if rows.iter().any(|r| r.1.unit == Unit::Ratio) {
        let cautions = judged.cautions.iter();
        for sentence in std::iter::once(&format!("ratios are to {}", judged.baseline))
            .chain(cautions.map(|c| c as &String))
        {
            out += &style.wrap(&clean(sentence), 4);
            out.push('\n');
        }
    }
    out
}

/// `98.1 us (97.0..99.2)`.
pub(super) fn measured(cell: &CellVerdict) -> String {
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
