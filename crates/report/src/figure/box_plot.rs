//! Box plots of the primary metric, one row per cell, on a logarithmic axis.

use super::{Figure, WIDTH, name, time_axis, time_title, with_omission};
use crate::chart::{Axis, Band, LOOKS, Mark, marks, n, name_room, row_names, title_below, x_axis};
use maud::{Markup, html};
use study::JobsStudy;
use study::jobs::CellData;

const ROW: f64 = 34.0;
const TOP: f64 = 8.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    if data.drawing.cells.is_empty() {
        return None;
    }
    let names: Vec<String> = data.drawing.cells.iter().map(name).collect();
    let left = name_room(names.iter().map(String::as_str));
    let bottom = TOP + ROW * data.drawing.cells.len() as f64;
    let values = data.drawing.cells.iter().flat_map(|cell| {
        let plot = &cell.box_plot;
        let ends = [plot.low_whisker_ns, plot.high_whisker_ns];
        plot.outliers_ns.iter().copied().chain(ends)
    });
    let axis = time_axis(data, values.map(|ns| ns as f64)).between(left, WIDTH - 24.0);
    let (unit, title) = time_title(&axis, data.summary.primary.title());
    let y = |row: usize| TOP + ROW * (row as f64 + 0.5);
    Some(Figure {
        name: "box-plot".into(),
        title: format!("Distribution of the {}", data.summary.primary.title()),
        caption: with_omission(data, caption(data, &axis)),
        height: bottom + 48.0,
        body: html! {
            (x_axis(&axis, Band(TOP, bottom), unit))
            (title_below(&axis, bottom, &title))
            (row_names(names.iter().map(String::as_str), left, y))
            @for (row, cell) in data.drawing.cells.iter().enumerate() { (one(cell, &axis, y(row))) }
        },
    })
}

fn one(cell: &CellData, axis: &Axis, y: f64) -> Markup {
    let look = cell.look % LOOKS;
    let plot = &cell.box_plot;
    let x = |ns: i64| axis.at(ns as f64);
    let (low, q1, median, q3, high) = (
        x(plot.low_whisker_ns),
        x(plot.q1_ns),
        x(plot.median_ns),
        x(plot.q3_ns),
        x(plot.high_whisker_ns),
    );
    let whiskers = format!(
        "M{} {y}H{}M{} {y}H{}M{} {}v10M{} {}v10",
        n(low),
        n(q1),
        n(q3),
        n(high),
        n(low),
        y - 5.0,
        n(high),
        y - 5.0,
    );
    let outliers = plot.outliers_ns.iter().map(|&ns| (x(ns), y));
    html! {
        path class=(format!("mark s{look}")) d=(whiskers) {}
        rect class=(format!("box s{look} f{look}")) x=(n(q1)) y=(n(y - 9.0))
            width=(n((q3 - q1).max(1.0))) height="18" {}
        path class=(format!("median s{look}")) d=(format!("M{} {}v18", n(median), y - 9.0)) {}
        path class=(format!("mark s{look}")) d=(marks(Mark::of(cell.look), outliers)) {}
    }
}

fn caption(data: &JobsStudy, axis: &Axis) -> String {
    let thinned = data
        .drawing
        .cells
        .iter()
        .any(|cell| cell.box_plot.outlier_count > cell.box_plot.outliers_ns.len() as u64);
    let mut text = "A box spans the quartiles, its thick line is the median, whiskers reach to 1.5 interquartile \
                    ranges, marks are what lies beyond. Look for boxes shifted to the right (overhead) and for marks \
                    far to the right (rare, long delays)."
        .to_owned();
    if thinned {
        text += " Marks are thinned; the most extreme are kept.";
    }
    let below = |cell: &CellData| cell.box_plot.outliers_ns.first().is_some_and(|&ns| ns <= 0);
    if axis.is_log() && data.drawing.cells.iter().any(below) {
        text += " Values of 0 or less stand at the left edge.";
    }
    text
}
