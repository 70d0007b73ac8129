//! Verdicts as a section of the page.

use super::text::{ratios, table};
use crate::html::Section;
use maud::html;
use study::judge::Judged;
use text::words::clean;

/// The section; `None` if there are no thresholds.
pub(crate) fn section(judged: &Judged) -> Option<Section> {
    (!judged.thresholds.is_empty()).then(|| Section {
        id: "thresholds",
        heading: format!("Thresholds: {}", judged.outcome()),
        body: html! {
            p.quiet {
                "Each threshold is a condition that must not occur. The whole 95 % interval decides: the threshold fails where all of it \
                 lies beyond the limit, passes where none of it does, and is undecided where the limit lies within. Largest and smallest \
                 value, mean, deviation and counts are compared as they were seen; a share of activations has an interval."
            }
            (table(judged))
            @if ratios(judged) {
                p { "Ratios are to " (clean(&judged.baseline)) "." }
                @for caution in &judged.cautions { p.quiet { (clean(caution)) } }
            }
        },
    })
}
