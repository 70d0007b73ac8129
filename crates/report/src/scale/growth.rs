//! How figures grow with the number of cells, beside what is predicted; start skew, creation rate and memory.

use super::findings::{crowd, memory, rate};
use super::picture::{LEFT, RIGHT, bottom, panel_frame};
use crate::chart::{
    Axis, Band, Entry, LOOKS, Mark, legend, legend_height, marks, n, title_below, title_left,
    x_axis, y_axis,
};
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
                  mean that any order of service allows. The vertical line is where the mean leaves the straight line, with its 95% \
                  interval in grey. Look for circles above the line: something other than the cells takes the cpus."
            .to_owned(),
        height: bottom(last) + 48.0 + LEGEND,
        body: html! {
            (key(12.0))
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

/// What the marks and lines of [`response`] are.
fn key(start: f64) -> Markup {
    let entries = [
        ("mean", Mark::Circle),
        ("p95", Mark::Square),
        ("p99", Mark::Triangle),
    ];
    html! {
        @for (place, (name, mark)) in entries.iter().enumerate() {
            @let x = start + place as f64 * 56.0;
            path class=(format!("mark s{place}")) d=(marks(*mark, [(x, 10.0)])) {}
            text x=(n(x + 9.0)) y="14.5" { (name) }
        }
        path class="line s7" d=(format!("M{} 10h22", n(start + 170.0))) {}
        text x=(n(start + 197.0)) y="14.5" { "sharing" }
        path class="ref" d=(format!("M{} 10h22", n(start + 254.0))) {}
        text x=(n(start + 281.0)) y="14.5" { "least" }
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
    let (mut middle, mut floor) = (String::new(), String::new());
    let mut before = 0;
    for step in 0..=STEPS {
        let cells = least * (most / least).powf(f64::from(step) / f64::from(STEPS));
        let of_cpu = (cells / cpus).round().max(1.0) as u32;
        let Some(predicted) = closed.predict(of_cpu).filter(|_| of_cpu != before) else {
            continue;
        };
        before = of_cpu;
        let at = (f64::from(of_cpu) * cpus).clamp(least, most);
        for (path, value) in [
            (&mut middle, predicted.sharing_ns),
            (&mut floor, predicted.floor_ns),
        ] {
            let start = if path.is_empty() { 'M' } else { 'L' };
            *path += &format!("{start}{} {}", n(x.at(at)), n(y.at(value)));
        }
    }
    html! {
        path class="line s7" d=(middle) {}
        path class="ref" d=(floor) {}
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
    let entries: Vec<(usize, String)> = (summary.engines.iter().enumerate())
        .map(|(look, engine)| (look, engine.engine.to_string()))
        .collect();
    let frame = Frame::new(&entries, &all, true);
    let (unit, title) = time_title(&frame.y, "start skew");
    Some(Figure {
        name: "start-skew".into(),
        title: "How far apart cells started that were released together".to_owned(),
        caption: "Latest minus earliest start, the median of the rounds. The upper line of an engine: all cells, which \
                  start one after the other where they share a cpu. The lower, dotted one: only the first cell of each \
                  cpu, which is what the barrier itself answers for."
            .to_owned(),
        height: frame.height(),
        body: html! {
            (frame.axes(&title, unit))
            @for (look, engine) in summary.engines.iter().enumerate() {
                (frame.line(&places(engine, |p| &p.skew_ns), look, false))
                (frame.line(&places(engine, |p| &p.first_of_cpu_skew_ns), look, true))
            }
        },
    })
}

/// A figure with one line for each engine.
struct OfCrowd {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    caption: &'static str,
    log: bool,
    value: fn(&ScalePoint) -> Option<f64>,
}

const RATE: OfCrowd = OfCrowd {
    name: "creation-rate",
    title: "How fast cells are created",
    axis: "cells per second",
    caption: "Cells whose payload answered, divided by the time from the first request until the last answer. Look for lines that fall: \
              creation then gets slower with every existing cell.",
    log: false,
    value: |point| crowd(point).and_then(rate),
};

const MEMORY: OfCrowd = OfCrowd {
    name: "memory",
    title: "Memory of an armed cell",
    axis: "MB (proportional set, helpers included)",
    caption: "Proportional set size of payload and helper processes, mean over the armed cells. Pages that cells share are divided among \
              them, so lines fall where much is shared.",
    log: false,
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
    let entries: Vec<(usize, String)> = (summary.engines.iter().enumerate())
        .map(|(look, engine)| (look, engine.engine.to_string()))
        .collect();
    let frame = Frame::new(&entries, &all, what.log);
    Some(Figure {
        name: what.name.into(),
        title: what.title.to_owned(),
        caption: what.caption.to_owned(),
        height: frame.height(),
        body: html! {
            (frame.axes(what.axis, 1.0))
            @for (look, engine) in summary.engines.iter().enumerate() {
                (frame.line(&places(engine), look, false))
            }
        },
    })
}

/// Axes, legend and lines of a figure with one line for each engine.
struct Frame<'a> {
    entries: &'a [(usize, String)],
    x: Axis,
    y: Axis,
    top: f64,
}

impl<'a> Frame<'a> {
    const HEIGHT: f64 = 220.0;

    fn new(entries: &'a [(usize, String)], all: &[(f64, f64)], log: bool) -> Frame<'a> {
        let values = all.iter().map(|place| place.1);
        let y = if log {
            Axis::log(values)
        } else {
            Axis::linear(values.chain([0.0]))
        };
        let mut frame = Frame {
            entries,
            x: Axis::log(all.iter().map(|place| place.0)).between(LEFT, RIGHT),
            y,
            top: 0.0,
        };
        let legend = legend_height(&frame.legend(), WIDTH - LEFT);
        frame.top = legend + 34.0;
        frame.y = frame.y.between(frame.top + Self::HEIGHT, frame.top);
        frame
    }

    fn legend(&self) -> Vec<Entry<'_>> {
        let entry = |(look, name): &'a (usize, String)| Entry { look: *look, name };
        self.entries.iter().map(entry).collect()
    }

    fn height(&self) -> f64 {
        self.top + Self::HEIGHT + 48.0
    }

    fn axes(&self, title: &str, unit: f64) -> Markup {
        let bottom = self.top + Self::HEIGHT;
        html! {
            (legend(&self.legend(), 12.0, 12.0, WIDTH - LEFT))
            (title_left(8.0, self.top - 2.0, title))
            (y_axis(&self.y, Band(LEFT, RIGHT), unit))
            (x_axis(&self.x, Band(self.top, bottom), 1.0))
            (title_below(&self.x, bottom, "cells that ran together, log scale"))
        }
    }

    fn line(&self, places: &[(f64, f64)], look: usize, dotted: bool) -> Markup {
        let at = |&(x, y): &(f64, f64)| (self.x.at(x), self.y.at(y));
        let mut path = String::new();
        for (x, y) in places.iter().map(at) {
            let start = if path.is_empty() { 'M' } else { 'L' };
            path += &format!("{start}{} {}", n(x), n(y));
        }
        let look = look % LOOKS;
        let dash = if dotted { "stroke-dasharray:2 4" } else { "" };
        html! {
            path class=(format!("line s{look} d{look}")) style=(dash) d=(path) {}
            path class=(format!("mark s{look}")) d=(marks(Mark::of(look), places.iter().map(at))) {}
        }
    }
}
