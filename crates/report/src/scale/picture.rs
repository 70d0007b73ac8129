//! The figures over the numbers of cells: one panel for each engine, numbers of cells from left to right.

use super::growth;
use super::panels;
use crate::chart::{Axis, Band, LOOKS, Mark, marks, n, title_left, y_axis};
use crate::figure::{Figure, WIDTH, documents, time_title};
use maud::{Markup, html};
use model::EngineKind;
use record::scale::{Between, ScalePoint, ScaleSummary};
use stats::BoxPlot;

/// Left edge of the panels in px.
pub(super) const LEFT: f64 = 66.0;
/// Right edge of the panels in px.
pub(super) const RIGHT: f64 = WIDTH - 26.0;
/// Height of a panel in px.
const PANEL: f64 = 168.0;
/// From the bottom of a panel to the top of the next in px.
const GAP: f64 = 84.0;
const TOP: f64 = 46.0;
/// Numbers of cells that one panel holds; more are thinned.
const MOST: usize = 24;

/// All figures of a study.
pub(super) struct Drawn {
    /// Growth of figures, and costs of cells.
    pub growth: Vec<Figure>,
    /// Box plots of execution times.
    pub execution: Vec<Figure>,
    /// Box plots of response times.
    pub response: Vec<Figure>,
    /// Cell by cell, of chosen numbers of cells.
    pub cells: Vec<(EngineKind, Vec<Figure>)>,
}

pub(super) fn draw(summary: &ScaleSummary) -> Drawn {
    let boxes = |about: About| {
        let figures = STATISTICS.iter().filter_map(|s| boxes(summary, about, s));
        figures.collect::<Vec<_>>()
    };
    Drawn {
        growth: growth::draw(summary),
        execution: boxes(About::Execution),
        response: boxes(About::Response),
        cells: panels::draw(summary),
    }
}

/// The figures as SVG files of their own: file name and content.
pub fn scale_figures(summary: &ScaleSummary) -> Vec<(String, String)> {
    let drawn = draw(summary);
    let mut all = vec![drawn.growth, drawn.execution, drawn.response];
    all.extend(drawn.cells.into_iter().map(|(_, figures)| figures));
    let mut note = format!("timecell run {}", summary.run);
    if !summary.real_time {
        note += ", not real-time";
    }
    documents(all.into_iter().flatten(), &note)
}

/// Which time of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Execution,
    Response,
}

impl About {
    pub(super) const fn title(self) -> &'static str {
        match self {
            About::Execution => "execution time",
            About::Response => "response time",
        }
    }

    pub(super) const fn tag(self) -> &'static str {
        match self {
            About::Execution => "execution",
            About::Response => "response",
        }
    }

    pub(super) fn of(self, point: &ScalePoint) -> Option<&Between> {
        match self {
            About::Execution => point.execution.as_ref(),
            About::Response => point.response.as_ref(),
        }
    }
}

/// A statistic of a cell: its tag, its name, and its distribution between cells.
type Statistic = (&'static str, &'static str, fn(&Between) -> Option<&BoxPlot>);

const STATISTICS: [Statistic; 4] = [
    ("mean", "mean", |b| Some(&b.mean)),
    ("p95", "95th percentile", |b| b.p95.as_ref()),
    ("p99", "99th percentile", |b| b.p99.as_ref()),
    ("sd", "standard deviation", |b| b.sd.as_ref()),
];

/// Box plots of one statistic, as the zcu102 thesis's Figs. 4.21 to 4.24.
fn boxes(summary: &ScaleSummary, about: About, statistic: &Statistic) -> Option<Figure> {
    let (tag, name, of) = statistic;
    let plots = |engine: EngineKind| -> Vec<(u32, &BoxPlot)> {
        let mut all = Vec::new();
        for point in summary.of(engine) {
            all.extend(about.of(point).and_then(of).map(|plot| (point.count, plot)));
        }
        thinned(all)
    };
    let engines: Vec<(EngineKind, Vec<(u32, &BoxPlot)>)> = (summary.engines.iter())
        .map(|engine| (engine.engine, plots(engine.engine)))
        .filter(|(_, plots)| !plots.is_empty())
        .collect();
    let all = engines.iter().flat_map(|(_, plots)| plots);
    let ends = all.flat_map(|(_, plot)| {
        let whiskers = [plot.low_whisker_ns, plot.high_whisker_ns];
        let outliers = plot.outliers_ns.iter().copied();
        outliers.chain(whiskers).map(|ns| ns as f64)
    });
    let axis = Axis::log(ends);
    let (unit, title) = time_title(&axis, &format!("{name} of the {}", about.title()));
    let count = engines.len();
    if count == 0 {
        return None;
    }
    Some(Figure {
        name: format!("{}-{tag}", about.tag()).into(),
        title: format!("Between cells: {name} of the {}", about.title()),
        caption: format!(
            "Each cell gives one value, the {name} of its jobs; a box spans the quartiles of the cells, its thick line \
             is their median, whiskers reach to 1.5 interquartile ranges, marks are cells beyond. Look for boxes that \
             widen as cells are added: cells then fare differently."
        ),
        size: (WIDTH, bottom(count - 1) + 50.0),
        body: html! {
            (title_left(8.0, 24.0, &title))
            @for (row, (engine, plots)) in engines.iter().enumerate() {
                @let y = axis.clone().between(bottom(row), bottom(row) - PANEL);
                (panel_frame(&engine.to_string(), &y, unit, row))
                @let places: Vec<u32> = plots.iter().map(|(count, _)| *count).collect();
                (categories(&places, bottom(row)))
                @for (at, (_, plot)) in plots.iter().enumerate() {
                    (one(plot, &y, place(at, plots.len()), width(plots.len()), row % LOOKS))
                }
            }
        },
    })
}

