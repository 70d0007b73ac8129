//! How long the longest of many jobs may take: the measured tail, the fitted one and its band, ten times as far out as
//! was measured. Only cells that passed the tests have a curve.

use super::{Figure, WIDTH, name, time_axis, time_title};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, n, title_below, title_left,
    x_axis, y_axis,
};
use crate::tails::curve_name;
use maud::html;
use stats::{CurvePoint, Tail};
use std::fmt::Write;
use study::JobsStudy;
use study::jobs::CellData;

/// The stem of its file name.
pub(crate) const NAME: &str = "tail";
/// Most curves drawn: the bands of more would be indistinguishable.
const MOST: usize = 6;
const LEFT: f64 = 74.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 350.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let tail_of = |cell: &CellData| -> Option<&Tail> {
        let of = data.summary_of(cell);
        let found = data.summary.tails.iter().find(|tail| {
            tail.metric == data.summary.primary && tail.trial == of.trial && tail.cell == of.cell
        });
        found
            .map(|found| &found.tail)
            .filter(|tail| !tail.curve.is_empty())
    };
    let all: Vec<(&CellData, &Tail)> = data
        .drawing
        .cells
        .iter()
        .filter_map(|cell| Some((cell, tail_of(cell)?)))
        .collect();
    let (drawn, left) = all.split_at(all.len().min(MOST));
    let curves = || drawn.iter().flat_map(|(_, tail)| &tail.curve);
    let least = curves().map(|point| point.probability).reduce(f64::min)?;
    let most = curves().map(|point| point.probability).fold(0.0, f64::max);
    let measured = |(cell, tail): &(&CellData, &Tail)| -> Vec<(f64, f64)> {
        let from = tail.curve.first().map_or(1.0, |point| point.probability);
        let points = cell.ccdf.iter().filter(|&&(_, p)| p <= from);
        points.map(|&(ns, p)| (ns as f64, p)).collect()
    };
    let values = curves()
        .flat_map(|point| [point.low_ns, point.high_ns])
        .chain(drawn.iter().flat_map(&measured).map(|(ns, _)| ns));
    let x = time_axis(data, values).between(LEFT, WIDTH - 24.0);
    let y = Axis::log([most, least]).between(BOTTOM, TOP);
    let metric = data.summary.primary;
    let (unit, title) = time_title(&x, metric.title());
    let names: Vec<(usize, String)> = drawn.iter().map(|(c, _)| (c.look, name(c))).collect();
    let entries: Vec<Entry> = names
        .iter()
        .map(|(look, name)| Entry { look: *look, name })
        .collect();
    let jobs = drawn.iter().map(|(_, tail)| tail.jobs).max()?;
    let once = 1.0 / jobs as f64;
    let mut caption = format!(
        "How likely a job takes longer than the time on the horizontal axis ({}). Marks are measured jobs, lines the generalised Pareto \
         law above each cell's threshold, shaded areas its 95% band. Below the dashed line (one job in all measured) the curve is \
         extrapolation; it ends at a tenth of that, because no measurement could refute it further out.",
        curve_name(metric)
    );
    if !left.is_empty() {
        let _ = write!(caption, " {} more curves are left out.", left.len());
    }
    Some(Figure {
        name: NAME.into(),
        title: format!("How long the {} may be", metric.title()),
        caption,
        height: BOTTOM + 56.0 + legend_height(&entries, WIDTH - LEFT),
        body: html! {
            (title_left(8.0, TOP, "probability of exceedance per job, log scale"))
            (x_axis(&x, Band(TOP, BOTTOM), unit))
            (y_axis(&y, Band(LEFT, WIDTH - 24.0), 1.0))
            (title_below(&x, BOTTOM, &title))
            @for (cell, tail) in drawn {
                @let look = cell.look % LOOKS;
                path class=(format!("box f{look}")) d=(band(&tail.curve, &x, &y)) {}
                path class=(format!("line s{look} d{look}")) d=(line(&tail.curve, &x, &y)) {}
                path class=(format!("mark s{look}"))
                    d=(marks(Mark::of(look), measured(&(cell, tail)).iter().map(|&(ns, p)| (x.at(ns), y.at(p))))) {}
            }
            path class="ref" d=(format!("M{} {}H{}", n(LEFT), n(y.at(once)), n(WIDTH - 24.0))) {}
            (legend(&entries, LEFT, BOTTOM + 60.0, WIDTH - LEFT))
        },
    })
}

fn line(curve: &[CurvePoint], x: &Axis, y: &Axis) -> String {
    path(
        curve
            .iter()
            .map(|point| (x.at(point.value_ns), y.at(point.probability))),
    )
}

fn band(curve: &[CurvePoint], x: &Axis, y: &Axis) -> String {
    let low = curve
        .iter()
        .map(|point| (x.at(point.low_ns), y.at(point.probability)));
    let high = curve.iter().rev();
    let high = high.map(|point| (x.at(point.high_ns), y.at(point.probability)));
    path(low.chain(high)) + "Z"
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (place, (x, y)) in points.enumerate() {
        let _ = write!(
            path,
            "{}{} {}",
            if place == 0 { 'M' } else { 'L' },
            n(x),
            n(y)
        );
    }
    path
}
