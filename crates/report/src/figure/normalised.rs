//! Response times of a task set by their deadlines: a cumulative distribution for every task, a panel for every trial.

use super::{Figure, WIDTH};
use crate::chart::{
    Axis, Band, Entry, LOOKS, legend, legend_height, n, title_below, title_left, x_axis, y_axis,
};
use maud::html;
use record::summary::TaskSummary;
use std::fmt::Write;
use study::JobsStudy;
use text::words::clean;

const LEFT: f64 = 64.0;
const TOP: f64 = 30.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 66.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    // All of them: the other figures draw only some of many cells.
    let tasks: Vec<(&str, &TaskSummary)> = (data.summary.cells.iter())
        .filter_map(|cell| Some((cell.trial.as_str(), cell.task.as_ref()?)))
        // A task without a good job has no curve.
        .filter(|(_, task)| !task.response_ccdf.is_empty())
        .collect();
    let mut trials: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (trial, task) in &tasks {
        if !trials.contains(trial) {
            trials.push(trial);
        }
        if !names.contains(&task.name.as_str()) {
            names.push(&task.name);
        }
    }
    if tasks.is_empty() {
        return None;
    }
    let by_deadline = |task: &TaskSummary, ns: i64| ns as f64 / task.deadline_ns.max(1) as f64;
    let ends = (tasks.iter())
        .filter_map(|(_, task)| Some(by_deadline(task, task.response_ccdf.last()?.0)));
    let x = Axis::linear(ends.chain([0.0, 1.1])).between(LEFT, WIDTH - 24.0);
    let top = |panel: usize| TOP + panel as f64 * (PANEL + GAP);
    let bottom = top(trials.len() - 1) + PANEL;
    let looks: Vec<(usize, String)> = names.iter().map(|name| clean(name)).enumerate().collect();
    let entries: Vec<Entry> = looks
        .iter()
        .map(|(look, name)| Entry {
            look: look % LOOKS,
            name,
        })
        .collect();
    let width = WIDTH - LEFT;
    Some(Figure {
        name: "normalised".into(),
        title: "Response times by their deadlines".to_owned(),
        caption: "The share of jobs of each task whose response time, divided by the deadline, was at most x; a panel for each trial. A \
                  curve that reaches 1 left of the line at 1 met every deadline; what lies right of it was late. Steps of the same task \
                  further right than in another panel are what the trial costs it. Colours repeat after eight tasks; on the page, the \
                  pointer shows the name of a curve."
            .to_owned(),
        size: (WIDTH, bottom + 56.0 + legend_height(&entries, width)),
        body: html! {
            @for (panel, trial) in trials.iter().enumerate() {
                @let y = Axis::linear([0.0, 1.0]).between(top(panel) + PANEL, top(panel));
                (title_left(8.0, top(panel), &format!("{}: share of jobs", clean(trial))))
                (x_axis(&x, Band(top(panel), top(panel) + PANEL), 1.0))
                (y_axis(&y, Band(LEFT, WIDTH - 24.0), 1.0))
                path class="ref" d=(format!("M{} {}V{}", n(x.at(1.0)), n(top(panel)), n(top(panel) + PANEL))) {}
                @for (_, task) in tasks.iter().filter(|(of, _)| of == trial) {
                    @let look = names.iter().position(|name| *name == task.name).unwrap_or(0) % LOOKS;
                    path class=(format!("line s{look} d{look}")) d=(steps(task, &x, &y)) {
                        title { (clean(&task.name)) }
                    }
                }
            }
            (title_below(&x, bottom, "response time / deadline"))
            (legend(&entries, LEFT, bottom + 60.0, width))
        },
    })
}

/// The distribution from the points of its complement: the share of values below each.
fn steps(task: &TaskSummary, x: &Axis, y: &Axis) -> String {
    let mut path = format!("M{} {}", n(x.at(0.0)), n(y.at(0.0)));
    for &(ns, at_least) in &task.response_ccdf {
        let to = n(x.at(ns as f64 / task.deadline_ns.max(1) as f64));
        let _ = write!(path, "V{}H{to}", n(y.at(1.0 - at_least)));
    }
    let _ = write!(path, "V{}H{}", n(y.at(1.0)), n(x.ends().1));
    path
}
