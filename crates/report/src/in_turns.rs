//! Ratios of what the main table does not compare, turn by turn: of a run whose trials took turns, those of wake-up latency and
//! response time.

use record::summary::{CellSummary, InTurns, Metric, RunSummary};
use stats::Verdict;

use crate::style::{Style, Tone};
use crate::table::{Column, Text, render_parts};
use crate::words::{clean, comparison, judged};

/// Cells that took turns with another, each with what was compared of this metric.
pub(crate) fn compared(summary: &RunSummary, metric: Metric) -> Vec<(&CellSummary, &InTurns)> {
    let of = |cell: &'_ CellSummary| cell.in_turns.iter().position(|t| t.metric == metric);
    let cells = summary.cells.iter();
    let rows = cells.filter_map(|cell| Some((cell, &cell.in_turns[of(cell)?])));
    rows.collect()
}

/// The trial that all of them are compared with; `None` if each has its own.
pub(crate) fn against<'a>(rows: &[(&CellSummary, &'a InTurns)]) -> Option<&'a str> {
    let first = rows.first()?.1.against.as_str();
    (rows.iter().all(|(_, turns)| turns.against == first)).then_some(first)
}

/// The table behind an empty line, one column for each metric but the primary one; empty where nothing took turns.
pub(crate) fn table(summary: &RunSummary, style: Style) -> String {
    let metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|&metric| metric != summary.primary && !compared(summary, metric).is_empty())
        .collect();
    let of = |cell: &'_ CellSummary, metric| cell.in_turns.iter().position(|t| t.metric == metric);
    let cells: Vec<&CellSummary> = (summary.cells.iter())
        .filter(|cell| metrics.iter().any(|&metric| of(cell, metric).is_some()))
        .collect();
    if cells.is_empty() {
        return String::new();
    }
    let mut columns = vec![Column::plain(
        "cell",
        cells.iter().map(|cell| clean(&cell.label)).collect(),
    )];
    let rows: Vec<(&CellSummary, &InTurns)> = (metrics.iter())
        .flat_map(|&metric| compared(summary, metric))
        .collect();
    let title = match against(&rows) {
        Some(one) => format!(" against {}", clean(one)),
        None => {
            let own = |cell: &&CellSummary| clean(&cell.in_turns[0].against);
            columns.push(Column::plain("against", cells.iter().map(own).collect()));
            ", each against its own".to_owned()
        }
    };
    for &metric in &metrics {
        let text = |cell: &&CellSummary| match of(cell, metric) {
            Some(place) => {
                let compared = &cell.in_turns[place].comparison;
                let tone = match judged(&compared.ratio_of_medians, compared.rounds) {
                    Verdict::Larger => Tone::Caution,
                    Verdict::Smaller => Tone::Good,
                    Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
                };
                Text(comparison(compared), tone)
            }
            None => Text("not comparable".to_owned(), Tone::Plain),
        };
        columns.push(Column::new(
            metric.title(),
            cells.iter().map(text).collect(),
        ));
    }
    format!(
        "\nthe same jobs in turns{title} (median, 95% interval)\n\n{}\n",
        render_parts(&columns, style)
    )
}
