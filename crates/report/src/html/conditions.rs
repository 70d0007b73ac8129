//! Cells by load and period: least, mean, largest and variance on each cpu; before and after cpus were kept free; the
//! moves for that; counters.

use super::section::{Page, Section};
use crate::grid::{Cell, Table, lost, named, told};
use host::isolate::Isolated;
use maud::{Markup, html};
use record::summary::{CellSummary, Per, PointSummary};
use study::JobsStudy;
use study::conditions::{self, Conditions, period};
use study::jobs::Moved;
use text::units::time;
use text::words::{capital, clean, fewer_rounds_of_p99, ratio};

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let found = conditions::of(summary);
    let counted = summary
        .points
        .iter()
        .any(|point| !point.counters.is_empty());
    if found.is_none() && !counted {
        return None;
    }
    Some(Section {
        id: "conditions",
        heading: "Loads and periods".to_owned(),
        body: html! {
            @if let Some(found) = &found {
                (moments(found, summary.primary.title()))
                @if found.both {
                    p.quiet {
                        "Kept free over shared: rounds are paired by their number; below 1 the cpu that was kept free is faster."
                    }
                    (against(found))
                }
            }
            (moved(&page.data.drawing.moved))
            @if counted { (counters(&summary.points, page.data)) }
        },
    })
}

fn kept_free(point: &PointSummary) -> String {
    let kept = if point.isolated { ", kept free" } else { "" };
    format!("{}{kept}", point.cpu)
}

fn max(cell: &CellSummary) -> Option<f64> {
    Some(cell.metrics.first()?.summary.max_ns as f64)
}

type Row<'a> = (&'a PointSummary, &'a CellSummary);

fn moments<'a>(found: &Conditions<'a>, title: &str) -> Table<(Row<'a>, &'a stats::Summary)> {
    let row = |row: &Row<'a>| Some((*row, &row.1.metrics.first()?.summary));
    Table::new(
        format!("{} on each cpu", capital(title)),
        found.points.iter().filter_map(row),
    )
    .detail()
    .head("load", |((point, _), _)| point.load.as_str())
    .number("period", |((point, _), _)| period(point.period_ns))
    .text("cpu", |((point, _), _)| kept_free(point))
    .text("engine", |((point, cell), _)| {
        named(point.made_by(cell.engine), cell.real_time)
    })
    .times("min", |(_, s)| Some(s.min_ns as f64))
    .times("mean", |(_, s)| Some(s.mean_ns))
    .times("max", |(_, s)| Some(s.max_ns as f64))
    .number("variance\nus\u{b2}", |(_, s)| {
        s.sd_ns.map(|sd| ratio((sd / 1e3).powi(2)))
    })
    .number("jobs", |(_, s)| s.count)
    .number("skipped", |((_, cell), _)| lost(cell.skipped))
}

fn against<'a>(found: &Conditions<'a>) -> Table<Row<'a>> {
    let isolated = found.points.iter().filter(|(point, _)| point.isolated);
    Table::new(
        "Before and after the cpus were kept free",
        isolated.copied(),
    )
    .head("load", |(point, _)| point.load.as_str())
    .number("period", |(point, _)| period(point.period_ns))
    .text("cpu", |(point, _)| u64::from(point.cpu))
    .text("median\nkept free / shared, 95 % interval", |(point, _)| {
        let shared = point.against_shared.as_ref();
        shared.map_or("no round of both".into(), |c| {
            told(&c.ratio_of_medians, c.rounds)
        })
    })
    .text("p99\nkept free / shared", |(point, _)| {
        let c = point.against_shared.as_ref()?;
        Some(match &c.ratio_of_p99 {
            Some(p99) => told(p99, c.rounds).below(fewer_rounds_of_p99(c)),
            None => "too few jobs".into(),
        })
    })
    .number("max, shared", |(point, cell)| {
        let mut shared = found.at(&point.load, point.period_ns, false);
        let of_cpu = shared.find(|(p, c)| p.cpu == point.cpu && c.engine == cell.engine);
        max(of_cpu?.1).map(time)
    })
    .number("max, kept free", |(_, cell)| max(cell).map(time))
}

