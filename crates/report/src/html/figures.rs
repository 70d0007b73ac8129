//! The figures with their captions.

use super::{Page, Section};
use crate::figure::{TAIL, inline};
use maud::html;

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
        body: html! {
            div.figures {
                @for figure in page.figures.iter().filter(|figure| figure.name != TAIL) {
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
        },
    })
}
