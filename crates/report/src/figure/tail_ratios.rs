//! p95 and p99 over the median: how much worse the bad jobs are than the usual ones.

use super::plot::{Rows, Side};
use super::{Figure, name, with_omission};
use crate::chart::{Axis, LOOKS, n};
use maud::{Markup, html};
use study::JobsStudy;
use text::words::{needs, ratio};

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    if data.drawing.cells.is_empty() {
        return None;
    }
    let names: Vec<String> = data.drawing.cells.iter().map(name).collect();
    let rows: Vec<[Bar; 2]> = data
        .drawing
        .cells
        .iter()
        .map(|cell| bars(data, cell))
        .collect();
    let values = rows.iter().flatten().filter_map(|bar| bar.value);
    let values: Vec<f64> = values.collect();
    let wide = values.iter().any(|&value| value > 20.0);
    let axis = if wide {
        Axis::log(values.iter().copied().chain([1.0]))
    } else {
        Axis::linear(values.iter().copied().chain([0.0, 1.0]))
    };
    let scale = if axis.is_log() { ", log scale" } else { "" };
    let side = Side::plain(
        axis,
        format!("ratio to the cell's own median, no unit{scale}"),
    );
    let plot = Rows::new(&names, side, 40.0, (30.0, 64.0));
    let left = plot.left;
    let body = html! {
        rect class="bar f0" x=(n(left)) y="6" width="14" height="12" {}
        text x=(n(left + 20.0)) y="16.5" { "p95 / median" }
        rect class="bar2 f0 s0" x=(n(left + 126.0)) y="6" width="14" height="12" {}
        text x=(n(left + 146.0)) y="16.5" { "p99 / median" }
        @for (row, (cell, bars)) in data.drawing.cells.iter().zip(&rows).enumerate() {
            (one(&bars[0], &plot.x, plot.y(row) - 15.0, cell.look, "bar"))
            (one(&bars[1], &plot.x, plot.y(row) + 1.0, cell.look, "bar2"))
        }
        (plot.reference(1.0))
    };
    let caption = "95th (full) and 99th (pale) percentile over the median. 1 means that bad jobs are no longer than usual ones; compare \
                   cells with each other, and beware of a p99 many times the median. Where the sample is too small for a percentile, the \
                   number of samples it needs stands in its place.";
    let caption = with_omission(data, caption.to_owned());
    Some(plot.figure("tail-ratios", "Tail ratios", caption, body))
}

struct Bar {
    value: Option<f64>,
    text: String,
}

fn bars(data: &JobsStudy, cell: &study::jobs::CellData) -> [Bar; 2] {
    let summary = &data.summary_of(cell).metrics[0].summary;
    let bar = |value: Option<f64>, probability| Bar {
        value,
        text: match (value, summary.quantile(probability)) {
            (Some(value), _) => ratio(value),
            (None, Some(few)) if few.value_ns.is_none() => needs(few),
            _ => "median not positive".to_owned(),
        },
    };
    [
        bar(summary.tail_ratio_p95, 0.95),
        bar(summary.tail_ratio_p99, 0.99),
    ]
}

fn one(bar: &Bar, axis: &Axis, y: f64, look: usize, class: &str) -> Markup {
    let (from, _) = axis.ends();
    let to = bar.value.map_or(from, |value| axis.at(value));
    let look = look % LOOKS;
    html! {
        @if bar.value.is_some() {
            rect class=(format!("{class} f{look} s{look}")) x=(n(from)) y=(n(y))
                width=(n((to - from).max(1.0))) height="13" {}
        }
        text class="faint" x=(n(to + 5.0)) y=(n(y + 11.0)) { (bar.text) }
    }
}
