//! Trials with several cells: how the cells of one trial differ, and how that changes with their number.

use super::{Figure, WIDTH, time_title};
use crate::chart::{Axis, Band, Mark, marks, n, name_room, row_names, sample, title_below, x_axis};
use maud::html;
use record::summary::CellSummary;
use study::JobsStudy;
use text::words::clean;

const ROW: f64 = 36.0;
const TOP: f64 = 30.0;

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
    let positive = values().all(|ns| ns > 0);
    let values = values().map(|ns| ns as f64);
    let axis = if positive {
        Axis::log(values)
    } else {
        Axis::linear(values)
    };
    let names: Vec<String> = trials
        .iter()
        .map(|(trial, cells)| format!("{} ({})", clean(trial), cells.len()))
        .collect();
    let left = name_room(names.iter().map(String::as_str));
    let bottom = TOP + ROW * trials.len() as f64;
    let axis = axis.between(left, WIDTH - 24.0);
    let (unit, title) = time_title(&axis, data.summary.primary.title());
    let y = |row: usize| TOP + ROW * (row as f64 + 0.5);
    Some(Figure {
        name: "spread".into(),
        title: "Are cells that run together treated alike?".to_owned(),
        caption: "One mark per cell: circles are medians, triangles p99, in brackets the number of cells of the \
                  trial. Marks that lie together mean that the cells of a trial are treated alike; marks that move \
                  right from row to row show the price of running more cells at once."
            .to_owned(),
        height: bottom + 48.0,
        body: html! {
            path class="mark s0" d=(sample(Mark::Circle, left + 6.0, 12.0)) {}
            text x=(n(left + 16.0)) y="16.5" { "median" }
            path class="mark s1" d=(sample(Mark::Triangle, left + 86.0, 12.0)) {}
            text x=(n(left + 96.0)) y="16.5" { "p99" }
            (x_axis(&axis, Band(TOP, bottom), unit))
            (title_below(&axis, bottom, &title))
            (row_names(names.iter().map(String::as_str), left, y))
            @for (row, (_, cells)) in trials.iter().enumerate() {
                @let medians = cells.iter().map(|cell| (axis.at(median(cell) as f64), y(row) - 6.0));
                @let tails = cells.iter().filter_map(|cell| Some((axis.at(p99(cell)? as f64), y(row) + 6.0)));
                path class="mark s0" d=(marks(Mark::Circle, medians)) {}
                path class="mark s1" d=(marks(Mark::Triangle, tails)) {}
            }
        },
    })
}
