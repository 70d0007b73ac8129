//! A counter of the machine against the largest value of each window.

use super::{Figure, WIDTH, time_title, with_omission};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, title_below, title_left, x_axis,
    y_axis,
};
use crate::data::Data;
use maud::html;

const LEFT: f64 = 74.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 320.0;

pub(super) fn draw(data: &Data) -> Option<Figure> {
    let scatter = data.scatter.as_ref()?;
    let points = || scatter.clouds.iter().flat_map(|(_, points)| points);
    let x = Axis::linear(points().map(|point| point.0 as f64)).between(LEFT, WIDTH - 24.0);
    let y = Axis::log(points().map(|point| point.1 as f64)).between(BOTTOM, TOP);
    let (unit, title) = time_title(
        &y,
        &format!("largest {} of a window", data.summary.primary.title()),
    );
    let entries: Vec<Entry> = (scatter.clouds.iter().enumerate())
        .map(|(look, (name, _))| Entry { look, name })
        .collect();
    Some(Figure {
        name: "counters".into(),
        title: format!(
            "{} against {}",
            crate::words::capital(&scatter.name),
            data.summary.primary.title()
        ),
        caption: with_omission(
            data,
            format!(
                "Each mark is one window of about {} ms of one cell: what was counted in it, and its largest {}. The \
                 counter drawn is the one whose rank correlation is farthest from 0. A cloud that rises to the right \
                 says that the two go together, not that one causes the other. Windows follow each other in time and \
                 are not independent.",
                scatter.window_ns / 1_000_000,
                data.summary.primary.title()
            ),
        ),
        height: BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT),
        body: html! {
            (title_left(8.0, TOP, &title))
            (x_axis(&x, Band(TOP, BOTTOM), 1.0))
            (y_axis(&y, Band(LEFT, WIDTH - 24.0), unit))
            (title_below(&x, BOTTOM, &format!("{} in a window", scatter.name)))
            @for (look, (_, points)) in scatter.clouds.iter().enumerate() {
                @let look = look % LOOKS;
                path class=(format!("mark s{look}"))
                    d=(marks(Mark::of(look), points.iter().map(|p| (x.at(p.0 as f64), y.at(p.1 as f64))))) {}
            }
            (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
        },
    })
}
