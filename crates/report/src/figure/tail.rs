//! How long the longest of many jobs may take: the measured tail, the fitted one and its band, ten times as far out as
//! was measured. Only cells that passed the tests have a curve.

use super::plot::{Plot, Side, path};
use super::{Figure, name, time_axis};
use crate::chart::{Axis, LOOKS, n};
use crate::tails::curve_name;
use maud::html;
use stats::Tail;
use std::fmt::Write;
use study::JobsStudy;
use study::jobs::CellData;

/// The stem of its file name.
pub(crate) const NAME: &str = "tail";
/// Most curves drawn: the bands of more would be indistinguishable.
const MOST: usize = 6;
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
    let x = time_axis(data, values);
    let metric = data.summary.primary;
    let jobs = drawn.iter().map(|(_, tail)| tail.jobs).max()?;
    let once = 1.0 / jobs as f64;
    let mut caption = format!(
        "How likely a job takes longer than the time on the horizontal axis ({}). Marks are measured jobs, lines the generalised Pareto \
         law above each cell's threshold, shaded areas its 95 % band. Below the dashed line (one job in all measured) the curve is \
         extrapolation; it ends at a tenth of that, because no measurement could refute it further out.",
        curve_name(metric)
    );
    if !left.is_empty() {
        let _ = write!(caption, " {} more curves are left out.", left.len());
    }
    let y = Side::plain(
        Axis::log([most, least]),
        "probability of exceedance per job, log scale",
    );
    let mut plot = Plot::new(Side::time(x, metric.title()), y, 320.0);
    for (cell, tail) in drawn {
        let curve = || tail.curve.iter();
        let low = curve().map(|point| (point.low_ns, point.probability));
        let high = curve()
            .rev()
            .map(|point| (point.high_ns, point.probability));
        let band = path(low.chain(high).map(|point| plot.at(point))) + "Z";
        plot.draw(html! { path class=(format!("box f{}", cell.look % LOOKS)) d=(band) {} });
        plot.line(
            cell.look,
            curve().map(|point| (point.value_ns, point.probability)),
        );
        plot.marks(cell.look, measured(&(cell, tail)));
        plot.name(cell.look, name(cell));
    }
    let ((left, right), once) = (plot.x.ends(), plot.y.at(once));
    plot.draw(html! { path class="ref" d=(format!("M{} {}H{}", n(left), n(once), n(right))) {} });
    Some(plot.figure(
        NAME,
        format!("How long the {} may be", metric.title()),
        caption,
    ))
}
