//! A task set: every task's responses against its deadline and against the bound of the analysis.

use super::section::{Page, Section};
use super::tables::{lost, name, region};
use super::time_cell;
use crate::reserved;
use crate::tasks::{beyond, median, normalised, rows};
use maud::html;
use text::units::Scale;
use text::words::clean;

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let rows = rows(summary);
    if rows.is_empty() {
        return None;
    }
    let scale = |of: &dyn Fn(usize) -> Option<i64>| {
        Scale::of((0..rows.len()).filter_map(|row| of(row).map(|ns| ns as f64)))
    };
    let wcet = scale(&|row| Some(rows[row].1.wcet_ns));
    let period = scale(&|row| Some(rows[row].1.period_ns));
    let worst = scale(&|row| rows[row].2.max(rows[row].1.bound_ns));
    let show =
        |scale: Scale, ns: Option<i64>| ns.map_or("-".to_owned(), |ns| scale.show(ns as f64));
    let table = html! {
        thead { tr {
            th scope="col" { "task" } th scope="col" { "class" } th.num scope="col" { "wcet" }
            th.num scope="col" { "period" } th.num scope="col" { "deadline" }
            th.num scope="col" { "longest response" } th.num scope="col" { "bound" br; span.below { "of the analysis" } }
            th.num scope="col" { "median" br; span.below { "by deadline" } }
            th.num scope="col" { "longest" br; span.below { "by deadline" } }
            th.num scope="col" { "late" } th.num scope="col" { "missed" }
        } }
        tbody { @for (cell, task, longest) in &rows { tr {
            th scope="row" { (name(cell)) @if task.competes { br; span.below { "competes" } } }
            td.whole { (clean(&cell.class)) }
            (time_cell(&wcet.show(task.wcet_ns as f64), ""))
            (time_cell(&period.show(task.period_ns as f64), ""))
            (time_cell(&period.show(task.deadline_ns as f64), ""))
            (time_cell(&show(worst, *longest), ""))
            (time_cell(&show(worst, task.bound_ns), if beyond(task, *longest) { "exceeded" } else { "" }))
            (time_cell(&normalised(median(cell), task.deadline_ns), ""))
            (time_cell(&normalised(*longest, task.deadline_ns), ""))
            (lost(task.late)) (lost(cell.missed))
        } } }
    };
    Some(Section {
        id: "tasks",
        heading: "The task set against its deadlines and its analysis".to_owned(),
        body: html! {
            p.quiet {
                "The bound is what the analysis gives for the same set: fixed priorities on a cpu of its own, a competitor above them; \
                 global EDF for deadline threads; the textbook's supply of its reservation for a cell that is held to one. It counts the \
                 requested wcet. Late jobs ended after their deadline; missed ones never ran because the next was released before they \
                 could begin."
            }
            (region("Tasks", table))
            @let held = reserved::rows(summary);
            @if !held.is_empty() {
                p.quiet { (reserved::EXPLAINED) }
                (region("Reservations", html! {
                    thead { tr { @for heading in reserved::HEADINGS { th scope="col" { (heading) } } } }
                    tbody { @for row in &held { tr {
                        @for (place, text) in row.texts().iter().enumerate() {
                            @if place == 0 { th scope="row" { (text) } } @else { td { (text) } }
                        }
                    } } }
                }))
            }
        },
    })
}
