//! The figures with their captions.

use super::{Page, Section};
use crate::figure::inline;
use maud::html;

pub(super) fn section(page: &Page) -> Option<Section> {
    (!page.figures.is_empty()).then(|| Section {
        id: "figures",
        heading: "Figures".to_owned(),
        body: html! {
            div.figures {
                @for figure in &page.figures {
                    figure {
                        h3 {
                            (figure.title)
                            @if !page.data.summary.real_time { " " span.caution { "(not real-time)" } }
                        }
                        div.scroll { (inline(figure)) }
                        figcaption { (figure.caption) }
                    }
                }
            }
        },
    })
}
