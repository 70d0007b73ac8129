//! Where and when it was measured.

use super::section::{Page, Section};
use host::provenance::Provenance;
use maud::html;
use study::facts;
use text::words::clean;

pub(super) fn section(page: &Page) -> Option<Section> {
    Some(provenance_section(&page.data.provenance))
}

/// The section of any report of a run.
pub(crate) fn provenance_section(provenance: &Provenance) -> Section {
    Section {
        id: "machine",
        heading: "Provenance".to_owned(),
        body: html! {
            dl { @for (name, value) in facts(provenance) { dt { (name) } dd { (clean(&value)) } } }
        },
    }
}
