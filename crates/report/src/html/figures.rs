//! The figures with their captions.

use super::section::{Page, Section};
use crate::figure::{Figure, TAIL, inline};
use maud::{Markup, html};

pub(super) fn section(page: &Page) -> Option<Section> {
    let cells = &page.data.summary.cells;
    let label = match cells.iter().filter(|cell| !cell.real_time).count() {
        0 => "",
        n if n == cells.len() => "(not real-time)",
        _ => "(not real-time in part)",
    };
    (!page.figures.is_empty()).then(|| Section {
        id: "figures",
        heading: "Figures".to_owned(),
        body: labelled(page.figures.iter().filter(|f| f.name != TAIL), label),
    })
}

/// Figures below each other, each with its title and caption.
pub(crate) fn drawn(figures: &[Figure]) -> Markup {
    labelled(figures.iter(), "")
}

/// A section of them, if there are any.
pub(crate) fn pictures(heading: &str, figures: &[Figure]) -> Option<Section> {
    (!figures.is_empty()).then(|| Section {
        id: "figures",
        heading: heading.to_owned(),
        body: drawn(figures),
    })
}

/// `label` stands behind every title.
fn labelled<'a>(figures: impl Iterator<Item = &'a Figure>, label: &str) -> Markup {
    html! {
        div.figures {
            @for figure in figures {
                figure {
                    h3 {
                        (figure.title)
                        @if !label.is_empty() { " " span.caution { (label) } }
                    }
                    div.scroll { (inline(figure)) }
                    figcaption { (figure.caption) }
                }
            }
        }
    }
}
