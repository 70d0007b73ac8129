//! How long it took to create a cell.

use super::plot::{Rows, Side};
use super::{Figure, with_omission};
use crate::chart::{Axis, LOOKS, n};
use maud::html;
use study::JobsStudy;
use text::units::time;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let rows: Vec<_> = data
        .drawing
        .cells
        .iter()
        .filter_map(|cell| Some((cell, data.summary_of(cell).create_median_ns?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|(cell, _)| super::name(cell)).collect();
    let values = rows.iter().map(|(_, ns)| *ns as f64).chain([0.0]);
    let side = Side::time(Axis::linear(values), "creation time");
    let plot = Rows::new(&names, side, 28.0, (8.0, 84.0));
    let body = html! {
        @for (row, (cell, ns)) in rows.iter().enumerate() {
            @let look = cell.look % LOOKS;
            @let (from, to, y) = (plot.x.at(0.0), plot.x.at(*ns as f64), plot.y(row));
            rect class=(format!("bar f{look}")) x=(n(from)) y=(n(y - 8.0))
                width=(n((to - from).max(1.0))) height="16" {}
            text class="faint" x=(n(to + 6.0)) y=(n(y + 4.5)) { (time(*ns as f64)) }
        }
    };
    let caption = "Median over rounds of the wall time from the request to the engine until the first message of the program in the cell. \
                   It bounds from below how fast a failed cell can be replaced.";
    let caption = with_omission(data, caption.to_owned());
    Some(plot.figure(
        "creation",
        "How long it takes to create a cell",
        caption,
        body,
    ))
}
