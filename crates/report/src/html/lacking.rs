//! What failed, what was not measured, and what the machine lacks, each with its fix.

use super::section::{Page, Section};
use maud::{Markup, html};
use model::Requirement;
use record::summary::NotMeasured;
use text::words::{clean, sentence};

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let nothing =
        summary.failures.is_empty() && summary.not_measured.is_empty() && summary.unmet.is_empty();
    Some(Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every trial was measured and every requirement was met." } }
            (failure_list(&summary.failures))
            (not_measured_table("trial", &summary.not_measured))
            (unmet_table(&summary.unmet))
        },
    })
}

/// What failed, one sentence each; empty if nothing did.
pub(crate) fn failure_list(failures: &[String]) -> Markup {
    html! {
        @if !failures.is_empty() {
            h3 { "Failures" }
            ul.findings { @for failure in failures { li { (sentence(&clean(failure))) } } }
        }
    }
}

/// What was not measured, each a `what`; empty if everything was.
pub(crate) fn not_measured_table(what: &str, absent: &[NotMeasured]) -> Markup {
    let rows: Vec<[&str; 3]> = (absent.iter())
        .map(|n| [n.trial.as_str(), n.reason.as_str(), n.fix.as_str()])
        .collect();
    html! { @if !rows.is_empty() { (table("Not measured", [what, "reason", "fix"], &rows)) } }
}

/// The requirements that the machine did not meet; empty if there are none.
pub(crate) fn unmet_table(unmet: &[Requirement]) -> Markup {
    let rows: Vec<[&str; 3]> = (unmet.iter())
        .map(|r| {
            [
                r.what.as_str(),
                r.reason.as_str(),
                r.fix.as_deref().unwrap_or(""),
            ]
        })
        .collect();
    html! { @if !rows.is_empty() { (table("Requirements not met", ["what", "reason", "fix"], &rows)) } }
}

/// Things that are not there: name, reason, fix.
pub(crate) fn table(caption: &str, headings: [&str; 3], rows: &[[&str; 3]]) -> Markup {
    html! {
        div.scroll {
            table.stack {
                caption { (caption) }
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody {
                    @for [what, reason, fix] in rows {
                        tr {
                            th scope="row" { (clean(what)) }
                            td data-label=(headings[1]) { (clean(reason)) }
                            td data-label=(headings[2]) { @if fix.is_empty() { "-" } @else { code { (clean(fix)) } } }
                        }
                    }
                }
            }
        }
    }
}
