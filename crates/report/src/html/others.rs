//! The other metrics of the same jobs.

use super::section::{Page, Section};
use super::tables::{Row, rows, tail, with_moments, with_quantiles};
use crate::grid::{Table, name};
use crate::in_turns::compared;
use maud::html;
use record::summary::{Metric, RunSummary};
use study::jobs::metrics;

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
                (super::in_turns::table(&page.data.summary, metric))
            }
        },
    })
}

fn table(summary: &RunSummary, metric: Metric) -> Table<Row<'_>> {
    let table = Table::new(text::words::capital(metric.title()), rows(summary, metric))
        .detail()
        .head("cell", |(cell, _)| name(cell));
    with_moments(with_quantiles(table)).number("p99 / median", |(_, m)| {
        tail(&m.summary, m.summary.tail_ratio_p99, 0.99)
    })
}
