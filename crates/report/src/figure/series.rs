//! The primary metric over time, one panel per cell, the tail marked.

use super::plot::path;
use super::{Figure, WIDTH, name, time_axis, time_title, with_omission};
use crate::chart::{Axis, Band, LOOKS, Mark, marks, n, title_below, title_left, y_axis};
use maud::{Markup, html};
use std::fmt::Write;
use study::JobsStudy;
use study::jobs::{CellData, RoundData};
use text::units::time;

const LEFT: f64 = 74.0;
const TOP: f64 = 46.0;
const PANEL: f64 = 72.0;
const GAP: f64 = 24.0;
const MOST_PANELS: usize = 8;
/// Width in px from which a round has room for `round 10`, not just for its number.
const NAMED: f64 = 62.0;
/// Most rounds drawn, from the first: with more, nothing could be seen.
const MOST_ROUNDS: u32 = 12;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let cells = &data.drawing.cells[..data.drawing.cells.len().min(MOST_PANELS)];
    let numbers = cells.iter().flat_map(|cell| &cell.rounds);
    let last = numbers.map(|round| round.number).max()?;
    let rounds = last.clamp(1, MOST_ROUNDS) as usize;
    let values = cells.iter().flat_map(|cell| {
        let spans = drawn(cell).flat_map(|(_, round)| &round.spans);
        spans.flat_map(|&(_, low, high)| [low, high])
    });
    let longest = cells.iter().flat_map(|cell| &cell.rounds);
    let longest = longest.map(|round| round.length_ns).max().unwrap_or(0);
    let y = time_axis(data, values.map(|ns| ns as f64));
    let (unit, title) = time_title(&y, data.summary.primary.title());
    let bottom = TOP + cells.len() as f64 * (PANEL + GAP) - GAP;
    let across = Axis::linear([0.0, 1.0]).between(LEFT, WIDTH - 24.0);
    let named = width(rounds) >= NAMED;
    let below = match named {
        true => format!("time, {} per round", time(longest as f64)),
        false => format!("round, each up to {}", time(longest as f64)),
    };
    let mut caption = format!(
        "The {} in the order measured, rounds side by side (each up to {}); the band spans the smallest and largest value at each moment. \
         Crosses mark samples beyond the cell's p99. Look for spikes that recur at equal distances, for bursts, and for rounds that \
         differ from each other.",
        data.summary.primary.title(),
        time(longest as f64),
    );
    if cells.iter().any(|cell| cell.p99_ns.is_none()) {
        caption += " Cells without crosses have too few samples for a p99.";
    }
    if last > MOST_ROUNDS {
        let _ = write!(
            caption,
            " Of {last} rounds the first {MOST_ROUNDS} are drawn."
        );
    }
    if data.drawing.cells.len() > MOST_PANELS {
        let more = data.drawing.cells.len() - MOST_PANELS;
        let _ = write!(caption, " {more} more are not drawn.");
    }
    Some(Figure {
        name: "time-series".into(),
        title: format!("The {} job by job", data.summary.primary.title()),
        caption: with_omission(data, caption),
        size: (WIDTH, bottom + 48.0),
        body: html! {
            (title_left(8.0, 26.0, &title))
            path class="tail" d=(marks(Mark::Small, [(WIDTH - 116.0, 12.0)])) {}
            text class="tailtext" x=(n(WIDTH - 106.0)) y="16.5" { "beyond p99" }
            @for (place, cell) in cells.iter().enumerate() {
                @let top = TOP + place as f64 * (PANEL + GAP);
                @let y = y.clone().between(top + PANEL, top);
                (panel(cell, &y, unit, rounds, longest))
            }
            @for round in 0..rounds {
                text class="faint mid" x=(n(LEFT + (round as f64 + 0.5) * width(rounds))) y=(n(bottom + 17.0)) {
                    @if named { "round " } (round + 1)
                }
            }
            (title_below(&across, bottom, &below))
        },
    })
}

/// The rounds that are drawn, with their place from 0.
fn drawn(cell: &CellData) -> impl Iterator<Item = (usize, &RoundData)> {
    let rounds = cell
        .rounds
        .iter()
        .filter(|round| round.number <= MOST_ROUNDS);
    rounds.map(|round| (round.number.max(1) as usize - 1, round))
}

/// Width of one round in px.
fn width(rounds: usize) -> f64 {
    (WIDTH - 24.0 - LEFT) / rounds as f64
}

fn panel(cell: &CellData, y: &Axis, unit: f64, rounds: usize, longest: i64) -> Markup {
    let look = cell.look % LOOKS;
    let (bottom, top) = y.ends();
    let right = WIDTH - 24.0;
    let x = |round: usize, at: i64| {
        let part = at as f64 / (longest as f64).max(1.0);
        LEFT + (round as f64 + part) * width(rounds)
    };
    let tail = drawn(cell).flat_map(|(round, data)| {
        let points = data.tail.iter();
        points.map(move |&(at, ns)| (round, at, ns))
    });
    let tail = tail.map(|(round, at, ns)| (x(round, at), y.at(ns as f64)));
    let dividers: String = (1..rounds)
        .map(|round| format!("M{} {}V{}", n(x(round, 0)), n(top), n(bottom)))
        .collect();
    html! {
        (y_axis(y, Band(LEFT, right), unit))
        path class="rule" d=(dividers) {}
        @for (round, data) in drawn(cell) {
            path class=(format!("band s{look} f{look}")) d=(band(&data.spans, y, |at| x(round, at))) {}
        }
        path class="tail" d=(marks(Mark::Small, tail)) {}
        text class="head" x=(n(LEFT)) y=(n(top - 6.0)) { (name(cell)) }
    }
}

/// The outline of a band: along the largest values and back along the smallest.
fn band(spans: &[(i64, i64, i64)], y: &Axis, x: impl Fn(i64) -> f64) -> String {
    let high = spans.iter().map(|&(at, _, high)| (at, high));
    let low = spans.iter().rev().map(|&(at, low, _)| (at, low));
    let close = if spans.is_empty() { "" } else { "Z" };
    path(high.chain(low).map(|(at, ns)| (x(at), y.at(ns as f64)))) + close
}
