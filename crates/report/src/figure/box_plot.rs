//! Box plots of the primary metric, one row per cell, on a logarithmic axis.

use super::plot::{Rows, Side, lying};
use super::{Figure, name, time_axis, with_omission};
use crate::chart::{Axis, LOOKS, Mark, marks, n};
use maud::{Markup, html};
use study::JobsStudy;
use study::jobs::CellData;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    if data.drawing.cells.is_empty() {
        return None;
    }
    let names: Vec<String> = data.drawing.cells.iter().map(name).collect();
    let values = data.drawing.cells.iter().flat_map(|cell| {
        let plot = &cell.box_plot;
        let ends = [plot.low_whisker_ns, plot.high_whisker_ns];
        plot.outliers_ns.iter().copied().chain(ends)
    });
    let axis = time_axis(data, values.map(|ns| ns as f64));
    let caption = with_omission(data, caption(data, &axis));
    let title = data.summary.primary.title();
    let rows = Rows::new(&names, Side::time(axis, title), 34.0, (8.0, 24.0));
    let body = html! {
        @for (row, cell) in data.drawing.cells.iter().enumerate() { (one(cell, &rows.x, rows.y(row))) }
    };
    Some(rows.figure(
        "box-plot",
        format!("Distribution of the {title}"),
        caption,
        body,
    ))
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
        (lying(look, [q1, median, q3], y))
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
