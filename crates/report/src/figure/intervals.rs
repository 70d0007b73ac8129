//! Interval by interval: smallest value, median, p99 and largest value of a run that kept histograms.

use super::{Figure, WIDTH, name, time_axis, time_title, with_omission};
use crate::chart::{Axis, Band, LOOKS, n, title_below, title_left, y_axis};
use maud::{Markup, html};
use std::fmt::Write;
use study::JobsStudy;
use study::jobs::CellData;
use study::jobs::Stretch;
use text::units::time;

const LEFT: f64 = 74.0;
const RIGHT: f64 = WIDTH - 64.0;
const TOP: f64 = 46.0;
const PANEL: f64 = 96.0;
const GAP: f64 = 24.0;
const MOST_PANELS: usize = 8;
/// Between the baselines of two names, so that they do not touch.
const LINE: f64 = 14.0;
/// Names of a stretch's figures, in their order.
const NAMES: [&str; 4] = ["min", "median", "p99", "max"];

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let cells = data
        .drawing
        .cells
        .iter()
        .filter(|cell| !cell.stretches.is_empty());
    let cells: Vec<&CellData> = cells.take(MOST_PANELS).collect();
    let stretches = || cells.iter().flat_map(|cell| &cell.stretches);
    let longest = stretches().map(|stretch| stretch.span.1).max()?;
    let values = stretches().flat_map(|stretch| stretch.figures);
    let y = time_axis(data, values.map(|ns| ns as f64));
    let (unit, title) = time_title(&y, data.summary.primary.title());
    let bottom = TOP + cells.len() as f64 * (PANEL + GAP) - GAP;
    let across = Axis::linear([0.0, longest as f64]).between(LEFT, RIGHT);
    let mut caption = format!(
        "Smallest value, median, p99 and largest value of the {} in each interval; trials follow each other without the time between \
         them. A median that wanders is drift; a largest value that jumps again and again is something that recurs.",
        data.summary.primary.title()
    );
    let left_out = data.drawing.cells.len().saturating_sub(cells.len());
    if left_out > 0 {
        let _ = write!(caption, " {left_out} more cells are not drawn.");
    }
    Some(Figure {
        name: "intervals".into(),
        title: format!("The {} interval by interval", data.summary.primary.title()),
        caption: with_omission(data, caption),
        size: (WIDTH, bottom + 48.0),
        body: html! {
            (title_left(8.0, 26.0, &title))
            @for (place, cell) in cells.iter().enumerate() {
                @let top = TOP + place as f64 * (PANEL + GAP);
                @let y = y.clone().between(top + PANEL, top);
                (panel(cell, &across, &y, unit))
            }
            (title_below(&across, bottom, &format!("time, {} in all", time(longest as f64))))
        },
    })
}

fn panel(cell: &CellData, x: &Axis, y: &Axis, unit: f64) -> Markup {
    let look = cell.look % LOOKS;
    let (bottom, top) = y.ends();
    let last = cell.stretches.last().map(|stretch| stretch.figures);
    let at = last.unwrap_or_default().map(|ns| y.at(ns as f64) + 3.5);
    let labels = NAMES.into_iter().zip(apart(at, bottom));
    html! {
        (y_axis(y, Band(LEFT, RIGHT), unit))
        @for which in 0..NAMES.len() {
            path class=(format!("line s{look}")) d=(steps(&cell.stretches, which, x, y)) {}
        }
        @for (name, at) in labels {
            text class="faint" x=(n(RIGHT + 6.0)) y=(n(at)) { (name) }
        }
        text class="head" x=(n(LEFT)) y=(n(top - 6.0)) { (name(cell)) }
    }
}

/// Baselines of the names at the right end of their lines, the lowest first, pushed apart where lines run close together.
fn apart(at: [f64; 4], bottom: f64) -> [f64; 4] {
    let mut lowest = f64::INFINITY;
    at.map(|y| {
        lowest = y.min(lowest - LINE).min(bottom);
        lowest
    })
}

/// A flat piece for each interval, joined where they follow each other.
fn steps(stretches: &[Stretch], which: usize, x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    let mut end = None;
    for stretch in stretches {
        let at = n(y.at(stretch.figures[which] as f64));
        let (from, to) = stretch.span;
        let _ = if end == Some(from) {
            write!(path, "V{at}H{}", n(x.at(to as f64)))
        } else {
            write!(
                path,
                "M{} {at}H{}",
                n(x.at(from as f64)),
                n(x.at(to as f64))
            )
        };
        end = Some(to);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_that_run_together_do_not_touch() {
        let placed = apart([140.0, 139.0, 138.0, 77.0], 142.0);
        assert_eq!(placed, [140.0, 126.0, 112.0, 77.0]);
        assert!(placed.windows(2).all(|pair| pair[0] - pair[1] >= 13.0));
        assert_eq!(
            apart([150.0, 90.0, 60.0, 20.0], 142.0),
            [142.0, 90.0, 60.0, 20.0]
        );
    }
}
