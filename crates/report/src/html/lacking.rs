//! What failed, what was not measured, and what the machine lacks, each with its mend.

use super::{Page, Section};
use crate::words::{clean, sentence};
use maud::{Markup, html};

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = page.data.summary;
    let nothing =
        summary.failures.is_empty() && summary.not_measured.is_empty() && summary.unmet.is_empty();
    let absent = summary.not_measured.iter();
    let absent: Vec<[&str; 3]> = absent
        .map(|n| [n.trial.as_str(), n.reason.as_str(), n.mend.as_str()])
        .collect();
    let unmet = summary.unmet.iter();
    let unmet: Vec<[&str; 3]> = unmet
        .map(|r| {
            [
                r.what.as_str(),
                r.reason.as_str(),
                r.mend.as_deref().unwrap_or(""),
            ]
        })
        .collect();
    Some(Section {
        id: "lacking",
        heading: "What is lacking".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every trial was measured and every requirement was met." } }
            @if !summary.failures.is_empty() {
                h3 { "Failures" }
                ul.findings { @for failure in &summary.failures { li { (sentence(&clean(failure))) } } }
            }
            @if !absent.is_empty() { (table("Not measured", ["trial", "reason", "mend"], &absent)) }
            @if !unmet.is_empty() { (table("Requirements not met", ["what", "reason", "mend"], &unmet)) }
        },
    })
}

/// Things that are not there: name, reason, mend.
pub(crate) fn table(caption: &str, headings: [&str; 3], rows: &[[&str; 3]]) -> Markup {
    html! {
        div.scroll {
            table.stack {
                caption { (caption) }
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody {
                    @for [what, reason, mend] in rows {
                        tr {
                            th scope="row" { (clean(what)) }
                            td data-label=(headings[1]) { (clean(reason)) }
                            td data-label=(headings[2]) { @if mend.is_empty() { "-" } @else { code { (clean(mend)) } } }
                        }
                    }
                }
            }
        }
    }
}
