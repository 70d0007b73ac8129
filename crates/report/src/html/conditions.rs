//! Cells by load and period: least, mean, largest and variance on each cpu; before and after cpus were kept free; what
//! was moved for that; counters.

use super::section::{Page, Section};
use super::tables::detail;
use super::time_cell;
use host::isolate::Isolated;
use maud::{Markup, html};
use record::summary::{CellSummary, Per, PointSummary};
use study::JobsStudy;
use study::conditions::{self, Conditions, period};
use study::jobs::Moved;
use text::units::{Scale, time};
use text::words::{clean, count, ratio, times, verdict};

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
                (detail(&format!("{} on each cpu", text::words::capital(summary.primary.title())), found.points.len(), moments(found)))
                @if found.both {
                    p.quiet {
                        "Kept free over shared: rounds are paired by their number; below 1 the cpu that was kept free is faster."
                    }
                    (detail("Before and after the cpus were kept free", 0, against(found)))
                }
            }
            @if !page.data.drawing.moved.is_empty() { (moved(&page.data.drawing.moved)) }
            @if counted { (counters(&summary.points, page.data)) }
        },
    })
}

fn moments(found: &Conditions) -> Markup {
    let rows: Vec<(&PointSummary, &CellSummary)> = found.points.clone();
    let of = |value: fn(&stats::Summary) -> f64| {
        let all = rows
            .iter()
            .filter_map(move |(_, cell)| Some(value(&cell.metrics.first()?.summary)));
        Scale::of(all.collect::<Vec<f64>>())
    };
    let (least, mean, most) = (
        of(|s| s.min_ns as f64),
        of(|s| s.mean_ns),
        of(|s| s.max_ns as f64),
    );
    html! {
        thead { tr {
            th scope="col" { "load" } th.num scope="col" { "period" } th scope="col" { "cpu" } th scope="col" { "engine" }
            th.num scope="col" { "min" } th.num scope="col" { "mean" } th.num scope="col" { "max" }
            th.num scope="col" { "variance" br; span.below { "us\u{b2}" } } th.num scope="col" { "jobs" } th.num scope="col" { "missed" }
        } }
        tbody { @for (point, cell) in &rows { @if let Some(metric) = cell.metrics.first() {
            @let s = &metric.summary;
            tr {
                th scope="row" { (clean(&point.load)) }
                td.num { (period(point.period_ns)) }
                td { (point.cpu) @if point.isolated { ", kept free" } }
                td { (cell.engine.name()) @if !cell.real_time { br; span.caution { "not real-time" } } }
                (time_cell(&least.show(s.min_ns as f64), ""))
                (time_cell(&mean.show(s.mean_ns), ""))
                (time_cell(&most.show(s.max_ns as f64), ""))
                (time_cell(&s.sd_ns.map_or("-".to_owned(), |sd| ratio((sd / 1e3).powi(2))), ""))
                (time_cell(&count(s.count), ""))
                (super::tables::lost(cell.missed))
            }
        } } }
    }
}

fn against(found: &Conditions) -> Markup {
    html! {
        thead { tr {
            th scope="col" { "load" } th.num scope="col" { "period" } th scope="col" { "cpu" }
            th scope="col" { "median" br; span.below { "kept free / shared, 95% interval" } }
            th scope="col" { "p99" br; span.below { "kept free / shared" } }
            th.num scope="col" { "max, shared" } th.num scope="col" { "max, kept free" }
        } }
        tbody { @for (point, cell) in found.points.iter().filter(|(point, _)| point.isolated) {
            tr {
                th scope="row" { (clean(&point.load)) }
                td.num { (period(point.period_ns)) }
                td { (point.cpu) }
                @match &point.against_shared {
                    Some(c) => {
                        td.verdict { (times(&c.ratio_of_medians, c.rounds)) (verdict(&c.ratio_of_medians, c.rounds)) }
                        td.verdict { @match &c.ratio_of_p99 {
                            Some(p99) => { (times(p99, c.rounds)) (verdict(p99, c.rounds)) (text::words::fewer_rounds_of_p99(c)) }
                            None => { span.quiet { "too few jobs" } }
                        } }
                    }
                    None => { td colspan="2" { span.quiet { "no round of both" } } }
                }
                @let max = |cell: &CellSummary| cell.metrics.first().map_or("-".to_owned(), |m| time(m.summary.max_ns as f64));
                @let shared = found.at(&point.load, point.period_ns, false).find(|(p, c)| p.cpu == point.cpu && c.engine == cell.engine);
                (time_cell(&shared.map_or("-".to_owned(), |(_, cell)| max(cell)), ""))
                (time_cell(&max(cell), ""))
            }
        } }
    }
}

