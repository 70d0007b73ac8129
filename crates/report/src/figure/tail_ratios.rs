//! p95 and p99 over the median: how much worse the bad jobs are than the usual ones.

use super::{Figure, WIDTH, name, with_omission};
use crate::chart::{Axis, Band, LOOKS, n, name_room, row_names, title_below, x_axis};
use maud::{Markup, html};
use study::JobsStudy;
use text::words::{needs, ratio};

const ROW: f64 = 40.0;
const TOP: f64 = 30.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    if data.drawing.cells.is_empty() {
        return None;
    }
    let names: Vec<String> = data.drawing.cells.iter().map(name).collect();
    let left = name_room(names.iter().map(String::as_str));
    let bottom = TOP + ROW * data.drawing.cells.len() as f64;
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
    let axis = axis.between(left, WIDTH - 64.0);
    let y = |row: usize| TOP + ROW * (row as f64 + 0.5);
    let scale = if axis.is_log() { ", log scale" } else { "" };
    Some(Figure {
        name: "tail-ratios".into(),
        title: "Tail ratios".to_owned(),
        caption: with_omission(
            data,
            "95th (full) and 99th (pale) percentile over the median. 1 means that bad jobs are no longer than usual \
             ones; compare cells with each other, and beware of a p99 many times the median. Where the sample is too \
             small for a percentile, the number of samples it needs stands in its place."
                .to_owned(),
        ),
        height: bottom + 48.0,
        body: html! {
            rect class="bar f0" x=(n(left)) y="6" width="14" height="12" {}
            text x=(n(left + 20.0)) y="16.5" { "p95 / median" }
            rect class="bar2 f0 s0" x=(n(left + 126.0)) y="6" width="14" height="12" {}
            text x=(n(left + 146.0)) y="16.5" { "p99 / median" }
            (x_axis(&axis, Band(TOP, bottom), 1.0))
            (title_below(&axis, bottom, &format!("ratio to the cell's own median, no unit{scale}")))
            (row_names(names.iter().map(String::as_str), left, y))
            @for (row, (cell, bars)) in data.drawing.cells.iter().zip(&rows).enumerate() {
                (one(&bars[0], &axis, y(row) - 15.0, cell.look, "bar"))
                (one(&bars[1], &axis, y(row) + 1.0, cell.look, "bar2"))
            }
            path class="ref" d=(format!("M{} {TOP}V{bottom}", n(axis.at(1.0)))) {}
        },
    })
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
