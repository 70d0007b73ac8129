//! A task set: every task's responses against its deadline and against the bound of the analysis.

use super::section::{Page, Section};
use crate::{reserved, tasks};
use maud::html;

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let table = tasks::table(summary);
    let held = reserved::table(summary);
    (!table.is_empty()).then(|| Section {
        id: "tasks",
        heading: "The task set against its deadlines and its analysis".to_owned(),
        body: html! {
            p.quiet {
                "The bound is what the analysis gives for the same set: fixed priorities on a cpu of its own, a competitor above them; \
                 global EDF for deadline threads; the textbook's supply of its reservation for a cell that is held to one. It counts the \
                 requested wcet. Late jobs ended after their deadline; skipped ones never ran because the next was released before they \
                 could begin."
            }
            (table)
            @if !held.is_empty() { p.quiet { (reserved::EXPLAINED) } }
            (held)
        },
    })
}