/// Bottom of the panel of a row in px.
pub(super) fn bottom(row: usize) -> f64 {
    TOP + PANEL + row as f64 * (PANEL + GAP)
}

/// Vertical axis and heading of a panel.
pub(super) fn panel_frame(name: &str, y: &Axis, unit: f64, row: usize) -> Markup {
    html! {
        (y_axis(y, Band(LEFT, RIGHT), unit))
        path class="rule" d=(format!("M{} {}H{}", n(LEFT), n(bottom(row)), n(RIGHT))) {}
        text class="head" x=(n(LEFT)) y=(n(bottom(row) - PANEL - 7.0)) { (name) }
    }
}

/// Every so-many-th, the last always among them.
fn thinned<T>(all: Vec<T>) -> Vec<T> {
    let step = all.len().div_ceil(MOST).max(1);
    let last = all.len().saturating_sub(1);
    let keep = |(at, value): (usize, T)| (last - at).is_multiple_of(step).then_some(value);
    all.into_iter().enumerate().filter_map(keep).collect()
}

/// Centre of a category in px.
fn place(at: usize, count: usize) -> f64 {
    LEFT + (RIGHT - LEFT) * (at as f64 + 0.5) / count as f64
}

/// Width of a box in px.
fn width(count: usize) -> f64 {
    ((RIGHT - LEFT) / count as f64 * 0.55).clamp(5.0, 30.0)
}

/// Numbers of cells below a panel, on two lines where they would touch.
fn categories(counts: &[u32], bottom: f64) -> Markup {
    let room = (RIGHT - LEFT) / counts.len().max(1) as f64;
    let staggered = counts.iter().any(|count| text_width(*count) > room);
    html! {
        @for (at, count) in counts.iter().enumerate() {
            @let lower = staggered && at % 2 == 1;
            text class="faint mid" x=(n(place(at, counts.len()))) y=(n(bottom + if lower { 30.0 } else { 16.0 })) {
                (count)
            }
        }
        text class="mid" x=(n((LEFT + RIGHT) / 2.0)) y=(n(bottom + if staggered { 46.0 } else { 34.0 })) {
            "cells that ran together"
        }
    }
}

fn text_width(count: u32) -> f64 {
    count.to_string().len() as f64 * 7.4 + 5.0
}

/// A standing box.
pub(super) fn one(plot: &BoxPlot, y: &Axis, x: f64, width: f64, look: usize) -> Markup {
    let at = |ns: i64| y.at(ns as f64);
    let (low, q1, median, q3, high) = (
        at(plot.low_whisker_ns),
        at(plot.q1_ns),
        at(plot.median_ns),
        at(plot.q3_ns),
        at(plot.high_whisker_ns),
    );
    let (left, half) = (x - width / 2.0, width / 2.0);
    let whiskers = format!(
        "M{x} {}V{}M{x} {}V{}M{l} {}h{half}M{l} {}h{half}",
        n(low),
        n(q1),
        n(q3),
        n(high),
        n(low),
        n(high),
        x = n(x),
        l = n(x - half / 2.0),
        half = n(half),
    );
    let outliers = plot.outliers_ns.iter().map(|&ns| (x, at(ns)));
    html! {
        path class=(format!("mark s{look}")) d=(whiskers) {}
        rect class=(format!("box s{look} f{look}")) x=(n(left)) y=(n(q3)) width=(n(width))
            height=(n((q1 - q3).max(1.0))) {}
        path class=(format!("median s{look}")) d=(format!("M{} {}h{}", n(left), n(median), n(width))) {}
        path class=(format!("mark s{look}")) d=(marks(Mark::Small, outliers)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_largest() {
        assert_eq!(thinned((0..24).collect()).len(), 24);
        let few = thinned((0..100).collect::<Vec<_>>());
        assert!(few.len() <= 24 && few.last() == Some(&99), "{few:?}");
        assert!(thinned(Vec::<u32>::new()).is_empty());
    }
}
