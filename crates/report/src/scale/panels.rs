//! The cells of one trial beside each other: box, histogram and Lorenz curve of their means, and a heatmap of their
//! statistics, as the zcu102 thesis's Figs. 4.18 to 4.20.

use super::picture::{About, one};
use super::words::even;
use crate::chart::{Axis, Band, n, x_axis, y_axis};
use crate::figure::plot::path;
use crate::figure::{Figure, WIDTH};
use maud::{Markup, html};
use model::EngineKind;
use record::scale::{Between, ScalePoint, ScaleSummary, StatColumns};
use std::fmt::Write;
use text::units::{Unit, percent};
use text::words::grouped;

/// Numbers of cells that the thesis shows in detail.
const SHOWN: [u32; 3] = [16, 32, 64];
/// Fewer cells are no distribution.
const LEAST: usize = 4;

const TOP: f64 = 30.0;
const SIDE: f64 = 136.0;
const BOTTOM: f64 = TOP + SIDE;
const HEAT_TOP: f64 = BOTTOM + 74.0;
const BAND: f64 = 24.0;
const HEAT_LEFT: f64 = 52.0;
const HEAT_RIGHT: f64 = WIDTH - 150.0;
/// Shades of the heatmap.
const LEVELS: usize = 9;

/// Chosen numbers of cells of every engine, response times first.
pub(super) fn draw(summary: &ScaleSummary) -> Vec<(EngineKind, Vec<Figure>)> {
    let of_engine = |engine: EngineKind| {
        let enough = |point: &&ScalePoint| point.cells.number.len() >= LEAST;
        let points: Vec<&ScalePoint> = summary.of(engine).filter(enough).collect();
        let largest = points.iter().map(|point| point.count).max();
        let shown = points
            .into_iter()
            .filter(|point| SHOWN.contains(&point.count) || Some(point.count) == largest);
        let both = |point| [About::Response, About::Execution].map(|about| panels(point, about));
        shown.flat_map(both).flatten().collect::<Vec<Figure>>()
    };
    let engines = summary.engines.iter().map(|engine| engine.engine);
    let all = engines.map(|engine| (engine, of_engine(engine)));
    all.filter(|(_, figures)| !figures.is_empty()).collect()
}

/// Explanation of these figures.
pub(super) const EXPLAINED: &str = "Above, the cells' means: their box plot, how many cells have which mean, and the \
    share of the sum that the cells with the least means have together; the diagonal is equality. Below, every cell from \
    left to right, in stronger colour where its statistic is larger. Each row has its own scale, from the 2nd to the \
    98th percentile of what is drawn. Look for stripes: cells, or a cpu, that fare worse than others.";

fn panels(point: &ScalePoint, about: About) -> Option<Figure> {
    let between = about.of(point)?;
    let columns = match about {
        About::Execution => &point.cells.execution,
        About::Response => &point.cells.response,
    };
    let means: Vec<f64> = columns.mean_ns.iter().map(|&ns| ns as f64).collect();
    let unit = Unit::of(between.mean.median_ns as f64);
    Some(Figure {
        name: format!("cells-{}-{}", point.trial, about.tag()).into(),
        title: format!(
            "{} cells of {}: {}",
            point.count,
            point.engine,
            about.title()
        ),
        caption: caption(between, point.pinned),
        size: (WIDTH, HEAT_TOP + 4.0 * BAND + 46.0),
        body: html! {
            (box_panel(between, unit))
            (histogram(&means, unit))
            (lorenz(&means, between.spread.gini))
            (heat(point, columns))
        },
    })
}

fn caption(between: &Between, pinned: bool) -> String {
    let number = |value: Option<f64>| value.map_or("unknown".to_owned(), percent);
    let mut text = format!(
        "Coefficient of variation {}, Gini index {:.4}",
        number(between.spread.coefficient_of_variation),
        between.spread.gini.unwrap_or(0.0),
    );
    if let Some(fairness) = &between.fairness {
        let _ = write!(
            text,
            "; {} {}, where chance gives {}: {}",
            if pinned {
                "of cells that share a cpu"
            } else {
                "of cells that share all cpus"
            },
            percent(fairness.within),
            percent(fairness.chance),
            even(fairness)
        );
    }
    text + "."
}

