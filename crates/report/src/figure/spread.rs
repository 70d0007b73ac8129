//! Trials with several cells: how the cells of one trial differ, and how that changes with their number.

use super::Figure;
use super::plot::{Rows, Side};
use crate::chart::{Axis, Mark, marks};
use maud::html;
use record::summary::CellSummary;
use study::JobsStudy;
use text::words::clean;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let mut trials: Vec<(&str, Vec<&CellSummary>)> = Vec::new();
    for cell in data.summary.cells.iter().filter(|c| !c.metrics.is_empty()) {
        match trials.iter_mut().find(|(trial, _)| *trial == cell.trial) {
            Some((_, cells)) => cells.push(cell),
            None => trials.push((&cell.trial, vec![cell])),
        }
    }
    if trials.iter().all(|(_, cells)| cells.len() < 2) {
        return None;
    }
    let median = |cell: &CellSummary| cell.metrics[0].summary.median_ns;
    let p99 = |cell: &CellSummary| cell.metrics[0].summary.quantile(0.99)?.value_ns;
    let all = || trials.iter().flat_map(|(_, cells)| cells.iter());
    let values = || {
        all()
            .flat_map(|cell| [Some(median(cell)), p99(cell)])
            .flatten()
    };
    let axis = Axis::fitting(values().map(|ns| ns as f64));
    let names: Vec<String> = trials
        .iter()
        .map(|(trial, cells)| format!("{} ({})", clean(trial), cells.len()))
        .collect();
    let side = Side::time(axis, data.summary.primary.title());
    let plot = Rows::of_two(
        &names,
        side,
        [(Mark::Circle, "median"), (Mark::Triangle, "p99")],
    );
    let x = |ns: i64| plot.x.at(ns as f64);
    let body = html! {
        @for (row, (_, cells)) in trials.iter().enumerate() {
            @let medians = cells.iter().map(|cell| (x(median(cell)), plot.y(row) - 6.0));
            @let tails = cells.iter().filter_map(|cell| Some((x(p99(cell)?), plot.y(row) + 6.0)));
            path class="mark s0" d=(marks(Mark::Circle, medians)) {}
            path class="mark s1" d=(marks(Mark::Triangle, tails)) {}
        }
    };
    let caption = "One mark per cell: circles are medians, triangles p99, in brackets the number of cells of the trial. Marks that lie \
                   together mean that the cells of a trial are treated alike; marks that move right from row to row show the price of \
                   running more cells at once.";
    Some(plot.figure(
        "spread",
        "Are cells that run together treated alike?",
        caption,
        body,
    ))
}
