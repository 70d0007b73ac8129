//! The findings, as sentences.

use super::section::{Page, Section};
use crate::findings;
use maud::{Markup, html};
use text::words::{clean, plural, sentence};

pub(super) fn section(page: &Page) -> Option<Section> {
    // The first is the answer to the question.
    let further = &findings(&page.data.summary)[1..];
    (!further.is_empty()).then(|| Section {
        id: "found",
        heading: "What else was found".to_owned(),
        body: found(further),
    })
}

/// Findings that are shown at once: the most important are the first.
const SHOWN: usize = 5;

/// The findings, one below the other; those beyond [`SHOWN`] are folded.
pub(crate) fn found(findings: &[String]) -> Markup {
    let (first, more) = findings.split_at(findings.len().min(SHOWN));
    let of = |all: &[String]| html! { ul.findings { @for text in all { li { (clean(text)) } } } };
    html! {
        (of(first))
        @if !more.is_empty() {
            details { summary { (plural(more.len() as u64, "further finding")) } (of(more)) }
        }
    }
}

/// Notes as sentences, one below the other.
pub(crate) fn list(notes: &[String]) -> Markup {
    html! { ul.findings { @for note in notes { li { (sentence(&clean(note))) } } } }
}