fn box_panel(between: &Between, unit: Unit) -> Markup {
    let plot = &between.mean;
    let (left, right) = (62.0, 148.0);
    let ends = [plot.low_whisker_ns, plot.high_whisker_ns];
    let values = plot.outliers_ns.iter().copied().chain(ends);
    let y = Axis::linear(values.map(|ns| ns as f64)).between(BOTTOM, TOP);
    html! {
        text x="8" y="16" { "mean in " (unit.name()) }
        (y_axis(&y, Band(left, right), unit.ns()))
        (one(plot, &y, (left + right) / 2.0, 34.0, 0))
    }
}

fn histogram(means: &[f64], unit: Unit) -> Markup {
    let (left, right) = (196.0, 346.0);
    let (low, high) = ends(means);
    // Sturges' rule, limited to a readable number.
    let bins = ((means.len() as f64).log2().ceil() as usize + 1).clamp(4, 24);
    let mut counts = vec![0u32; bins];
    let span = (high - low).max(1.0);
    for mean in means {
        let bin = ((mean - low) / span * bins as f64) as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let x = Axis::linear([low, low + span]).between(left, right);
    let y = Axis::linear([0.0, f64::from(most)]).between(BOTTOM, TOP);
    let edge = |bin: usize| x.at(low + span * bin as f64 / bins as f64);
    html! {
        text x=(n(left - 30.0)) y="16" { "cells by their mean" }
        (y_axis(&y, Band(left, right), 1.0))
        (few_ticks(&x, unit))
        text class="mid" x=(n((left + right) / 2.0)) y=(n(BOTTOM + 38.0)) { "mean in " (unit.name()) }
        @for (bin, &count) in counts.iter().enumerate() {
            @if count > 0 {
                rect class="bar f0" x=(n(edge(bin) + 0.4)) y=(n(y.at(count.into())))
                    width=(n((edge(bin + 1) - edge(bin) - 0.8).max(0.6))) height=(n(BOTTOM - y.at(count.into()))) {}
            }
        }
    }
}

/// A horizontal axis in little room: the numbers at both ends only.
fn few_ticks(x: &Axis, unit: Unit) -> Markup {
    let (left, right) = x.ends();
    let ticks: Vec<_> = x
        .ticks(unit.ns(), 56.0)
        .into_iter()
        .filter(|t| t.text.is_some())
        .collect();
    let shown: Vec<_> = match ticks.as_slice() {
        [first, .., last] => vec![first, last],
        few => few.iter().collect(),
    };
    html! {
        path class="rule" d=(format!("M{} {}H{}", n(left), n(BOTTOM), n(right))) {}
        @for tick in shown {
            path class="rule" d=(format!("M{} {}v4", n(x.at(tick.value)), n(BOTTOM))) {}
            text class="faint mid" x=(n(x.at(tick.value))) y=(n(BOTTOM + 17.0)) { (tick.text.as_deref().unwrap_or_default()) }
        }
    }
}

/// Points of a Lorenz curve that can be told apart at this size.
const CURVE: usize = 64;

fn lorenz(means: &[f64], gini: Option<f64>) -> Markup {
    let (left, right) = (394.0, WIDTH - 10.0);
    let x = Axis::linear([0.0, 1.0]).between(left, right);
    let y = Axis::linear([0.0, 1.0]).between(BOTTOM, TOP);
    let points = stats::lorenz(means, CURVE).unwrap_or_default();
    let curve = path(
        points
            .into_iter()
            .map(|(share, sum)| (x.at(share), y.at(sum))),
    );
    html! {
        text x=(n(left - 24.0)) y="16" { "share of the sum" }
        (y_axis(&y, Band(left, right), 1.0))
        (x_axis(&x, Band(BOTTOM, BOTTOM), 1.0))
        text class="mid" x=(n((left + right) / 2.0)) y=(n(BOTTOM + 38.0)) { "share of the cells" }
        path class="ref" d=(format!("M{} {}L{} {}", n(x.at(0.0)), n(y.at(0.0)), n(x.at(1.0)), n(y.at(1.0)))) {}
        path class="line s1" d=(curve) {}
        @if let Some(gini) = gini {
            text class="faint end over" x=(n(right - 4.0)) y=(n(BOTTOM - 8.0)) { (format!("Gini {gini:.4}")) }
        }
    }
}

/// The cells by cpu where they are pinned, each cpu's in their order: place in the columns.
fn order(point: &ScalePoint) -> Vec<usize> {
    let mut order: Vec<usize> = (0..point.cells.number.len()).collect();
    order.sort_by_key(|&at| (cpu_of(point, at), at));
    order
}

/// The cpu of a cell that is pinned.
fn cpu_of(point: &ScalePoint, at: usize) -> Option<u32> {
    point.pinned.then(|| point.cells.cpu[at])
}

fn heat(point: &ScalePoint, columns: &StatColumns) -> Markup {
    let order = order(point);
    let some = |values: &[i64]| values.iter().map(|&v| Some(v)).collect::<Vec<_>>();
    let rows: [(&str, Vec<Option<i64>>); 4] = [
        ("mean", some(&columns.mean_ns)),
        ("sd", columns.sd_ns.clone()),
        ("p95", columns.p95_ns.clone()),
        ("p99", columns.p99_ns.clone()),
    ];
    let bottom = HEAT_TOP + 4.0 * BAND;
    html! {
        text x="8" y=(n(HEAT_TOP - 10.0)) { "every cell" (binned(order.len())) }
        text class="faint end" x=(n(WIDTH - 8.0)) y=(n(HEAT_TOP - 10.0)) { "faint to strong" }
        @for (row, (name, values)) in rows.iter().enumerate() {
            @let top = HEAT_TOP + row as f64 * BAND;
            text class="end" x=(n(HEAT_LEFT - 8.0)) y=(n(top + BAND / 2.0 + 4.0)) { (name) }
            (heat_row(&order, values, top))
        }
        (cpus(point, &order, bottom))
    }
}

/// Columns of a heatmap: a pixel each at least.
fn width_of(cells: usize) -> (usize, f64) {
    let room = (HEAT_RIGHT - HEAT_LEFT) as usize;
    let of_column = cells.div_ceil(room).max(1);
    let columns = cells.div_ceil(of_column).max(1);
    (of_column, (HEAT_RIGHT - HEAT_LEFT) / columns as f64)
}

fn binned(cells: usize) -> String {
    match width_of(cells).0 {
        1 => String::new(),
        many => format!(" (columns: largest of {many} neighbours)"),
    }
}

fn heat_row(order: &[usize], values: &[Option<i64>], top: f64) -> Markup {
    let (of_column, width) = width_of(order.len());
    let columns: Vec<Option<i64>> = order
        .chunks(of_column)
        .map(|cells| cells.iter().filter_map(|&at| values[at]).max())
        .collect();
    let mut sorted: Vec<i64> = columns.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else {
        return html! {
            text class="faint" x=(n(HEAT_LEFT)) y=(n(top + BAND / 2.0 + 4.0)) { "too few jobs to bound it" }
        };
    };
    let (low, high) = (sorted[last * 2 / 100], sorted[last - last * 2 / 100]);
    let span = (high - low).max(1) as f64;
    let level = |value: i64| {
        let part = ((value - low) as f64 / span).clamp(0.0, 1.0);
        ((part * LEVELS as f64) as usize).min(LEVELS - 1)
    };
    let levels: Vec<Option<usize>> = columns.iter().map(|value| value.map(level)).collect();
    let mut paths = vec![String::new(); LEVELS];
    let mut from = 0;
    // Neighbours of one shade are one rectangle.
    for same in levels.chunk_by(|a, b| a == b) {
        if let Some(level) = same[0] {
            let (x, w) = (HEAT_LEFT + from as f64 * width, same.len() as f64 * width);
            let (y, height) = (n(top + 1.0), n(BAND - 2.0));
            let _ = write!(paths[level], "M{} {y}h{}v{height}h-{}z", n(x), n(w), n(w));
        }
        from += same.len();
    }
    html! {
        @for (level, path) in paths.iter().enumerate() {
            @if !path.is_empty() {
                path class="f0" fill-opacity=(shade(level)) d=(path) {}
            }
        }
        text class="faint" x=(n(HEAT_RIGHT + 8.0)) y=(n(top + BAND / 2.0 + 4.0)) { (range(low, high)) }
    }
}

/// Two times with the decimals that tell them apart.
fn range(low: i64, high: i64) -> String {
    let unit = Unit::of(high as f64);
    let span = ((high - low) as f64 / unit.ns()).max(1e-3);
    let decimals = (1.0 - span.log10().floor()).clamp(1.0, 4.0) as usize;
    let number = |ns: i64| grouped(format!("{:.decimals$}", ns as f64 / unit.ns()));
    format!("{}..{} {}", number(low), number(high), unit.name())
}

/// Opacity of a shade: the lightest can still be seen.
fn shade(level: usize) -> String {
    format!("{:.2}", 0.08 + 0.92 * level as f64 / (LEVELS - 1) as f64)
}

/// Where the cells of a cpu begin and end.
fn cpus(point: &ScalePoint, order: &[usize], bottom: f64) -> Markup {
    let per_cell = (HEAT_RIGHT - HEAT_LEFT) / order.len().max(1) as f64;
    let mut spans: Vec<(Option<u32>, f64, f64)> = Vec::new();
    let mut from = 0;
    for same in order.chunk_by(|&a, &b| cpu_of(point, a) == cpu_of(point, b)) {
        let begin = HEAT_LEFT + from as f64 * per_cell;
        from += same.len();
        spans.push((
            cpu_of(point, same[0]),
            begin,
            HEAT_LEFT + from as f64 * per_cell,
        ));
    }
    html! {
        @for (cpu, begin, end) in &spans {
            path class="rule" d=(format!("M{} {}v-5v5H{}v-5", n(*begin + 1.0), n(bottom + 8.0), n(*end - 1.0))) {}
            @if end - begin > 44.0 {
                text class="faint mid" x=(n((begin + end) / 2.0)) y=(n(bottom + 24.0)) {
                    @match cpu { Some(cpu) => { "cpu " (cpu) } None => "any cpu" }
                }
            }
        }
        text class="mid" x=(n((HEAT_LEFT + HEAT_RIGHT) / 2.0)) y=(n(bottom + 42.0)) {
            @if point.pinned { "cells, by cpu and place in the trial" } @else { "cells, by place in the trial" }
        }
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_the_digits_that_differ() {
        assert_eq!(range(1_201_300, 1_204_900), "1.2013..1.2049 ms");
        assert_eq!(range(9_150, 58_800), "9.2..58.8 us");
        assert_eq!(range(16_700_000, 17_300_000), "16.70..17.30 ms");
        assert_eq!(range(5, 5), "0.0050..0.0050 us");
    }

    #[test]
    fn two_thousand_cells_share_columns() {
        assert_eq!(width_of(64).0, 1);
        let (of_column, width) = width_of(2_048);
        let columns = 2_048_usize.div_ceil(of_column);
        assert!(width >= 1.0 && (width * columns as f64 - (HEAT_RIGHT - HEAT_LEFT)).abs() < 1e-9);
    }
}
