//! Ratios turn by turn beyond the main table: of a run whose trials took turns, those of p99, and those of wake-up latency and
//! response time.

use record::summary::{CellSummary, InTurns, Metric, RunSummary};

use crate::grid::{Cell, Table, told, tone};
use text::words::{count, fewer_rounds_of_p99, times, verdict};

/// Cells that took turns with another, each with its comparison of this metric.
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

/// The terminal's table: p99 of the primary metric, and one column for the medians of each other one; empty where nothing took turns.
pub(crate) fn table(summary: &RunSummary) -> Table<&CellSummary> {
    let others = (Metric::ALL.into_iter()).filter(|&metric| metric != summary.primary);
    let metrics: Vec<Metric> = [summary.primary]
        .into_iter()
        .chain(others)
        .filter(|&metric| !compared(summary, metric).is_empty())
        .collect();
    let of = |cell: &&'_ CellSummary, metric| cell.in_turns.iter().position(|t| t.metric == metric);
    let cells = (summary.cells.iter())
        .filter(|cell| metrics.iter().any(|&metric| of(cell, metric).is_some()));
    let rows: Vec<(&CellSummary, &InTurns)> = (metrics.iter())
        .flat_map(|&metric| compared(summary, metric))
        .collect();
    let one = against(&rows);
    let title = one.map_or(", each against its own".to_owned(), |one| {
        format!(" against {one}")
    });
    let table = Table::new(
        format!("the same jobs in turns{title} (ratio, 95 % interval)"),
        cells,
    )
    .head("cell", |cell| cell.label.as_str())
    .when(one.is_none(), |table| {
        table.text("against", |cell| cell.in_turns[0].against.as_str())
    });
    metrics.iter().fold(table, |table, &metric| {
        let primary = metric == summary.primary;
        let what = if primary { "p99" } else { "median" };
        table.text(&format!("{what} of {}", metric.title()), |cell| {
            match of(cell, metric).map(|place| &cell.in_turns[place]) {
                Some(turns) if primary => p99(turns),
                Some(turns) => told(&turns.comparison.ratio_of_medians, turns.comparison.rounds),
                None => "not comparable".into(),
            }
        })
    })
}

/// [`p99_text`] in its colour.
pub(crate) fn p99(turns: &InTurns) -> Cell {
    let compared = &turns.comparison;
    let tone = (compared.ratio_of_p99.as_ref()).map(|ratio| tone(ratio, compared.rounds_of_p99));
    Cell::new(p99_text(turns), tone.unwrap_or_default())
}

/// The ratio of p99 with its verdict, or the number of jobs that it needs.
pub(crate) fn p99_text(turns: &InTurns) -> String {
    let compared = &turns.comparison;
    match &compared.ratio_of_p99 {
        Some(ratio) => {
            let rounds = compared.rounds_of_p99;
            let text = times(ratio, rounds) + verdict(ratio, rounds);
            text + &fewer_rounds_of_p99(compared)
        }
        None => p99_needs(turns),
    }
}

/// The text in place of a ratio of p99: the `--jobs` that it needs.
pub(crate) fn p99_needs(turns: &InTurns) -> String {
    match turns.jobs_for_p99 {
        Some(jobs) => format!("needs {} jobs a round", count(jobs.into())),
        None => "too few jobs in some rounds".to_owned(),
    }
}
