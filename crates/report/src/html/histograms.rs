//! Histograms instead of samples: how exact they are, interruptions of the run, and the worst jobs.

use super::section::{Page, Section};
use crate::grid::{Table, name};
use maud::html;
use record::summary::{CellSummary, HistogramSummary, WorstJob};
use text::units::{percent, time};
use text::words::{clean, plural, resumed};

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
                    (percent(error)) " above their true values, never below; their intervals are widened by \
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
            (worst(&cells, summary.primary.title()))
        },
    })
}

fn worst<'a>(
    cells: &[(&'a CellSummary, &'a HistogramSummary)],
    title: &str,
) -> Table<(&'a CellSummary, &'a WorstJob)> {
    let caption = format!("Jobs with the largest {title}, up to {SHOWN} of each cell");
    let of = |(cell, histograms): &(&'a CellSummary, &'a HistogramSummary)| {
        let cell = *cell;
        let worst = histograms.worst.iter().take(SHOWN);
        worst.map(move |job| (cell, job))
    };
    let between = |from: i64, to: i64| time(to.saturating_sub(from) as f64);
    Table::new(caption, cells.iter().flat_map(of))
        .detail()
        .head("cell", |(cell, _)| name(cell))
        .times(title, |(_, job)| Some(job.value_ns as f64))
        .number("after\ntime since the release", |(_, job)| {
            time(job.since_release_ns as f64)
        })
        .number("round", |(_, job)| job.round)
        .number("trial", |(_, job)| job.trial)
        .number("job", |(_, job)| job.index)
        .number("woke late", |(_, job)| {
            between(job.release_ns, job.start_ns)
        })
        .number("ran for", |(_, job)| between(job.start_ns, job.end_ns))
        .number("skipped before", |(_, job)| job.skipped_before)
}
