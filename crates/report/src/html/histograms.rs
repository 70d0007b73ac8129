//! What was kept instead of samples: how exact it is, what interrupted the run, and the worst jobs.

use super::section::{Page, Section};
use super::tables::{detail, name};
use super::time_cell;
use maud::{Markup, html};
use record::summary::{CellSummary, HistogramSummary};
use text::units::{Scale, time};
use text::words::{clean, count, plural, resumed};

/// Worst jobs shown of each cell.
const SHOWN: usize = 20;

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let cells: Vec<(&CellSummary, &HistogramSummary)> = summary
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.histograms.as_ref()?)))
        .collect();
    if cells.is_empty() && summary.resumed.is_empty() {
        return None;
    }
    let lost: u64 = cells.iter().map(|(cell, _)| cell.lost).sum();
    let early: u64 = cells.iter().map(|(_, h)| h.below_zero).sum();
    let error = cells.first().map(|(_, h)| h.relative_error);
    Some(Section {
        id: "histograms",
        heading: "A long run".to_owned(),
        body: html! {
            @if let Some(error) = error {
                p {
                    "Histograms were kept, not samples. Medians and quantiles are at most "
                    (format!("{:.1}%", error * 100.0)) " above their true values, never below; their intervals are widened by \
                     as much. Smallest and largest values, means, deviations and counts are exact. Comparisons rest on the \
                     rounds alone, since histograms do not hold the order of jobs."
                }
            }
            @if lost > 0 {
                p { span.bad { "Lost " (plural(lost, "sample")) ": the reader was not scheduled in time. The longest jobs may be among them: largest values stand as lower bounds, and no tail is drawn." } }
            }
            @if early > 0 {
                p { (plural(early, "value")) " below 0 (early wake-ups) stand in the histograms as 0." }
            }
            @for gap in &summary.resumed { p { (clean(&resumed(gap))) } }
            @if !cells.is_empty() { (worst(&cells, summary.primary.title())) }
        },
    })
}

fn worst(cells: &[(&CellSummary, &HistogramSummary)], title: &str) -> Markup {
    let rows: usize = cells.iter().map(|(_, h)| h.worst.len().min(SHOWN)).sum();
    let values = cells.iter().flat_map(|(_, h)| &h.worst);
    let scale = Scale::of(values.map(|job| job.value_ns as f64));
    let caption = format!("Jobs with the largest {title}, up to {SHOWN} of each cell");
    detail(
        &caption,
        rows,
        html! {
            thead { tr {
                th scope="col" { "cell" } th.num scope="col" { (title) }
                th.num scope="col" { "after" br; span.below { "time since the release" } }
                th.num scope="col" { "round" } th.num scope="col" { "trial" } th.num scope="col" { "job" }
                th.num scope="col" { "woke late" } th.num scope="col" { "ran for" } th.num scope="col" { "missed before" }
            } }
            tbody { @for (cell, histograms) in cells { @for job in histograms.worst.iter().take(SHOWN) {
                tr {
                    th scope="row" { (name(cell)) }
                    (time_cell(&scale.show(job.value_ns as f64), ""))
                    (time_cell(&time(job.since_release_ns as f64), ""))
                    (time_cell(&job.round.to_string(), "")) (time_cell(&job.trial.to_string(), ""))
                    (time_cell(&count(job.index.into()), ""))
                    (time_cell(&time(job.start_ns.saturating_sub(job.release_ns) as f64), ""))
                    (time_cell(&time(job.end_ns.saturating_sub(job.start_ns) as f64), ""))
                    (time_cell(&count(job.missed_before.into()), ""))
                }
            } } }
        },
    )
}
