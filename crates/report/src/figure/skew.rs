//! How far apart the cells of a trial started.

use super::{Figure, WIDTH, time_title};
use crate::chart::{Axis, Band, Mark, marks, n, name_room, row_names, sample, title_below, x_axis};
use maud::html;
use study::JobsStudy;
use text::words::clean;

const ROW: f64 = 36.0;
const TOP: f64 = 50.0;
/// Two containers released by a polled file on an emulated ZCU102 board: published, in ns.
const PUBLISHED_NS: f64 = 3_400_000.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let skews = &data.summary.skews;
    if skews.is_empty() {
        return None;
    }
    let names: Vec<String> = skews
        .iter()
        .map(|skew| format!("{} ({})", clean(&skew.trial), skew.cells))
        .collect();
    let left = name_room(names.iter().map(String::as_str));
    let bottom = TOP + ROW * skews.len() as f64;
    let all = skews
        .iter()
        .flat_map(|skew| skew.skew_ns.iter().chain(&skew.first_of_cpu_skew_ns));
    let values = all.map(|&ns| (ns as f64).max(1.0)).chain([PUBLISHED_NS]);
    let axis = Axis::log(values).between(left, WIDTH - 24.0);
    let (unit, title) = time_title(&axis, "latest minus earliest start");
    let y = |row: usize| TOP + ROW * (row as f64 + 0.5);
    let published = axis.at(PUBLISHED_NS);
    let at = |values: &[u64], y: f64| {
        let place = |&ns: &u64| (axis.at((ns as f64).max(1.0)), y);
        values.iter().map(place).collect::<Vec<_>>()
    };
    Some(Figure {
        name: "skew".into(),
        title: "How far apart cells that run together started".to_owned(),
        caption: "One mark per round; in brackets the number of cells. Circles: all cells. Squares: only the first \
                  cell of each cpu, which is what the barrier itself answers for, because cells that share a cpu \
                  must start one after the other. The dashed line is the published 3.4 ms between two rootful \
                  containers on an emulated ZCU102 board; it was measured on another machine, so it gives the order \
                  of magnitude, not a comparison."
            .to_owned(),
        height: bottom + 48.0,
        body: html! {
            path class="mark s0" d=(sample(Mark::Circle, left + 6.0, 12.0)) {}
            text x=(n(left + 16.0)) y="16.5" { "all cells" }
            path class="mark s1" d=(sample(Mark::Square, left + 96.0, 12.0)) {}
            text x=(n(left + 106.0)) y="16.5" { "first of each cpu" }
            text class="faint end" x=(n((published + 60.0).clamp(left + 90.0, WIDTH - 8.0))) y="41" {
                "published: 3.4 ms, 2 containers"
            }
            (x_axis(&axis, Band(TOP, bottom), unit))
            (title_below(&axis, bottom, &title))
            path class="ref" d=(format!("M{} {}V{bottom}", n(published), TOP - 4.0)) {}
            (row_names(names.iter().map(String::as_str), left, y))
            @for (row, skew) in skews.iter().enumerate() {
                path class="mark s0" d=(marks(Mark::Circle, at(&skew.skew_ns, y(row) - 6.0))) {}
                path class="mark s1" d=(marks(Mark::Square, at(&skew.first_of_cpu_skew_ns, y(row) + 6.0))) {}
            }
        },
    })
}
