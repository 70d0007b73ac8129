//! The findings, as sentences.

use super::section::{Page, Section};
use crate::findings;
use maud::html;
use text::words::clean;

pub(super) fn section(page: &Page) -> Option<Section> {
    let sentences = findings(&page.data.summary);
    Some(Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            ul.findings { @for sentence in &sentences { li { (clean(sentence)) } } }
        },
    })
}
