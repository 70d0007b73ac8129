//! Ratios of medians and of p99 to the baseline, with their intervals.

use super::plot::{Rows, Side};
use super::{Figure, name, with_omission};
use crate::chart::{Axis, Mark, marks, n};
use maud::{Markup, html};
use stats::{Comparison, Ratio};
use study::JobsStudy;

/// The name of the picture's file.
pub(crate) const NAME: &str = "ratios";

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    let rows: Vec<_> = data
        .drawing
        .cells
        .iter()
        .filter_map(|cell| Some((cell, data.summary_of(cell).against_baseline.as_ref()?)))
        .collect();
    let rows: Vec<(String, &Comparison)> = rows.into_iter().map(|(c, r)| (name(c), r)).collect();
    let baseline = text::words::clean(&data.summary.baseline);
    let figure = picture(&rows, &baseline, NAME)?;
    let caption = with_omission(data, figure.caption);
    Some(Figure { caption, ..figure })
}

/// Ratios of named rows to `baseline`; `None` where there is no row.
pub(crate) fn picture(
    rows: &[(String, &Comparison)],
    baseline: &str,
    file: &'static str,
) -> Option<Figure> {
    if rows.is_empty() {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    // Estimates set the axis; an interval that is wildly wider (two rounds that disagree) runs to its edge.
    let estimates = || {
        let both = rows
            .iter()
            .flat_map(|(_, c)| [Some(&c.ratio_of_medians), c.ratio_of_p99.as_ref()]);
        both.flatten()
    };
    let (least, most) = estimates().fold((1.0_f64, 1.0_f64), |(least, most), r| {
        (least.min(r.value), most.max(r.value))
    });
    let room = (most / least).max(1.05).powi(2);
    let ends = estimates().flat_map(|r| [r.low.unwrap_or(r.value), r.high.unwrap_or(r.value)]);
    let ends = ends.map(|end| end.clamp(least / room, most * room));
    let axis = Axis::log(ends.chain([1.0, least, most]));
    let side = Side::plain(axis, format!("ratio to {baseline}, no unit, log scale"));
    let plot = Rows::of_two(
        &names,
        side,
        [(Mark::Circle, "median"), (Mark::Triangle, "p99")],
    );
    let body = html! {
        (plot.reference(1.0))
        @for (row, (_, comparison)) in rows.iter().enumerate() {
            (one(&comparison.ratio_of_medians, &plot.x, plot.y(row) - 6.0, 0, Mark::Circle))
            @if let Some(p99) = &comparison.ratio_of_p99 {
                (one(p99, &plot.x, plot.y(row) + 6.0, 1, Mark::Triangle))
            }
        }
    };
    let caption = format!(
        "Ratio to {baseline} with its 95 % interval over rounds: circles for the median, triangles for p99. An interval that crosses the \
         dashed line at 1 shows no difference from {baseline}; one wholly to the right of it is slower. An arrow continues beyond the \
         picture. A mark without an interval rests on one round. Triangles are absent where a round is too small for a p99."
    );
    Some(plot.figure(file, format!("Against {baseline}"), caption, body))
}

fn one(ratio: &Ratio, axis: &Axis, y: f64, look: usize, mark: Mark) -> Markup {
    let interval = ratio.low.zip(ratio.high).map(|(low, high)| {
        let (from, to) = (axis.at(low), axis.at(high));
        // An end inside the picture is a bar, one beyond it an arrow.
        let end = |at: f64, inside: bool, tip: f64| match inside {
            true => format!("M{} {}v6", n(at), y - 3.0),
            false => format!("M{} {}l{} 3l{} 3", n(at + tip), y - 3.0, n(-tip), n(tip)),
        };
        format!(
            "M{} {y}H{}{}{}",
            n(from),
            n(to),
            end(from, axis.reaches(low), 5.0),
            end(to, axis.reaches(high), -5.0)
        )
    });
    html! {
        @if let Some(interval) = interval { path class=(format!("mark s{look}")) d=(interval) {} }
        path class=(format!("mark s{look} f{look}")) d=(marks(mark, [(axis.at(ratio.value), y)])) {}
    }
}
