//! The tasks of a program beside the one that is compared.

use maud::html;
use text::words::clean;

use super::section::{Page, Section};

pub(super) fn section(page: &Page) -> Option<Section> {
    let table = crate::beside::table(&page.data.summary);
    let compared = page.data.summary.task.as_deref();
    (!table.is_empty()).then(|| Section {
        id: "beside",
        heading: "The program's other tasks".to_owned(),
        body: html! {
            p.quiet {
                @if let Some(task) = compared { "Everything else on this page is about the task " (clean(task)) ". " }
                "These were measured in the same time and are compared with nothing. A job is late if it ended more than a period after its release."
            }
            (table)
        },
    })
}
