//! Verdicts as a section of the page.

use super::text::measured;
use crate::html::{Section, region};
use maud::html;
use study::judge::{Judged, Outcome, Unit};
use text::words::clean;

/// The section; `None` if there are no thresholds.
pub(crate) fn section(judged: &Judged) -> Option<Section> {
    if judged.thresholds.is_empty() {
        return None;
    }
    let ratios = judged
        .thresholds
        .iter()
        .flat_map(|t| &t.cells)
        .any(|cell| cell.unit == Unit::Ratio);
    let class = |outcome| match outcome {
        Outcome::Met => "faster",
        Outcome::Missed => "bad",
        Outcome::Undecided | Outcome::NotApplicable => "caution",
    };
    let table = html! {
        thead { tr {
            th scope="col" { "fails if" } th scope="col" { "cell" } th scope="col" { "measured (95% interval)" }
            th scope="col" { "verdict" } th scope="col" { "remark" }
        } }
        tbody { @for threshold in &judged.thresholds { @for cell in &threshold.cells {
            tr {
                th scope="row" { code { (clean(&threshold.threshold)) } }
                td { (clean(&cell.cell)) }
                td { (measured(cell)) }
                td { span class=(class(cell.verdict)) { (cell.verdict) } }
                td { (clean(&cell.reason)) }
            }
        } } }
    };
    Some(Section {
        id: "thresholds",
        heading: format!("Thresholds: {}", judged.outcome()),
        body: html! {
            p.quiet {
                "Conditions that must not occur, and whether they do. The whole 95% interval decides: missed where all of it lies beyond \
                 the limit, met where none of it does, undecided where the limit lies within. Largest and smallest value, mean, deviation \
                 and counts are compared as they were seen; a share of activations has an interval."
            }
            (region("Thresholds", table))
            @if ratios {
                p { "Ratios are to " (clean(&judged.baseline)) "." }
                @for caution in &judged.cautions { p.quiet { (clean(caution)) } }
            }
        },
    })
}
