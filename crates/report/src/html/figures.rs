//! The figures with their captions.

use super::section::{Page, Section};
use crate::figure::{Figure, RATIOS, TAIL, inline};
use maud::{Markup, html};

pub(super) fn section(page: &Page) -> Option<Section> {
    let main = first(page).map_or(TAIL, |figure| &*figure.name);
    let mut others = (page.figures.iter())
        .filter(|f| f.name != TAIL && f.name != main)
        .peekable();
    others.peek().is_some().then(|| Section {
        id: "figures",
        heading: "Figures".to_owned(),
        body: labelled(others, label(page)),
    })
}

/// The picture that answers the question best: the ratios to the baseline, else the first one.
fn first<'p>(page: &'p Page) -> Option<&'p Figure> {
    let mut figures = page.figures.iter().filter(|f| f.name != TAIL);
    let ratios = page.figures.iter().find(|f| f.name == RATIOS);
    ratios.or_else(|| figures.next())
}

/// This picture.
pub(super) fn main(page: &Page) -> Markup {
    html! { @if let Some(figure) = first(page) { (labelled(std::iter::once(figure), label(page))) } }
}

/// The caution behind the titles of pictures.
fn label(page: &Page) -> &'static str {
    let cells = &page.data.summary.cells;
    match cells.iter().filter(|cell| !cell.real_time).count() {
        0 => "",
        n if n == cells.len() => "(not real-time)",
        _ => "(not real-time in part)",
    }
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
