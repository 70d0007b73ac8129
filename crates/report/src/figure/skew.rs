//! How far apart the cells of a trial started.

use super::plot::{Rows, Side, key};
use super::{Figure, WIDTH};
use crate::chart::{Axis, Mark, marks, n};
use maud::html;
use study::JobsStudy;
use text::words::clean;

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
    let all = skews
        .iter()
        .flat_map(|skew| skew.skew_ns.iter().chain(&skew.first_of_cpu_skew_ns));
    let values = all.map(|&ns| (ns as f64).max(1.0)).chain([PUBLISHED_NS]);
    let side = Side::time(Axis::log(values), "latest minus earliest start");
    let plot = Rows::new(&names, side, 36.0, (50.0, 24.0));
    let published = plot.x.at(PUBLISHED_NS);
    let at = |values: &[u64], y: f64| {
        let place = |&ns: &u64| (plot.x.at((ns as f64).max(1.0)), y);
        values.iter().map(place).collect::<Vec<_>>()
    };
    let marked = [
        (Mark::Circle, "all cells"),
        (Mark::Square, "first of each cpu"),
    ];
    let body = html! {
        (key(plot.left + 6.0, &marked))
        text class="faint end" x=(n((published + 60.0).clamp(plot.left + 90.0, WIDTH - 8.0))) y="41" {
            "published: 3.4 ms, 2 containers"
        }
        (plot.reference(PUBLISHED_NS))
        @for (row, skew) in skews.iter().enumerate() {
            path class="mark s0" d=(marks(Mark::Circle, at(&skew.skew_ns, plot.y(row) - 6.0))) {}
            path class="mark s1" d=(marks(Mark::Square, at(&skew.first_of_cpu_skew_ns, plot.y(row) + 6.0))) {}
        }
    };
    let caption = "One mark per round; in brackets the number of cells. Circles: all cells. Squares: only the first cell of each cpu, which \
                   is what the barrier itself answers for, because cells that share a cpu must start one after the other. The dashed line \
                   is the published 3.4 ms between two rootful containers on an emulated ZCU102 board; it was measured on another machine, \
                   so it gives the order of magnitude, not a comparison.";
    Some(plot.figure(
        "skew",
        "How far apart cells that run together started",
        caption,
        body,
    ))
}
