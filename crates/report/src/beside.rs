//! The tasks of a program beside the one that is compared, for terminal and page.

use record::summary::{BesideSummary, RunSummary};
use text::grid::{Column, render};
use text::style::Style;
use text::units::{Scale, time};
use text::words::{clean, count, needs};

/// A value of some tasks in the unit of their column: a text for each.
type Shown<'a> = (&'static str, Box<dyn Fn(&BesideSummary) -> String + 'a>);

/// Its columns, but for the names of cell and task: a heading, and the text of each row.
pub(crate) fn columns(rows: &[BesideSummary]) -> Vec<Shown<'_>> {
    let quantile = |heading, probability| -> Shown<'_> {
        let of = move |row: &BesideSummary| row.response.as_ref()?.quantile(probability).cloned();
        let values = rows
            .iter()
            .filter_map(move |row| Some(of(row)?.value_ns? as f64));
        let scale = Scale::of(values);
        let text = move |row: &BesideSummary| match of(row) {
            Some(found) => {
                (found.value_ns).map_or_else(|| needs(&found), |ns| scale.show(ns as f64))
            }
            None => "-".to_owned(),
        };
        (heading, Box::new(text))
    };
    let longest = |row: &BesideSummary| Some(row.response.as_ref()?.max_ns as f64);
    let scale = Scale::of(rows.iter().filter_map(longest));
    let max = move |row: &BesideSummary| longest(row).map_or("-".to_owned(), |ns| scale.show(ns));
    vec![
        ("period", Box::new(|row| time(row.period_ns as f64))),
        ("jobs", Box::new(|row| count(row.executed))),
        quantile("median", 0.5),
        quantile("p99", 0.99),
        ("max", Box::new(max)),
        ("late", Box::new(|row| count(row.late))),
        ("missed", Box::new(|row| count(row.missed))),
    ]
}

/// The table after an empty line; empty where the program has no other task.
pub(crate) fn table(summary: &RunSummary, style: Style) -> String {
    let rows = &summary.beside;
    if rows.is_empty() {
        return String::new();
    }
    let names = |of: fn(&BesideSummary) -> &str| rows.iter().map(|row| clean(of(row))).collect();
    let mut grid = vec![
        Column::plain("cell", names(|row| &row.label)),
        Column::plain("task", names(|row| &row.task)),
    ];
    for (heading, text) in columns(rows) {
        grid.push(Column::plain(heading, rows.iter().map(text).collect()).right());
    }
    format!(
        "\nresponse time of the program's other tasks, in the same time\n\n{}\n",
        render(&grid, style)
    )
}
