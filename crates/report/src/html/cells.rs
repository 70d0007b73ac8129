//! The tables over cells: the primary metric and what it amounts to.

use super::tables::{detail, name, quantile_heads, quantiles, region, shape, shape_heads};
use super::{Page, Section, time_cell};
use crate::units::Scale;
use crate::words::{clean, count, interval, verdict};
use maud::{Markup, html};
use record::summary::{CellSummary, MetricSummary};
use stats::Verdict;

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = page.data.summary;
    if summary.cells.is_empty() {
        return None;
    }
    let rows: Vec<(&CellSummary, &MetricSummary)> = summary
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.metrics.first()?)))
        .collect();
    let title = summary.primary.title();
    Some(Section {
        id: "cells",
        heading: format!("Cells: {title}"),
        body: html! {
            p.quiet {
                "Rounds are pooled. Below each quantile stands its 95% interval; \"needs n\" is the number of samples \
                 from which that quantile could be bounded. The maximum is what was seen, a lower bound of the worst case."
                @if let Some(sentence) = crate::patience::sentence(summary) { " " (crate::words::capital(&sentence)) "." }
            }
            (main_table(page, &rows))
            (detail(&format!("Spread of the {title}"), rows.len(), html! {
                thead { tr { th scope="col" { "cell" } (shape_heads()) } }
                tbody { @for (row, (cell, _)) in rows.iter().enumerate() {
                    tr { th scope="row" { (name(cell)) } (shape(&rows, row)) }
                } }
            }))
        },
    })
}

fn main_table(page: &Page, rows: &[(&CellSummary, &MetricSummary)]) -> Markup {
    let summary = page.data.summary;
    let max = Scale::of(rows.iter().map(|(_, m)| m.summary.max_ns as f64));
    let compared = summary
        .cells
        .iter()
        .any(|cell| cell.trial != summary.baseline);
    let timed = summary.cells.iter().any(|cell| cell.late.is_some());
    let used = (summary.cells.iter()).any(|cell| cell.cpu_per_second_ns.is_some());
    let title = format!("Quantiles of the {}", summary.primary.title());
    region(
        &title,
        html! {
            thead { tr {
                th scope="col" { "cell" }
                (quantile_heads())
                th.num scope="col" { "max" }
                @if used { th.num scope="col" { "cpu in 1 s" } }
                @if compared {
                    th.wrap scope="col" { "against " (super::tables::breakable(&clean(&summary.baseline))) br; span.below { "ratio, 95% interval over rounds" } }
                }
                @if timed { th.num scope="col" { "late" } }
                th.num scope="col" { "missed" }
            } }
            tbody {
                @for (row, (cell, m)) in rows.iter().enumerate() {
                    tr {
                        th scope="row" { (name(cell)) }
                        (quantiles(rows, row))
                        @match crate::words::lost(cell) {
                            0 => (time_cell(&max.show(m.summary.max_ns as f64), "")),
                            lost => (time_cell(
                                &format!(">= {}", max.show(m.summary.max_ns as f64)),
                                &format!("{} lost", count(lost)),
                            )),
                        }
                        @if used {
                            @match cell.cpu_per_second_ns {
                                Some(ns) => td.num { (format!("{:.3} s", ns / 1e9)) },
                                None => td.num { "-" },
                            }
                        }
                        @if compared { (against(cell, &summary.baseline)) }
                        @if timed {
                            @match cell.late {
                                Some(late) => (super::tables::lost(late)),
                                None => td.num { "-" },
                            }
                        }
                        (super::tables::lost(cell.missed))
                    }
                }
                @for cell in summary.cells.iter().filter(|cell| cell.metrics.is_empty()) {
                    tr {
                        th scope="row" { (name(cell)) }
                        td colspan="7" { span.bad { "no good round" } " of " (count(cell.planned)) " planned activations" }
                    }
                }
            }
        },
    )
}

fn against(cell: &CellSummary, baseline: &str) -> Markup {
    let Some(c) = &cell.against_baseline else {
        return html! {
            td { @if cell.trial == baseline { "1 (baseline)" } @else if cell.does.is_some() { "other work" } @else { span.quiet { "not comparable" } } }
        };
    };
    let medians = &c.ratio_of_medians;
    let class = match medians.verdict {
        Verdict::Larger => "slower",
        Verdict::Smaller => "faster",
        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => "quiet",
    };
    html! {
        td.verdict {
            (interval(medians)) " " span class=(class) { (verdict(medians, c.rounds)) }
            @if let Some(p99) = &c.ratio_of_p99 {
                br; span.below { "p99 " (interval(p99)) " " (verdict(p99, c.rounds)) }
            }
        }
    }
}
