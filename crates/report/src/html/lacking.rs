//! Failures, absent measurements, and unmet requirements, each with its fix.

use super::found::list;
use super::section::{Page, Section};
use crate::grid::{Cell, Table};
use maud::{Markup, html};
use model::Requirement;
use record::summary::NotMeasured;

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let lacks: Lacks = (&summary.failures, &summary.not_measured, &summary.unmet);
    Some(missing("trial", lacks, &html! {}))
}

/// Failures, absent measurements, and unmet requirements.
pub(crate) type Lacks<'a> = (&'a [String], &'a [NotMeasured], &'a [Requirement]);

/// The section on these; `what` names a measurement, such as `trial`, and `more` stands among them.
pub(crate) fn missing(what: &str, (failures, absent, unmet): Lacks, more: &Markup) -> Section {
    let nothing = failures.is_empty() && absent.is_empty() && unmet.is_empty();
    // A reason is given once.
    let said = |need: &&Requirement| absent.iter().any(|n| n.reason == need.reason);
    let unmet = unmet.iter().filter(|need| !said(need));
    let unmet = unmet.map(|r| {
        (
            r.what.as_str(),
            r.reason.as_str(),
            r.fix.as_deref().unwrap_or(""),
        )
    });
    Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every " (what) " was measured and every requirement was met." } }
            @if !failures.is_empty() {
                h3 { "Failures" }
                (list(failures))
            }
            (more)
            (not_measured("Not measured", what, absent))
            (absences("Requirements not met", ["what", "reason"], unmet))
        },
    }
}

/// The absent measurements, each with its reason and its fix; `what` is the heading of their names.
pub(crate) fn not_measured(caption: &str, what: &str, absent: &[NotMeasured]) -> Markup {
    let rows = absent
        .iter()
        .map(|n| (n.trial.as_str(), n.reason.as_str(), n.fix.as_str()));
    absences(caption, [what, "reason"], rows)
}

/// Things that are not there: name, reason, fix.
pub(crate) fn absences<'a>(
    caption: &str,
    headings: [&str; 2],
    rows: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> Markup {
    let table = Table::new(caption, rows)
        .stacked()
        .head(headings[0], |row| row.0)
        .text(headings[1], |row| row.1)
        .text("fix", |row| Cell::code(row.2));
    html! { (table) }
}
