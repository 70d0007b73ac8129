//! Response times of a task set by their deadlines: a cumulative distribution for every task, a panel for every trial.

use super::{Figure, WIDTH};
use crate::chart::{
    Axis, Band, Entry, LOOKS, legend, legend_height, n, title_below, title_left, x_axis, y_axis,
};
use maud::html;
use record::summary::{CellSummary, TaskSummary};
use std::fmt::Write;
use study::JobsStudy;
use text::words::clean;

const LEFT: f64 = 64.0;
const TOP: f64 = 30.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 66.0;

pub(super) fn draw(data: &JobsStudy) -> Option<Figure> {
    // All of them: the other figures draw only some of many cells.
    let tasks = tasks(data);
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for (cell, task) in &tasks {
        let curve = (task.name.as_str(), *task);
        let title = format!("{}{}", cell.trial, cell.caution());
        match panels.iter_mut().find(|panel| panel.0 == title) {
            Some(panel) => panel.1.push(curve),
            None => panels.push((title, vec![curve])),
        }
    }
    let caption = "The share of jobs of each task whose response time, divided by the deadline, was at most x; a panel for each trial. A \
                   curve that reaches 1 left of the line at 1 met every deadline; what lies right of it was late. Steps of the same task \
                   further right than in another panel are what the trial costs it. Colours repeat after eight tasks; on the page, the \
                   pointer shows the name of a curve.";
    picture(
        "normalised",
        "Response times by their deadlines".to_owned(),
        caption,
        &panels,
    )
}

/// The first task of the set in one panel for each way in which its cell was made and held: a curve for every trial, which differ in what
/// ran beside. `None` unless there are several.
pub(super) fn interference(data: &JobsStudy) -> Option<Figure> {
    let tasks = tasks(data);
    let first = &tasks.first()?.1.name;
    let held = |task: &TaskSummary| task.held.as_ref().map(|held| held.by.held);
    let alike = |a: &(&CellSummary, &TaskSummary), b: &(&CellSummary, &TaskSummary)| {
        a.0.engine == b.0.engine && a.1.cell == b.1.cell && held(a.1) == held(b.1)
    };
    let mut groups: Vec<Vec<(&CellSummary, &TaskSummary)>> = Vec::new();
    for one in tasks.iter().filter(|(_, task)| task.name == *first) {
        match groups.iter_mut().find(|group| alike(&group[0], one)) {
            Some(group) => group.push(*one),
            None => groups.push(vec![*one]),
        }
    }
    let several = groups.into_iter().filter(|group| group.len() > 1);
    let panels: Vec<Panel<'_>> = several
        .map(|group| {
            let (cell, task) = group[0];
            let held = held(task).map(|held| format!(", held by {}", held.enforcer.name()));
            let (engine, caution) = (cell.engine, cell.caution());
            let title = format!("{first} in {engine}{caution}{}", held.unwrap_or_default());
            let curves = group
                .iter()
                .map(|(cell, task)| (cell.trial.as_str(), *task));
            (title, curves.collect())
        })
        .collect();
    let caption = "The share of jobs of the set's first task whose response time, divided by the deadline, was at most x: a curve for \
                   every trial, and a panel for each engine, cell and budget. The trials of a panel differ in the work beside the set alone: \
                   curves that lie on each other mean that it had no effect on this task.";
    picture(
        "interference",
        format!("{} with and without interference", clean(first)),
        caption,
        &panels,
    )
}

/// The threads of task sets that have a curve: those with a good job.
fn tasks(data: &JobsStudy) -> Vec<(&CellSummary, &TaskSummary)> {
    let cells = data.summary.cells.iter();
    let tasks = cells.filter_map(|cell| Some((cell, cell.task.as_ref()?)));
    tasks
        .filter(|(_, task)| !task.response_ccdf.is_empty())
        .collect()
}

/// The title of a panel and its curves, by their names.
type Panel<'a> = (String, Vec<(&'a str, &'a TaskSummary)>);

fn picture(
    name: &'static str,
    title: String,
    caption: &str,
    panels: &[Panel<'_>],
) -> Option<Figure> {
    let curves = || panels.iter().flat_map(|panel| &panel.1);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in curves() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    if panels.is_empty() {
        return None;
    }
    let by_deadline = |task: &TaskSummary, ns: i64| ns as f64 / task.deadline_ns.max(1) as f64;
    let ends =
        curves().filter_map(|(_, task)| Some(by_deadline(task, task.response_ccdf.last()?.0)));
    let x = Axis::linear(ends.chain([0.0, 1.1])).between(LEFT, WIDTH - 24.0);
    let top = |panel: usize| TOP + panel as f64 * (PANEL + GAP);
    let bottom = top(panels.len() - 1) + PANEL;
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
        name: name.into(),
        title,
        caption: caption.to_owned(),
        size: (WIDTH, bottom + 56.0 + legend_height(&entries, width)),
        body: html! {
            @for (panel, (title, curves)) in panels.iter().enumerate() {
                @let y = Axis::linear([0.0, 1.0]).between(top(panel) + PANEL, top(panel));
                (title_left(8.0, top(panel), &format!("{}: share of jobs", clean(title))))
                (x_axis(&x, Band(top(panel), top(panel) + PANEL), 1.0))
                (y_axis(&y, Band(LEFT, WIDTH - 24.0), 1.0))
                path class="ref" d=(format!("M{} {}V{}", n(x.at(1.0)), n(top(panel)), n(top(panel) + PANEL))) {}
                @for (curve, task) in curves {
                    @let look = names.iter().position(|name| name == curve).unwrap_or(0) % LOOKS;
                    path class=(format!("line s{look} d{look}")) d=(steps(task, &x, &y)) {
                        title { (clean(curve)) }
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
