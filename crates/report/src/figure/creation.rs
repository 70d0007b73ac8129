//! How long it took to create a cell.

use super::{Figure, WIDTH, with_omission};
use crate::chart::{Axis, Band, LOOKS, n, name_room, row_names, title_below, x_axis};
use maud::html;
use study::JobsStudy;
use text::units::{Unit, time};

const ROW: f64 = 28.0;
const TOP: f64 = 8.0;

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
    let left = name_room(names.iter().map(String::as_str));
    let bottom = TOP + ROW * rows.len() as f64;
    let values = rows.iter().map(|(_, ns)| *ns as f64).chain([0.0]);
    let axis = Axis::linear(values).between(left, WIDTH - 84.0);
    let unit = Unit::of(axis.middle());
    let y = |row: usize| TOP + ROW * (row as f64 + 0.5);
    Some(Figure {
        name: "creation".into(),
        title: "How long it takes to create a cell".to_owned(),
        caption: with_omission(
            data,
            "Median over rounds of the wall time from the request to the engine until the first message of the \
             program in the cell. It bounds from below how fast a failed cell can be replaced."
                .to_owned(),
        ),
        height: bottom + 48.0,
        body: html! {
            (x_axis(&axis, Band(TOP, bottom), unit.ns()))
            (title_below(&axis, bottom, &format!("creation time in {}", unit.name())))
            (row_names(names.iter().map(String::as_str), left, y))
            @for (row, (cell, ns)) in rows.iter().enumerate() {
                @let look = cell.look % LOOKS;
                @let from = axis.at(0.0);
                @let to = axis.at(*ns as f64);
                rect class=(format!("bar f{look}")) x=(n(from)) y=(n(y(row) - 8.0))
                    width=(n((to - from).max(1.0))) height="16" {}
                text class="faint" x=(n(to + 6.0)) y=(n(y(row) + 4.5)) { (time(*ns as f64)) }
            }
        },
    })
}
