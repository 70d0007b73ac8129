//! How figures grow with the number of cells, beside predictions; start skew, creation rate and memory.

use super::findings::{crowd, memory, rate};
use super::picture::{LEFT, RIGHT, bottom, panel_frame};
use crate::chart::{Axis, Band, LOOKS, Mark, marks, n, title_below, title_left, x_axis};
use crate::figure::plot::{Plot, Side, key, path};
use crate::figure::{Figure, WIDTH, time_title};
use maud::{Markup, html};
use record::scale::{ScaleEngine, ScalePoint, ScaleSummary};
use stats::{Closed, Growth};
use study::{mean_response, median_of};

pub(super) fn draw(summary: &ScaleSummary) -> Vec<Figure> {
    let figures = [
        response(summary),
        skew(summary),
        lines(summary, &RATE),
        lines(summary, &MEMORY),
    ];
    figures.into_iter().flatten().collect()
}

/// Steps in which the prediction is drawn.
const STEPS: u32 = 160;
/// Room above the first panel for the legend.
const LEGEND: f64 = 24.0;

/// The response time of every engine, a panel each.
fn response(summary: &ScaleSummary) -> Option<Figure> {
    type Value = fn(&ScalePoint) -> Option<f64>;
    let series: [(&str, Mark, Value); 3] = [
        ("mean", Mark::Circle, mean_response),
        ("p95", Mark::Square, |p| {
            Some(p.response.as_ref()?.p95.as_ref()?.median_ns as f64)
        }),
        ("p99", Mark::Triangle, |p| {
            Some(p.response.as_ref()?.p99.as_ref()?.median_ns as f64)
        }),
    ];
    let engines: Vec<&ScaleEngine> = (summary.engines.iter())
        .filter(|e| summary.of(e.engine).any(|point| point.response.is_some()))
        .collect();
    let counts = || summary.points.iter().map(|point| f64::from(point.count));
    let x = Axis::log(counts()).between(LEFT, RIGHT);
    let values = summary.points.iter().flat_map(|point| {
        let measured = series.iter().filter_map(move |(_, _, value)| value(point));
        measured.chain(point.sharing.map(|s| s.floor_ns))
    });
    let y = Axis::log(values.collect::<Vec<_>>());
    let (unit, title) = time_title(&y, "response time");
    let last = engines.len().checked_sub(1)?;
    Some(Figure {
        name: "growth".into(),
        title: "Response time as cells are added, and what sharing the cpus predicts".to_owned(),
        caption: "Circles: mean over the jobs that ran while all cells ran. Squares and triangles: the median cell's 95th and 99th \
                  percentile. Line: the mean under processor sharing, from the cpu time of a job in the smallest trial. Dashes: the least \
                  mean that any order of service allows. The vertical line is where the mean leaves the straight line, with its 95 % \
                  interval in grey. Look for circles above the line: something other than the cells takes the cpus."
            .to_owned(),
        size: (WIDTH, bottom(last) + 48.0 + LEGEND),
        body: html! {
            (legend(12.0))
            (title_left(8.0, 44.0, &title))
            g transform=(format!("translate(0 {LEGEND})")) {
                @for (row, engine) in engines.iter().enumerate() {
                    @let top = bottom(row) - 168.0;
                    @let y = y.clone().between(bottom(row), top);
                    (knee(engine, &x, top, bottom(row)))
                    (panel_frame(&engine.engine.to_string(), &y, unit, row))
                    (x_axis(&x, Band(bottom(row), bottom(row)), 1.0))
                    (title_below(&x, bottom(row), "cells that ran together, log scale"))
                    (predicted(summary, engine, &x, &y))
                    @for (place, (_, mark, value)) in series.iter().enumerate() {
                        @let places = summary.of(engine.engine).filter_map(|point| {
                            Some((x.at(f64::from(point.count)), y.at(value(point)?)))
                        });
                        path class=(format!("mark s{place}")) d=(marks(*mark, places)) {}
                    }
                }
            }
        },
    })
}

/// The key to marks and lines of [`response`].
fn legend(start: f64) -> Markup {
    let line = |class: &str, at: f64, name: &str| {
        html! {
            path class=(class) d=(format!("M{} 12h22", n(start + at))) {}
            text x=(n(start + at + 27.0)) y="16.5" { (name) }
        }
    };
    html! {
        (key(start, &[(Mark::Circle, "mean"), (Mark::Square, "p95"), (Mark::Triangle, "p99")]))
        (line("line s7", 200.0, "sharing"))
        (line("ref", 290.0, "least"))
    }
}

/// The interval of the knee and its place.
fn knee(engine: &ScaleEngine, x: &Axis, top: f64, bottom: f64) -> Markup {
    let of_mean = engine
        .growth
        .iter()
        .find(|g| g.what == "mean response time");
    let Some(Growth::Knee(knee)) = of_mean.map(|of| of.growth) else {
        return html! {};
    };
    let (low, high) = (x.at(knee.low), x.at(knee.high));
    html! {
        rect class="bar f7" fill-opacity="0.16" style="fill-opacity:.16" x=(n(low)) y=(n(top))
            width=(n((high - low).max(1.0))) height=(n(bottom - top)) {}
        path class="ref" d=(format!("M{} {}V{}", n(x.at(knee.at)), n(bottom), n(top))) {}
        text class="faint" x=(n(x.at(knee.at) + 5.0)) y=(n(top + 13.0)) { (format!("{:.1} cells", knee.at)) }
    }
}

