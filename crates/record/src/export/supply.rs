//! A supply study as a table, one row per gap, in the order of time. A stretch without a gap has one row in which the last two columns
//! are empty; without an enforcer, `enforcer` and the budget are.

use super::table::{Column, Sink, Table};
use crate::RecordError;
use crate::run::Run;
use crate::supply::{SupplyRecord, SupplyTrial};

pub(super) const TABLE: Table = Table {
    of: "a study of supply",
    columns: &[
        Column::Integer("trial"),
        Column::Integer("round"),
        Column::Text("enforcer"),
        Column::Integer("budget_ns"),
        Column::Integer("period_ns"),
        // From 0.
        Column::Integer("stretch"),
        Column::Integer("stretch_begin_ns"),
        Column::Integer("stretch_end_ns"),
        Column::Integer("gap_begin_ns"),
        Column::Integer("gap_end_ns"),
    ],
    rows,
};

fn rows(run: &Run, row: &mut Sink<'_>) -> Result<(), RecordError> {
    let good = |trial: &&SupplyTrial| trial.failure.is_none();
    for trial in run.read::<SupplyRecord>()?.trials.iter().filter(good) {
        let held = trial.held.map_or_else(Default::default, |held| {
            [
                held.enforcer.name().to_owned(),
                held.budget_ns.to_string(),
                held.period_ns.to_string(),
            ]
        });
        let place = [trial.number.to_string(), trial.round.to_string()];
        for (number, (stretch, gaps)) in run.gaps(trial.number)?.stretches.iter().enumerate() {
            let within = [
                number.to_string(),
                stretch.begin_ns.to_string(),
                stretch.end_ns.to_string(),
            ];
            let mut gap = |ends: [String; 2]| row(&[&place[..], &held, &within, &ends].concat());
            if gaps.is_empty() {
                gap(Default::default())?;
            }
            for one in gaps {
                gap([one.begin_ns.to_string(), one.end_ns.to_string()])?;
            }
        }
    }
    Ok(())
}
