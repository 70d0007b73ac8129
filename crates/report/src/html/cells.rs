//! The tables over cells: one for each metric, and one about the cells themselves.

use super::{Page, Section, time_cell};
use crate::plan::list;
use crate::units::{Scale, time};
use crate::words::{clean, count, interval, needs, ratio, verdict};
use maud::{Markup, html};
use record::summary::{CellSummary, Metric, MetricSummary};
use stats::{Quantile, Verdict};

/// The quantiles that have a column.
const SHOWN: [(f64, &str); 4] = [
    (0.5, "median"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
];

pub(super) fn section(page: &Page) -> Option<Section> {
    let cells = &page.data.summary.cells;
    if cells.is_empty() {
        return None;
    }
    let metrics: Vec<Metric> = crate::study::metrics(page.data.plan.workload.work).to_vec();
    Some(Section {
        id: "cells",
        heading: "Cells".to_owned(),
        body: html! {
            p.quiet {
                "Rounds are pooled. Below each quantile stands its 95% interval; \"needs n\" is the number of samples \
                 from which that quantile could be bounded. The maximum is what was seen, a lower bound of the worst case."
            }
            @for &metric in &metrics {
                (times(page, metric))
            }
            (selves(cells))
        },
    })
}

fn of(cell: &CellSummary, metric: Metric) -> Option<&MetricSummary> {
    cell.metrics.iter().find(|m| m.metric == metric)
}

/// Quantiles and moments of one metric.
fn times(page: &Page, metric: Metric) -> Markup {
    let summary = page.data.summary;
    let rows: Vec<(&CellSummary, &MetricSummary)> = summary
        .cells
        .iter()
        .filter_map(|cell| Some((cell, of(cell, metric)?)))
        .collect();
    let primary = metric == summary.primary;
    let scales: Vec<Scale> = SHOWN
        .iter()
        .map(|&(p, _)| column(rows.iter().filter_map(|(_, m)| m.summary.quantile(p))))
        .collect();
    let max = Scale::of(rows.iter().map(|(_, m)| m.summary.max_ns as f64));
    let mean = Scale::of(rows.iter().map(|(_, m)| m.summary.mean_ns));
    let sd = Scale::of(rows.iter().filter_map(|(_, m)| m.summary.sd_ns));
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("Table: {}", metric.title())) {
            table {
                caption { (crate::words::sentence(metric.title())) @if primary { " What comparisons are about." } }
                thead { tr {
                    th scope="col" { "cell" }
                    @for (_, name) in SHOWN { th.num scope="col" { (name) } }
                    th.num scope="col" { "max" }
                    th.num scope="col" { "mean" }
                    th.num scope="col" { "sd" }
                    th.num scope="col" title="coefficient of variation: sd over mean" { "CV" }
                    th.num scope="col" { "p95 / median" }
                    th.num scope="col" { "p99 / median" }
                    @if primary {
                        th scope="col" { "against " (clean(&summary.baseline)) br; span.below { "median, p99 (95% interval)" } }
                    }
                    th.num scope="col" { "samples" }
                } }
                tbody {
                    @for (cell, m) in &rows {
                        tr {
                            th scope="row" { (name(cell)) }
                            @for ((p, _), scale) in SHOWN.iter().zip(&scales) { (quantile(m, *p, *scale)) }
                            (time_cell(&max.show(m.summary.max_ns as f64), ""))
                            (time_cell(&mean.show(m.summary.mean_ns), ""))
                            (time_cell(&m.summary.sd_ns.map_or("-".to_owned(), |ns| sd.show(ns)), ""))
                            (time_cell(&optional(m.summary.coefficient_of_variation), ""))
                            (time_cell(&optional(m.summary.tail_ratio_p95), ""))
                            (time_cell(&optional(m.summary.tail_ratio_p99), ""))
                            @if primary { (against(cell, &summary.baseline)) }
                            (time_cell(&count(m.summary.count), ""))
                        }
                    }
                }
            }
        }
    }
}

