//! How often a job takes at least a given time: the complementary distribution on logarithmic axes.

use super::{Figure, WIDTH, name, time_axis, time_title, with_omission};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, n, title_below, title_left,
    x_axis, y_axis,
};
use maud::html;
use std::fmt::Write;
use study::JobsStudy;
use study::jobs::CellData;

const LEFT: f64 = 74.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 330.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let points = || data.drawing.cells.iter().flat_map(|cell| &cell.ccdf);
    let least = points().map(|&(_, p)| p).fold(1.0, f64::min);
    let x = time_axis(data, points().map(|&(ns, _)| ns as f64)).between(LEFT, WIDTH - 24.0);
    let y = Axis::probability(least).between(BOTTOM, TOP);
    if data.drawing.cells.is_empty() {
        return None;
    }
    let (unit, title) = time_title(&x, data.summary.primary.title());
    let names: Vec<(usize, String)> = entries(data);
    let entries: Vec<Entry> = names
        .iter()
        .map(|(look, name)| Entry { look: *look, name })
        .collect();
    let width = WIDTH - LEFT;
    Some(Figure {
        name: "ccdf".into(),
        title: format!("How often the {} is at least x", data.summary.primary.title()),
        caption: with_omission(
            data,
            "The share of jobs that took at least the time on the horizontal axis, both axes logarithmic; the mark \
             at the end of each curve is the largest value seen. A steep fall is predictable; a long, flat stretch to \
             the right is a heavy tail. The lowest step is one job, so the last decade rests on few jobs."
                .to_owned(),
        ),
        height: BOTTOM + 56.0 + legend_height(&entries, width),
        body: html! {
            (title_left(8.0, TOP, "share of jobs, log scale"))
            (x_axis(&x, Band(TOP, BOTTOM), unit))
            (y_axis(&y, Band(LEFT, WIDTH - 24.0), 1.0))
            (title_below(&x, BOTTOM, &title))
            @for cell in &data.drawing.cells {
                @let look = cell.look % LOOKS;
                path class=(format!("line s{look} d{look}")) d=(steps(cell, &x, &y)) {}
                @if let Some(&(ns, p)) = cell.ccdf.last() {
                    path class=(format!("mark s{look}"))
                        d=(marks(Mark::of(look), [(x.at(ns as f64), y.at(p))])) {}
                }
            }
            (legend(&entries, LEFT, BOTTOM + 60.0, width))
        },
    })
}

/// One entry for each look in use: the cell's name, or the trial's where a look stands for a trial.
fn entries(data: &JobsStudy) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    for cell in &data.drawing.cells {
        match entries.iter_mut().find(|entry| entry.0 == cell.look) {
            Some(entry) => entry.1.clone_from(&data.summary_of(cell).trial),
            None => entries.push((cell.look, name(cell))),
        }
    }
    entries
}

fn steps(cell: &CellData, x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    for (place, &(ns, p)) in cell.ccdf.iter().enumerate() {
        let (x, y) = (n(x.at(ns as f64)), n(y.at(p)));
        let _ = match place {
            0 => write!(path, "M{x} {y}"),
            _ => write!(path, "V{y}H{x}"),
        };
    }
    path
}
