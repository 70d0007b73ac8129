//! The tasks of a program beside the one that is compared.

use maud::html;
use text::words::clean;

use super::section::{Page, Section};
use super::tables::{breakable, region};
use crate::beside::columns;

pub(super) fn section(page: &Page) -> Option<Section> {
    let rows = &page.data.summary.beside;
    let compared = page.data.summary.task.as_deref();
    let columns = columns(rows);
    (!rows.is_empty()).then(|| Section {
        id: "beside",
        heading: "The program's other tasks".to_owned(),
        body: html! {
            p.quiet {
                @if let Some(task) = compared { "Everything else on this page is about the task " (clean(task)) ". " }
                "These were measured in the same time and are compared with nothing. A job is late if it ended more than a period after its release."
            }
            (region("Response time", html! {
                thead { tr {
                    th scope="col" { "cell" } th scope="col" { "task" }
                    @for (heading, _) in &columns { th.num scope="col" { (heading) } }
                } }
                tbody { @for row in rows { tr {
                    th scope="row" { (breakable(&clean(&row.label))) }
                    td { (clean(&row.task)) }
                    @for (_, text) in &columns { td.num { (text(row)) } }
                } } }
            }))
        },
    })
}
