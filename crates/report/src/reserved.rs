//! Reservations of a task set that was run, for terminal and page: the analysis of each beside its measurements.

use model::Enforcer;
use record::summary::{CellSummary, HeldSummary, RunSummary, TaskSummary};

use crate::grid::Table;
use crate::tasks::{normalised, rows as threads};
use text::units::{percent, time};
use text::words::{count, plural};

/// Explains the table on a page.
pub(crate) const EXPLAINED: &str = "Each cell was held to a budget in every period. By the textbook, all deadlines hold if the periodic \
    resource model of this budget supplies enough and the budgets of a cpu fit in their periods; as supplied, if the minimum supply of \
    the enforcer does, with its lateness and cost, as mission admission counts it. What is not shown to hold need not fail.";

/// A cell of a trial, with its analysis and measurements.
pub(crate) struct Row<'a> {
    trial: &'a str,
    cell: &'a str,
    held: &'a HeldSummary,
    textbook: bool,
    certain: bool,
    worst: Option<(i64, i64)>,
    lost: u64,
    jobs: u64,
}

/// Every cell that was held, in the order of the run.
fn rows(summary: &RunSummary) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (cell, task, longest) in threads(summary) {
        let Some(held) = &task.held else { continue };
        let known = (rows.iter_mut()).find(|row| row.trial == cell.trial && row.cell == task.cell);
        match known {
            Some(row) => row.add(cell, task, held, longest),
            None => {
                let mut row = Row {
                    trial: &cell.trial,
                    cell: &task.cell,
                    held,
                    textbook: true,
                    certain: true,
                    worst: None,
                    lost: 0,
                    jobs: 0,
                };
                row.add(cell, task, held, longest);
                rows.push(row);
            }
        }
    }
    rows
}

impl Row<'_> {
    fn add(
        &mut self,
        cell: &CellSummary,
        task: &TaskSummary,
        held: &HeldSummary,
        longest: Option<i64>,
    ) {
        let within = |bound: Option<i64>| bound.is_some_and(|bound| bound <= task.deadline_ns);
        self.textbook &= within(task.bound_ns);
        self.certain &= within(held.certain_ns);
        self.lost += task.late + cell.skipped;
        self.jobs += cell.planned;
        let found = longest.map(|longest| (longest, task.deadline_ns));
        let share = |(response, deadline): (i64, i64)| response as f64 / deadline.max(1) as f64;
        self.worst = match (self.worst, found) {
            (Some(known), Some(found)) if share(found) <= share(known) => Some(known),
            (known, found) => found.or(known),
        };
    }

    fn name(&self) -> String {
        format!("{}/{}", self.trial, self.cell)
    }

    fn budget(&self) -> String {
        let held = &self.held.by.held;
        let least = if self.held.by.given { "" } else { " (least)" };
        let [budget, period] = [held.budget_ns, held.period_ns].map(|ns| time(ns as f64));
        format!("{budget}/{period}{least}")
    }
}

/// The table of cells that were held; empty if none was.
pub(crate) fn table(summary: &RunSummary) -> Table<Row<'_>> {
    let said = |shown: bool| if shown { "holds" } else { "not shown" };
    let most = |ns: Option<u64>| ns.map(|ns| time(ns as f64));
    Table::new(
        "the reservations: what the analysis says, and what was measured",
        rows(summary),
    )
    .head("cell", |row| row.name())
    .text("held by", |row| row.held.by.held.enforcer.name())
    .text("budget/period", Row::budget)
    .text("of a cpu", |row| {
        let held = &row.held.by.held;
        percent(held.budget_ns as f64 / held.period_ns.max(1) as f64)
    })
    .text("cpu", |row| match row.held.by.held.enforcer {
        Enforcer::Deadline => "any".to_owned(),
        _ => row.held.cpu.to_string(),
    })
    .text("by the textbook", |row| said(row.textbook))
    .text("as supplied", |row| said(row.certain))
    .text("longest/deadline", |row| {
        let deadline = row.worst.map_or(1, |(_, deadline)| deadline);
        normalised(row.worst.map(|(response, _)| response), deadline)
    })
    .text("lost jobs", |row| {
        format!("{} of {}", count(row.lost), count(row.jobs))
    })
    .text("latest look", |row| most(row.held.latest_look_ns))
    .text("most overrun", |row| most(row.held.most_overrun_ns))
}

/// Where analysis and measurement disagree, as sentences.
pub(crate) fn findings(summary: &RunSummary) -> Vec<String> {
    let apart = |row: &Row<'_>| {
        let by = match (row.certain, row.textbook, row.lost) {
            (_, _, 0) => return None,
            (true, ..) => "by the minimum supply of its enforcer",
            (false, true, _) => "by the textbook, but not by the minimum supply of its enforcer",
            (false, false, _) => return None,
        };
        let (name, budget) = (row.name(), row.budget());
        let enforcer = row.held.by.held.enforcer.name();
        Some(format!(
            "{name}, held by {enforcer} to {budget}: {} of {} missed their deadlines, which hold {by}.",
            count(row.lost),
            plural(row.jobs, "job")
        ))
    };
    rows(summary).iter().filter_map(apart).collect()
}
