//! The tables over cells: the primary metric.

use super::section::{Page, Section};
use super::tables::{
    detail, lost_with_share, name, quantile_heads, quantiles, region, shape, shape_heads, told,
};
use super::time_cell;
use maud::{Markup, html};
use record::summary::{CellSummary, MetricSummary};
use text::units::{Scale, Unit};
use text::words::{clean, count, times, verdict};

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
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
                "Rounds are pooled. Below each quantile stands its 95% interval; \"needs n\" is the number of samples needed to bound \
                 that quantile. The maximum is what was seen, a lower bound of the worst case."
                @if summary.cells.iter().any(|cell| cell.late.is_some()) {
                    " Late jobs ended after their deadline; activations that were missed never began. Below each stands the 95% interval \
                     of their share of all activations, from the differences between rounds."
                }
                @if let Some(sentence) = crate::patience::sentence(summary) { " " (text::words::capital(&sentence)) "." }
                @if let Some(sentence) = crate::patience::maximum(summary) { " " (text::words::capital(&sentence)) "." }
            }
            (main_table(page, &rows))
            @if let Some(compared) = super::in_turns::table(summary, summary.primary) { (compared) }
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
    let summary = &page.data.summary;
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
                        @match text::words::lost(cell) {
                            0 => (time_cell(&max.show(m.summary.max_ns as f64), "")),
                            lost => (time_cell(
                                &format!(">= {}", max.show(m.summary.max_ns as f64)),
                                &format!("{} lost", count(lost)),
                            )),
                        }
                        @if used {
                            @match cell.cpu_per_second_ns {
                                Some(ns) => td.num { (Scale::within(Some(Unit::S), [ns]).show(ns)) },
                                None => td.num { "-" },
                            }
                        }
                        @if compared { (against(cell, &summary.baseline)) }
                        @if timed {
                            @match cell.late {
                                Some(late) => (lost_with_share(late, cell.late_share.as_ref())),
                                None => td.num { "-" },
                            }
                        }
                        (lost_with_share(cell.missed, cell.missed_share.as_ref()))
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
    html! {
        td.verdict {
            (told(&c.ratio_of_medians, c.rounds))
            @if let Some(p99) = &c.ratio_of_p99 {
                br; span.below { "p99 " (times(p99, c.rounds)) (verdict(p99, c.rounds)) (text::words::fewer_rounds_of_p99(c)) }
            } @else if let Some(needs) = cell.in_turns.first().filter(|turns| turns.against == baseline && turns.jobs_for_p99.is_some()) {
                br; span.below { "p99 " (crate::in_turns::p99_needs(needs)) }
            }
        }
    }
}
