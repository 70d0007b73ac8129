//! Ratios turn by turn of what the main table does not compare: of a run whose trials took turns, those of p99, and those of wake-up
//! latency and response time.

use record::summary::{CellSummary, InTurns, Metric, RunSummary};
use stats::{Ratio, Verdict};

use text::grid::{Column, Text, render_parts};
use text::style::{Style, Tone};
use text::words::{clean, comparison, count, fewer_rounds_of_p99, judged, times, verdict};

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

/// The table after an empty line: p99 of the primary metric, and one column for the medians of each other one; empty where nothing took
/// turns.
pub(crate) fn table(summary: &RunSummary, style: Style) -> String {
    let others = (Metric::ALL.into_iter()).filter(|&metric| metric != summary.primary);
    let metrics: Vec<Metric> = [summary.primary]
        .into_iter()
        .chain(others)
        .filter(|&metric| !compared(summary, metric).is_empty())
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
            Some(place) if metric == summary.primary => p99(&cell.in_turns[place]),
            Some(place) => {
                let compared = &cell.in_turns[place].comparison;
                let medians = &compared.ratio_of_medians;
                Text(comparison(compared), tone(medians, compared.rounds))
            }
            None => Text("not comparable".to_owned(), Tone::Plain),
        };
        let of = match metric == summary.primary {
            true => "p99",
            false => "median",
        };
        columns.push(Column::new(
            &format!("{of} of {}", metric.title()),
            cells.iter().map(text).collect(),
        ));
    }
    format!(
        "\nthe same jobs in turns{title} (ratio, 95% interval)\n\n{}\n",
        render_parts(&columns, style)
    )
}

fn p99(turns: &InTurns) -> Text {
    let ratio = turns.comparison.ratio_of_p99.as_ref();
    let tone = ratio.map_or(Tone::Plain, |ratio| {
        tone(ratio, turns.comparison.rounds_of_p99)
    });
    Text(p99_text(turns), tone)
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

fn tone(ratio: &Ratio, rounds: u32) -> Tone {
    match judged(ratio, rounds) {
        Verdict::Larger => Tone::Caution,
        Verdict::Smaller => Tone::Good,
        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
    }
}
