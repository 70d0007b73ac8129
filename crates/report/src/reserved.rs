//! Reservations of a task set that was run, for terminal and page: what the analysis says of each beside what was measured in it.

use model::Enforcer;
use record::summary::{CellSummary, HeldSummary, RunSummary, TaskSummary};

use crate::tasks::{normalised, rows as threads};
use text::grid::{Column, render};
use text::style::Style;
use text::units::time;
use text::words::{clean, count, plural};

/// Explains the table on a page.
pub(crate) const EXPLAINED: &str = "Each cell was held to a budget in every period. By the textbook, all deadlines hold if the periodic \
    resource model of this budget supplies enough and the budgets of a cpu fit in their periods; as supplied, if the minimum supply of \
    the enforcer does, with its lateness and cost, as mission admission counts it. What is not shown to hold need not fail.";

/// The headings of the table.
pub(crate) const HEADINGS: [&str; 11] = [
    "cell",
    "held by",
    "budget/period",
    "of a cpu",
    "cpu",
    "by the textbook",
    "as supplied",
    "longest/deadline",
    "lost jobs",
    "latest look",
    "most overrun",
];

/// A cell of a trial, with what analysis says and what was measured.
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
pub(crate) fn rows(summary: &RunSummary) -> Vec<Row<'_>> {
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
        self.lost += task.late + cell.missed;
        self.jobs += cell.planned;
        let found = longest.map(|longest| (longest, task.deadline_ns));
        let share = |(response, deadline): (i64, i64)| response as f64 / deadline.max(1) as f64;
        self.worst = match (self.worst, found) {
            (Some(known), Some(found)) if share(found) <= share(known) => Some(known),
            (known, found) => found.or(known),
        };
    }

    /// Its texts, in the order of [`HEADINGS`].
    pub(crate) fn texts(&self) -> [String; 11] {
        let held = &self.held.by.held;
        let said = |shown: bool| if shown { "holds" } else { "not shown" }.to_owned();
        let most = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| time(ns as f64));
        let least = if self.held.by.given { "" } else { " (least)" };
        let worst = self.worst.map(|(response, _)| response);
        [
            clean(&format!("{}/{}", self.trial, self.cell)),
            held.enforcer.name().to_owned(),
            format!(
                "{}/{}{least}",
                time(held.budget_ns as f64),
                time(held.period_ns as f64)
            ),
            format!(
                "{:.1} %",
                held.budget_ns as f64 * 100.0 / held.period_ns.max(1) as f64
            ),
            match held.enforcer {
                Enforcer::Deadline => "any".to_owned(),
                _ => self.held.cpu.to_string(),
            },
            said(self.textbook),
            said(self.certain),
            normalised(worst, self.worst.map_or(1, |(_, deadline)| deadline)),
            format!("{} of {}", count(self.lost), count(self.jobs)),
            most(self.held.latest_look_ns),
            most(self.held.most_overrun_ns),
        ]
    }
}

/// The table of cells that were held, for a terminal; empty if none was.
pub(crate) fn table(summary: &RunSummary, style: Style) -> String {
    let rows = rows(summary);
    if rows.is_empty() {
        return String::new();
    }
    let texts: Vec<[String; 11]> = rows.iter().map(Row::texts).collect();
    let columns: Vec<Column> = (HEADINGS.iter().enumerate())
        .map(|(at, heading)| {
            Column::plain(heading, texts.iter().map(|row| row[at].clone()).collect())
        })
        .collect();
    format!(
        "\nthe reservations: what the analysis says, and what was measured\n\n{}\n",
        render(&columns, style)
    )
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
        let [name, enforcer, budget, ..] = row.texts();
        Some(format!(
            "{name}, held by {enforcer} to {budget}: {} of {} missed their deadlines, which hold {by}.",
            count(row.lost),
            plural(row.jobs, "job")
        ))
    };
    rows(summary).iter().filter_map(apart).collect()
}
