//! The findings, as sentences.

use super::{Page, Section};
use crate::findings;
use crate::words::clean;
use maud::html;

pub(super) fn section(page: &Page) -> Option<Section> {
    let sentences = findings(page.data.summary);
    Some(Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            ul.findings { @for sentence in &sentences { li { (clean(sentence)) } } }
        },
    })
}
