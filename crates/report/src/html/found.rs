//! The findings, as sentences.

use super::section::{Page, Section};
use crate::findings;
use maud::{Markup, html};
use text::words::{clean, sentence};

pub(super) fn section(page: &Page) -> Option<Section> {
    Some(Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: list(&findings(&page.data.summary)),
    })
}

/// Sentences, one below the other.
pub(crate) fn list(sentences: &[String]) -> Markup {
    html! { ul.findings { @for text in sentences { li { (sentence(&clean(text))) } } } }
}
