//! The other metrics of the same jobs.

use super::section::{Page, Section};
use super::tables::{detail, name, quantile_heads, quantiles, short_shape, short_shape_heads};
use super::time_cell;
use crate::in_turns::compared;
use maud::{Markup, html};
use record::summary::{CellSummary, Metric, MetricSummary, RunSummary};
use study::jobs::metrics;
use text::units::Scale;

pub(super) fn section(page: &Page) -> Option<Section> {
    let others = &metrics(page.data.plan.workload.work)[1..];
    let titles: Vec<&str> = others.iter().map(|metric| metric.title()).collect();
    (!others.is_empty()).then(|| Section {
        id: "others",
        heading: text::words::capital(&titles.join(" and ")),
        body: html! {
            @if page.data.plan.workload.work == model::Work::Endless {
                p.quiet { "From SIGTERM to the end of the program; one that has not ended within 2 s is killed. Not compared with the baseline." }
            } @else {
                p.quiet {
                    "Wake-up latency is how late a job began; response time is from its release to its end. "
                    @if others.iter().any(|&metric| !compared(&page.data.summary, metric).is_empty()) {
                        "The same jobs; where trials took turns they are compared turn by turn."
                    } @else { "The same jobs, not compared with the baseline." }
                }
            }
            @for &metric in others {
                (table(&page.data.summary, metric))
                @if let Some(compared) = super::in_turns::table(&page.data.summary, metric) { (compared) }
            }
        },
    })
}

fn table(summary: &RunSummary, metric: Metric) -> Markup {
    let of = |cell: &'_ CellSummary| cell.metrics.iter().position(|m| m.metric == metric);
    let rows: Vec<(&CellSummary, &MetricSummary)> = summary
        .cells
        .iter()
        .filter_map(|cell| Some((cell, &cell.metrics[of(cell)?])))
        .collect();
    let max = Scale::of(rows.iter().map(|(_, m)| m.summary.max_ns as f64));
    detail(
        &text::words::capital(metric.title()),
        rows.len(),
        html! {
            thead { tr { th scope="col" { "cell" } (quantile_heads()) th.num scope="col" { "max" } (short_shape_heads()) } }
            tbody { @for (row, (cell, m)) in rows.iter().enumerate() {
                tr {
                    th scope="row" { (name(cell)) }
                    (quantiles(&rows, row)) (time_cell(&max.show(m.summary.max_ns as f64), "")) (short_shape(&rows, row))
                }
            } }
        },
    )
}
