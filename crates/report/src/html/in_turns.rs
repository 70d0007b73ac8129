//! One metric compared turn by turn, over all jobs and within the states that the machine was in.

use crate::conclusion::in_it;
use crate::grid::{Cell, Table, name, told};
use crate::in_turns::{against, compared, p99};
use record::summary::{CellSummary, InTurns, Metric, RunSummary};
use stats::Ratio;
use text::words::capital;

/// The table of a metric; empty if no cell took turns. It leaves out ratios to the run's baseline that the main table has.
pub(super) fn table(summary: &RunSummary, metric: Metric) -> Table<(&CellSummary, &InTurns)> {
    let rows = compared(summary, metric);
    let one = against(&rows);
    let states = rows.iter().any(|(_, turns)| turns.within.is_some());
    let ratios = metric != summary.primary || one != Some(summary.baseline.as_str());
    let title = format!(
        "{} in turns, against {}",
        capital(metric.title()),
        one.unwrap_or("its own each")
    );
    let within = |turns: &InTurns, ratio: fn(&stats::WithinStates) -> &Option<Ratio>| {
        let Some(within) = &turns.within else {
            return "no shared states".into();
        };
        match ratio(within) {
            Some(ratio) => told(ratio, turns.comparison.rounds),
            None => Cell::from("too few turns"),
        }
    };
    let shown = rows.into_iter().filter(|_| ratios || states);
    Table::new(title, shown)
        .detail()
        .head("cell", |(cell, _)| name(cell))
        .when(one.is_none(), |table| {
            table.text("against", |(_, turns)| turns.against.as_str())
        })
        .when(ratios, |table| {
            let median =
                |turns: &InTurns| told(&turns.comparison.ratio_of_medians, turns.comparison.rounds);
            table
                .text("median\nratio, 95 % interval", |(_, turns)| median(turns))
                .text("p99\nratio, 95 % interval", |(_, turns)| p99(turns))
        })
        .when(states, |table| {
            table
                .text("in the fast state\nratio of medians", |(_, turns)| {
                    within(turns, |w| &w.fast)
                })
                .text("in the slow state\nratio of medians", |(_, turns)| {
                    within(turns, |w| &w.slow)
                })
                .number(
                    "jobs in the slow state\nhere / there, 95 % interval",
                    |(_, turns)| {
                        let within = turns.within.as_ref()?;
                        let here = format!("{} /", in_it(&within.slow_share_of_other));
                        Some(Cell::from(here).below(in_it(&within.slow_share_of_baseline)))
                    },
                )
        })
}