/// One row for all trials with the same cpus: what stays is the same but for a name or two.
fn moved(trials: &[Moved]) -> Markup {
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
    html! {
        (detail("What was moved off the cpus, and what stayed", groups.len(), html! {
            thead { tr {
                th scope="col" { "cpus" } th.num scope="col" { "trials" } th.num scope="col" { "tasks moved" }
                th.num scope="col" { "interrupts moved" } th scope="col" { "stayed, in any of the trials" } th scope="col" { "load balancing" }
            } }
            tbody { @for group in &groups {
                @let first = &group[0].isolated;
                tr {
                    th scope="row" { (study::plan::list(&first.cpus)) " kept free" br; span.below { "the rest on " (study::plan::list(&first.rest)) } }
                    td.num { (group.len()) }
                    td.num { (span(group, |i| i.tasks_moved)) }
                    td.num { (span(group, |i| i.irqs_moved)) }
                    td {
                        (span(group, |i| i.kernel_threads_left)) " kernel threads: " (names(group, |i| &i.kernel_threads)) br;
                        "tasks: " (names(group, |i| &i.tasks_left)) br;
                        "interrupts: " (names(group, |i| &i.irqs_left))
                        @if group.iter().any(|one| one.isolated.workqueues == Some(false)) { br; "unbound kernel work" }
                    }
                    td {
                        (names(group, |i| std::slice::from_ref(&i.balancing)))
                        @if !first.isolcpus.is_empty() { "; isolcpus " (study::plan::list(&first.isolcpus)) }
                        @if !first.nohz_full.is_empty() { "; nohz_full " (study::plan::list(&first.nohz_full)) }
                    }
                }
            } }
        }))
    }
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
        names => clean(&names.join(", ")),
    }
}

/// What readings cost in ns, as one time or from least to most.
fn costs(least: u64, most: u64) -> String {
    let [low, high] = [least, most].map(|ns| time(ns as f64));
    if low == high {
        low
    } else {
        format!("{low} to {high}, by cell")
    }
}

fn counters(points: &[PointSummary], data: &JobsStudy) -> Markup {
    let rows = points.iter().map(|point| point.counters.len()).sum();
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |r| format!("{r:.2}"));
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
        (detail("Counters against the time of each activation, or the largest of each window", rows, html! {
            thead { tr {
                th scope="col" { "load" } th.num scope="col" { "period" } th scope="col" { "cpu" } th scope="col" { "counter" }
                th scope="col" { "for each" } th.num scope="col" { "total" } th.num scope="col" { "of them" } th.num scope="col" { "Pearson" } th.num scope="col" { "Spearman" }
            } }
            tbody { @for point in points { @for counter in &point.counters {
                tr {
                    th scope="row" { (clean(&point.load)) }
                    td.num { (period(point.period_ns)) }
                    td { (point.cpu) @if point.isolated { ", kept free" } }
                    td { (clean(&counter.name)) }
                    td { (match counter.per { Per::Window => "window", Per::Activation => "activation" }) }
                    td.num { (count(counter.total)) }
                    td.num { (count(counter.windows)) }
                    td.num { (number(counter.pearson)) }
                    td.num { (number(counter.spearman)) }
                }
            } } }
        }))
    }
}
