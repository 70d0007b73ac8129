//! Every value of one part, a row for each subject: the raw points, and a box over them.

use super::{of_part, row_name, shares};
use crate::chart::{Axis, LOOKS, Mark, marks};
use crate::figure::Figure;
use crate::figure::plot::{Rows, Side, lying};
use maud::{Markup, html};
use record::series::{SeriesFigure, SeriesRecord, SeriesSummary};
use stats::Sorted;
use text::amount::axis_unit;
use text::words::{capital, clean};

const ROW: f64 = 34.0;

pub(super) fn draw(record: &SeriesRecord, summary: &SeriesSummary, part: &str) -> Option<Figure> {
    let figures = of_part(summary, part);
    // The table, and the shares if there are any, show values equal in every round.
    let varies = figures.iter().any(|f| f.least != f.worst);
    let differs = figures.iter().any(|f| f.median != figures[0].median);
    let stacked = figures
        .iter()
        .any(|f| !shares(summary, &f.subject, part).is_empty());
    if !varies && (stacked || !differs) {
        return None;
    }
    let names: Vec<String> = (figures.iter())
        .map(|f| row_name(summary, &f.subject))
        .collect();
    let middle = figures.iter().map(|f| f.median as f64).fold(0.0, f64::max);
    let (unit, unit_name) = axis_unit(figures.first()?.unit, middle);
    let ends = figures.iter().flat_map(|f| [f.least, f.worst]);
    let ends = ends.map(|value| value as f64 / unit);
    let axis = Axis::fitting(ends);
    let scale = if axis.is_log() { ", log scale" } else { "" };
    let side = Side::plain(axis, format!("{part} in {unit_name}{scale}"));
    let plot = Rows::new(&names, side, ROW, (8.0, 24.0));
    let body = html! {
        @for (row, figure) in figures.iter().enumerate() {
            (one(&values(record, figure), &plot.x, unit, plot.y(row), row))
        }
    };
    let caption = "Every value is a mark, in the order taken from top to bottom of its row. From 6 values on a box spans the quartiles, its \
                   thick line is the median. Look for rows far to the right and for marks far from their box.";
    let title = format!("{}, every value", capital(&clean(part)));
    Some(plot.figure(super::file_name("values", part), title, caption, body))
}

fn values(record: &SeriesRecord, figure: &SeriesFigure) -> Vec<i64> {
    let same = |s: &&record::series::Series| s.subject == figure.subject && s.part == figure.part;
    let found = record.series.iter().find(same);
    found.map_or_else(Vec::new, |s| s.values.iter().map(|v| v.value).collect())
}

fn one(values: &[i64], axis: &Axis, unit: f64, y: f64, row: usize) -> Markup {
    let look = row % LOOKS;
    let sorted = Sorted::new(values.to_vec());
    let at = |p: f64| axis.at(sorted.nearest_rank(p).unwrap_or(0) as f64 / unit);
    let (q1, median, q3) = (at(0.25), at(0.5), at(0.75));
    let count = values.len().max(1) as f64;
    let points = values.iter().enumerate().map(|(place, value)| {
        let down = (place as f64 + 0.5) / count - 0.5;
        (axis.at(*value as f64 / unit), y + down * (ROW - 10.0))
    });
    html! {
        path class=(format!("mark s{look}")) d=(marks(Mark::Small, points)) {}
        @if values.len() as u64 >= stats::needed_count(0.5, stats::DEFAULT_CONFIDENCE).unwrap_or(0) {
            (lying(look, [q1, median, q3], y))
        }
    }
}