/// The cell's name, with its label if it was not real-time.
fn name(cell: &CellSummary) -> Markup {
    html! {
        (clean(&cell.label))
        @if !cell.real_time { br; span.caution { "not real-time" } }
    }
}

fn column<'a>(quantiles: impl Iterator<Item = &'a Quantile>) -> Scale {
    let all: Vec<f64> = quantiles
        .flat_map(|q| [q.value_ns, q.low_ns, q.high_ns])
        .flatten()
        .map(|ns| ns as f64)
        .collect();
    Scale::of(all)
}

fn quantile(metric: &MetricSummary, probability: f64, scale: Scale) -> Markup {
    let Some(q) = metric.summary.quantile(probability) else {
        return time_cell("-", "");
    };
    match (q.value_ns, q.low_ns, q.high_ns) {
        (Some(value), Some(low), Some(high)) => time_cell(
            &scale.show(value as f64),
            &format!(
                "{}..{}",
                scale.number(low as f64),
                scale.number(high as f64)
            ),
        ),
        // The median of a small sample is what was seen in the middle; it has no interval.
        _ if probability == 0.5 => time_cell(
            &time(metric.summary.median_ns as f64),
            &format!("interval {}", needs(q)),
        ),
        _ => html! { td.num { span.quiet { (needs(q)) } } },
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), ratio)
}

fn against(cell: &CellSummary, baseline: &str) -> Markup {
    let Some(c) = &cell.against_baseline else {
        return html! { td { @if cell.trial == baseline { "1 (baseline)" } @else { span.quiet { "not comparable" } } } };
    };
    let medians = &c.ratio_of_medians;
    let class = match medians.verdict {
        Verdict::Larger => "slower",
        Verdict::Smaller => "faster",
        Verdict::WithinNoise | Verdict::Undecided => "quiet",
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

/// Class, cpus, activations, costs and remarks.
fn selves(cells: &[CellSummary]) -> Markup {
    let create = Scale::of(
        cells
            .iter()
            .filter_map(|c| c.create_median_ns)
            .map(|ns| ns as f64),
    );
    let used = Scale::of(cells.iter().filter_map(|c| c.cpu_time_per_activation_ns));
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table: cells themselves" {
            table {
                caption { "The cells themselves. Planned = executed + missed + lost." }
                thead { tr {
                    th scope="col" { "cell" } th scope="col" { "engine" } th scope="col" { "class" }
                    th scope="col" { "cpus" } th.num scope="col" { "rounds" } th.num scope="col" { "planned" }
                    th.num scope="col" { "executed" } th.num scope="col" { "missed" } th.num scope="col" { "lost" }
                    th.num scope="col" { "creation" } th.num scope="col" { "cpu time per job" }
                    th.num scope="col" title="the probe's own cost: one clock reading; recording one job" { "probe cost" }
                    th.num scope="col" title="of neighbouring jobs, between -1 and 1" { "correlation" }
                    th scope="col" { "remarks" }
                } }
                tbody {
                    @for cell in cells {
                        tr {
                            th scope="row" { (name(cell)) }
                            td { (cell.engine.to_string()) } td { (clean(&cell.class)) } td { (list(&cell.cpus)) }
                            (time_cell(&cell.rounds.to_string(), "")) (time_cell(&count(cell.planned), ""))
                            (time_cell(&count(cell.executed), "")) (lost(cell.missed)) (lost(cell.unexplained))
                            (time_cell(&cell.create_median_ns.map_or("-".to_owned(), |ns| create.show(ns as f64)), ""))
                            (time_cell(&cell.cpu_time_per_activation_ns.map_or("-".to_owned(), |ns| used.show(ns)), ""))
                            (time_cell(&format!("{}; {} ns", count(cell.clock_cost_ns), count(cell.loop_cost_ns)), ""))
                            (time_cell(&cell.metrics.first().and_then(|m| m.lag1_autocorrelation)
                                .map_or("-".to_owned(), |r| format!("{r:.2}")), ""))
                            td { @for note in &cell.notes { div { (clean(note)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn lost(n: u64) -> Markup {
    html! { td.num { @if n > 0 { span.bad { (count(n)) } } @else { "0" } } }
}
