//! The tasks of a program beside the one that is compared, for terminal and page.

use crate::grid::{Table, lost};
use record::summary::{BesideSummary, RunSummary};
use text::units::time;

/// Their response times; empty where the program has no other task.
pub(crate) fn table(summary: &RunSummary) -> Table<&BesideSummary> {
    Table::new(
        "response time of the program's other tasks, in the same time",
        &summary.beside,
    )
    .head("cell", |row| row.label.as_str())
    .text("task", |row| row.task.as_str())
    .number("period", |row| time(row.period_ns as f64))
    .number("jobs", |row| row.executed)
    .quantile("median", |row| row.response.as_ref()?.quantile(0.5))
    .quantile("p99", |row| row.response.as_ref()?.quantile(0.99))
    .times("max", |row| Some(row.response.as_ref()?.max_ns as f64))
    .number("late", |row| lost(row.late))
    .number("skipped", |row| lost(row.skipped))
}