/// One row for all trials with the same cpus: staying ones differ by a name or two.
fn moved(trials: &[Moved]) -> Table<Vec<&Moved>> {
    let mut groups: Vec<Vec<&Moved>> = Vec::new();
    for one in trials {
        let same = |group: &&mut Vec<&Moved>| {
            let first = &group[0].isolated;
            (&first.cpus, &first.rest) == (&one.isolated.cpus, &one.isolated.rest)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let list = |cpus: &[u32]| study::plan::list(cpus);
    Table::new("What was moved off the cpus, and what stayed", groups)
        .detail()
        .head("cpus", |group| {
            let first = &group[0].isolated;
            let kept = format!("{} kept free", list(&first.cpus));
            Cell::from(kept).below(format!("the rest on {}", list(&first.rest)))
        })
        .number("trials", |group| group.len() as u64)
        .number("tasks moved", |group| span(group, |i| i.tasks_moved))
        .number("interrupts moved", |group| span(group, |i| i.irqs_moved))
        .text("stayed, in any of the trials", |group| {
            let threads = names(group, |i| &i.kernel_threads);
            let unbound = group
                .iter()
                .any(|one| one.isolated.workqueues == Some(false));
            let kernel = span(group, |i| i.kernel_threads_left);
            Cell::from(format!("{kernel} kernel threads: {threads}"))
                .below(format!("tasks: {}", names(group, |i| &i.tasks_left)))
                .below(format!("interrupts: {}", names(group, |i| &i.irqs_left)))
                .below(if unbound { "unbound kernel work" } else { "" })
        })
        .text("load balancing", |group| {
            let first = &group[0].isolated;
            let mut text = names(group, |i| std::slice::from_ref(&i.balancing));
            for (name, cpus) in [
                ("isolcpus", &first.isolcpus),
                ("nohz_full", &first.nohz_full),
            ] {
                if !cpus.is_empty() {
                    text += &format!("; {name} {}", list(cpus));
                }
            }
            text
        })
}

/// Least and most over trials.
fn span(group: &[&Moved], of: fn(&Isolated) -> u32) -> String {
    let least = group.iter().map(|one| of(&one.isolated)).min().unwrap_or(0);
    let most = group.iter().map(|one| of(&one.isolated)).max().unwrap_or(0);
    if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    }
}

/// Every name once, over trials.
fn names(group: &[&Moved], of: fn(&Isolated) -> &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in group.iter().flat_map(|one| of(&one.isolated)) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// Cost of readings in ns, as one time or from least to most.
fn costs(least: u64, most: u64) -> String {
    let [low, high] = [least, most].map(|ns| time(ns as f64));
    if low == high {
        low
    } else {
        format!("{low} to {high}, by cell")
    }
}

fn counters(points: &[PointSummary], data: &JobsStudy) -> Markup {
    let number = |value: Option<f64>| value.map(|r| format!("{r:.2}"));
    let of = |point| move |counter| (point, counter);
    let rows = points
        .iter()
        .flat_map(|point: &PointSummary| point.counters.iter().map(of(point)));
    let table = Table::new(
        "Counters against the time of each activation, or the largest of each window",
        rows,
    )
    .detail()
    .head("load", |(point, _)| point.load.as_str())
    .number("period", |(point, _)| period(point.period_ns))
    .text("cpu", |(point, _)| kept_free(point))
    .text("counter", |(_, counter)| counter.name.as_str())
    .text("for each", |(_, counter)| match counter.per {
        Per::Window => "window",
        Per::Activation => "activation",
    })
    .number("total", |(_, counter)| counter.total)
    .number("of them", |(_, counter)| counter.windows)
    .number("Pearson", |(_, counter)| number(counter.pearson))
    .number("Spearman", |(_, counter)| number(counter.spearman));
    html! {
        p.quiet {
            @match data.drawing.reading_cost_ns {
                Some((least, most)) => {
                    "Where the table says activation, the measuring thread read its own counters once for each activation, after \
                     its end; one reading took " (costs(least, most)) " on average. A job that was due by then began that much later. "
                    "What it cannot count itself was read from outside, per window. "
                }
                None => {
                    "Counters were read from outside of the cells, per window and not per activation, so that nothing was added to \
                     the measuring loop. "
                }
            }
            "\"-\" stands where the counter or the metric never changed."
            @for what in &data.drawing.lacking { " " (text::words::sentence(&clean(what))) }
        }
        (table)
    }
}
