//! The tables over cells: the primary metric.

use super::section::{Page, Section};
use super::tables::{rows, tail, with_moments};
use crate::grid::{Table, name};
use crate::{patience, table};
use maud::html;
use text::words::{capital, ratio};

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let title = summary.primary.title();
    let timed = summary.cells.iter().any(|cell| cell.late.is_some());
    let bounded = [patience::sentence(summary), patience::maximum(summary)];
    (!summary.cells.is_empty()).then(|| Section {
        id: "cells",
        heading: format!("Cells: {title}"),
        body: html! {
            p.quiet {
                "Rounds are pooled. Below each quantile stands its 95 % interval; \"needs n\" is the number of samples needed to bound \
                 that quantile. The maximum is what was seen, a lower bound of the worst case."
                @if timed {
                    " Late jobs ended after their deadline; activations that were skipped never began. Below each stands the 95 % interval \
                     of their share of all activations, from the differences between rounds."
                }
                @for sentence in bounded.iter().flatten() { " " (capital(sentence)) "." }
            }
            (table::cells(summary).detail())
            (super::in_turns::table(summary, summary.primary))
        },
    })
}

/// Means, deviations and ratios within cells.
pub(super) fn spread(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let title = format!("Spread of the {}", summary.primary.title());
    let table = Table::new(&title, rows(summary, summary.primary))
        .detail()
        .head("cell", |(cell, _)| name(cell));
    let table = with_moments(table)
        .number("CV\nsd / mean", |(_, m)| {
            m.summary.coefficient_of_variation.map(ratio)
        })
        .number("p95 / median", |(_, m)| {
            tail(&m.summary, m.summary.tail_ratio_p95, 0.95)
        })
        .number("p99 / median", |(_, m)| {
            tail(&m.summary, m.summary.tail_ratio_p99, 0.99)
        })
        .number("correlation\nof neighbours", |(_, m)| {
            let number = |r: f64| format!("{:.2}", r + 0.0).replace("-0.00", "0.00");
            m.lag1_autocorrelation.map(number)
        })
        .number("samples", |(_, m)| m.summary.count);
    (!table.is_empty()).then(|| Section {
        id: "spread",
        heading: title,
        body: html! { (table) },
    })
}