/// Sharing and floor as lines, for cells spread evenly over the cpus.
fn predicted(summary: &ScaleSummary, engine: &ScaleEngine, x: &Axis, y: &Axis) -> Markup {
    let points: Vec<&ScalePoint> = summary.of(engine.engine).collect();
    let found = points
        .iter()
        .find_map(|point| Some((point.sharing?, point)));
    let (Some((sharing, _)), Some(saturation)) = (found, engine.saturation) else {
        return html! {};
    };
    let cpus = points
        .iter()
        .map(|point| point.cpus.len())
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    // N* = m (E + Z) / E holds the rest that was asked for.
    let think = sharing.demand_alone_ns * (saturation / cpus - 1.0);
    let Some(closed) = Closed::new(sharing.demand_alone_ns, think.max(0.0), 1) else {
        return html! {};
    };
    let ends = points.iter().map(|point| f64::from(point.count));
    let (least, most) = (
        ends.clone().fold(f64::INFINITY, f64::min).max(1.0),
        ends.fold(1.0, f64::max),
    );
    let (mut middle, mut floor) = (Vec::new(), Vec::new());
    let mut before = 0;
    for step in 0..=STEPS {
        let cells = least * (most / least).powf(f64::from(step) / f64::from(STEPS));
        let of_cpu = (cells / cpus).round().max(1.0) as u32;
        let Some(predicted) = closed.predict(of_cpu).filter(|_| of_cpu != before) else {
            continue;
        };
        before = of_cpu;
        let at = (f64::from(of_cpu) * cpus).clamp(least, most);
        middle.push((x.at(at), y.at(predicted.sharing_ns)));
        floor.push((x.at(at), y.at(predicted.floor_ns)));
    }
    html! {
        path class="line s7" d=(path(middle)) {}
        path class="ref" d=(path(floor)) {}
    }
}

/// The start skew of every engine.
fn skew(summary: &ScaleSummary) -> Option<Figure> {
    let places = |engine: &ScaleEngine, of: fn(&ScalePoint) -> &Vec<u64>| -> Vec<(f64, f64)> {
        let place = |point: &ScalePoint| Some((f64::from(point.count), median_of(of(point))?));
        summary
            .of(engine.engine)
            .filter_map(place)
            .filter(|(_, ns)| *ns > 0.0)
            .collect()
    };
    let all: Vec<(f64, f64)> = (summary.engines.iter())
        .flat_map(|e| {
            let firsts = places(e, |p| &p.first_of_cpu_skew_ns);
            places(e, |p| &p.skew_ns).into_iter().chain(firsts)
        })
        .collect();
    if all.len() < 2 {
        return None;
    }
    let y = Axis::log(all.iter().map(|place| place.1));
    let mut plot = Plot::new(cells(&all), Side::time(y, "start skew"), HEIGHT);
    for (look, engine) in summary.engines.iter().enumerate() {
        plot.line(look, places(engine, |p| &p.skew_ns));
        let firsts = places(engine, |p| &p.first_of_cpu_skew_ns);
        let dots = path(firsts.iter().map(|place| plot.at(*place)));
        plot.draw(html! { path class=(format!("line s{}", look % LOOKS)) style="stroke-dasharray:2 4" d=(dots) {} });
        plot.marks(
            look,
            places(engine, |p| &p.skew_ns).into_iter().chain(firsts),
        );
        plot.name(look, engine.engine.name());
    }
    let caption = "Latest minus earliest start, the median of the rounds. The upper line of an engine: all cells, which start one after the \
                   other where they share a cpu. The lower, dotted one: only the first cell of each cpu, which is what the barrier itself \
                   answers for.";
    Some(plot.figure(
        "start-skew",
        "How far apart cells started that were released together",
        caption,
    ))
}

/// Height of the vertical axis of a figure with one line for each engine, px.
const HEIGHT: f64 = 220.0;

/// The axis of the numbers of cells.
fn cells(places: &[(f64, f64)]) -> Side {
    let axis = Axis::log(places.iter().map(|place| place.0));
    Side::plain(axis, "cells that ran together, log scale")
}

/// A figure with one line for each engine.
struct OfCrowd {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    caption: &'static str,
    value: fn(&ScalePoint) -> Option<f64>,
}

const RATE: OfCrowd = OfCrowd {
    name: "creation-rate",
    title: "How fast cells are created",
    axis: "cells per second",
    caption: "Cells whose payload answered, divided by the time from the first request until the last answer. Look for lines that fall: \
              creation then gets slower with every existing cell.",
    value: |point| crowd(point).and_then(rate),
};

const MEMORY: OfCrowd = OfCrowd {
    name: "memory",
    title: "Memory of an armed cell",
    axis: "MB (proportional set, helpers included)",
    caption: "Proportional set size of payload and helper processes, mean over the armed cells. Pages that cells share are divided among \
              them, so lines fall where much is shared.",
    value: |point| {
        let [payload, helpers] = memory(crowd(point)?)?;
        Some((payload + helpers) / 1e6)
    },
};

fn lines(summary: &ScaleSummary, what: &OfCrowd) -> Option<Figure> {
    let places = |engine: &ScaleEngine| -> Vec<(f64, f64)> {
        let place = |p: &ScalePoint| Some((f64::from(p.count), (what.value)(p)?));
        summary.of(engine.engine).filter_map(place).collect()
    };
    let all: Vec<(f64, f64)> = summary.engines.iter().flat_map(&places).collect();
    if all.len() < 2 {
        return None;
    }
    let y = Axis::linear(all.iter().map(|place| place.1).chain([0.0]));
    let mut plot = Plot::new(cells(&all), Side::plain(y, what.axis), HEIGHT);
    for (look, engine) in summary.engines.iter().enumerate() {
        plot.line(look, places(engine));
        plot.marks(look, places(engine));
        plot.name(look, engine.engine.name());
    }
    Some(plot.figure(what.name, what.title, what.caption))
}
