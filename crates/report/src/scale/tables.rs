//! The tables of the page: fairness (the zcu102 thesis's Table 4.4), growth, and what cells cost.

use super::findings::{crowd, memory, part, rate};
use super::picture::About;
use super::table::short;
use super::words::{even, percent};
use crate::html::{detail, time_cell};
use maud::{Markup, html};
use model::EngineKind;
use record::crowd::CrowdRecord;
use record::scale::{Between, ScalePoint, ScaleSummary};
use stats::{BoxPlot, Even};
use study::median_of;
use text::units::Scale;
use text::words::{count, ratio};

/// Rows of every engine: the engine's name stands in the first only.
fn rows(
    summary: &ScaleSummary,
    keep: impl Fn(&ScalePoint) -> bool,
) -> Vec<(Option<EngineKind>, &ScalePoint)> {
    let mut rows = Vec::new();
    for engine in &summary.engines {
        let points = summary.of(engine.engine).filter(|point| keep(point));
        let named = points
            .enumerate()
            .map(|(at, p)| ((at == 0).then_some(p.engine), p));
        rows.extend(named);
    }
    rows
}

fn row_head(engine: Option<EngineKind>, point: &ScalePoint) -> Markup {
    html! {
        th scope="row" { @if let Some(engine) = engine { (engine) } }
        td.num {
            (count(point.count.into()))
            @if !point.real_time && point.rounds > 0 { br; span.caution { "not real-time" } }
        }
    }
}

fn number(text: Option<String>) -> Markup {
    time_cell(&text.unwrap_or_else(|| "-".to_owned()), "")
}

/// How alike the cells of each number of cells are.
pub(super) fn fairness(summary: &ScaleSummary, about: About) -> Markup {
    let rows = rows(summary, |point| {
        about.of(point).is_some() && point.cells.number.len() > 1
    });
    detail(
        &format!(
            "Between cells that ran together: their mean {}",
            about.title()
        ),
        rows.len(),
        html! {
            thead { tr {
                th scope="col" { "engine" } th.num scope="col" { "cells" }
                th.num scope="col" { "CV" br; span.below { "between all cells" } }
                th.num scope="col" { "Gini index" }
                th.num scope="col" { "CV" br; span.below { "of cells of a cpu" } }
                th.num scope="col" { "by chance" }
                th.num scope="col" { "beyond chance" }
                th scope="col" { "so cells of a cpu were" }
            } }
            tbody { @for (engine, point) in rows {
                @if let Some(between) = about.of(point) {
                    tr { (row_head(engine, point)) (alike(between)) }
                }
            } }
        },
    )
}

fn alike(between: &Between) -> Markup {
    let fairness = between.fairness;
    html! {
        (number(between.spread.coefficient_of_variation.map(percent)))
        (number(between.spread.gini.map(|gini| format!("{gini:.4}"))))
        (number(fairness.map(|f| percent(f.within))))
        (number(fairness.map(|f| percent(f.chance))))
        (number(fairness.map(|f| percent(f.beyond_chance))))
        td { @match fairness {
            Some(fairness) => @if fairness.verdict == Even::Uneven { span.caution { (even(&fairness)) } } @else { (even(&fairness)) },
            None => "-",
        } }
    }
}

/// The medians over cells, and what sharing the cpus predicts.
pub(super) fn growth(summary: &ScaleSummary) -> Markup {
    let rows = rows(summary, |point| point.execution.is_some());
    let middle = |plot: Option<&BoxPlot>| number(plot.map(|plot| short(plot.median_ns as f64)));
    detail(
        "Execution time of the median cell; response time over all jobs that ran while all cells ran",
        rows.len(),
        html! {
            thead { tr {
                th scope="col" { "engine" } th.num scope="col" { "cells" }
                th.num scope="col" { "mean" } th.num scope="col" { "sd" }
                th.num scope="col" { "p95" } th.num scope="col" { "p99" }
                th.num scope="col" { "cpu time" br; "of a job" }
                th.num scope="col" { "mean response" br; span.below { "share of the jobs" } }
                th.num scope="col" { "sharing predicts" br; span.below { "least..most possible" } }
                th.num scope="col" { "measured /" br; "predicted" }
                th.num scope="col" { "cpus used" br; span.below { "predicted" } }
            } }
            tbody { @for (engine, point) in rows {
                @if let Some(execution) = &point.execution { tr {
                    (row_head(engine, point))
                    (middle(Some(&execution.mean))) (middle(execution.sd.as_ref()))
                    (middle(execution.p95.as_ref())) (middle(execution.p99.as_ref()))
                    (shared(point))
                } }
            } }
        },
    )
}

fn shared(point: &ScalePoint) -> Markup {
    let Some(s) = point.sharing else {
        let all = point.response.as_ref().map(|b| short(b.spread.mean));
        return html! {
            (number(None)) (time_cell(&all.unwrap_or_default(), "all jobs")) (number(None)) (number(None)) (number(None))
        };
    };
    let bounds = Scale::of([s.floor_ns, s.sharing_ns, s.ceiling_ns]);
    let (sharing, bounds) = bounds.with_ends(s.sharing_ns, [s.floor_ns, s.ceiling_ns]);
    let off = s.response_ns > 1.02 * s.ceiling_ns;
    html! {
        (number(Some(short(s.demand_ns))))
        (time_cell(&short(s.response_ns), &percent(s.jobs_in_window)))
        (time_cell(&sharing, &bounds))
        td.num {
            (ratio(s.response_ns / s.sharing_ns))
            @if off { br; span.caution { "more than possible" } }
        }
        (time_cell(&percent(s.utilization), &percent(s.predicted_utilization)))
    }
}

/// Creation, memory, waiting and the release.
pub(super) fn cost(summary: &ScaleSummary) -> Markup {
    let rows = rows(summary, |point| {
        !point.crowds.is_empty() || !point.skew_ns.is_empty()
    });
    let bytes = |bytes: f64| format!("{:.2} MB", bytes / 1e6);
    let held = summary.points.iter().any(|point| part(point).is_some());
    detail(
        "Starting the cells",
        rows.len(),
        html! {
            thead { tr {
                th scope="col" { "engine" } th.num scope="col" { "cells" }
                @if held { th.num scope="col" { "reserved" br; span.below { "by" } } }
                th.num scope="col" { "created, armed," br; "finished" }
                th.num scope="col" { "creation" br; span.below { "in a second" } }
                th.num scope="col" { "removal" }
                th.num scope="col" { "memory of a cell" br; span.below { "helpers / kernel" } }
                th.num scope="col" { "cpu while waiting" br; span.below { "all cells, in" } }
                th.num scope="col" { "start skew" br; span.below { "first of each cpu" } }
                th.num scope="col" { "ordinary work late" br; span.below { "limit" } }
            } }
            tbody { @for (engine, point) in rows {
                @let crowd = crowd(point);
                tr {
                    (row_head(engine, point))
                    @if held {
                        (time_cell(
                            &part(point).unwrap_or_else(|| "-".to_owned()),
                            crowd.and_then(|c| c.reservation).map_or("", |held| held.enforcer.name()),
                        ))
                    }
                    (counts(crowd, point))
                    (time_cell(
                        &crowd.map_or("-".to_owned(), |c| short(c.creation_ns as f64)),
                        &crowd.and_then(rate).map_or(String::new(), |rate| format!("{rate:.0}")),
                    ))
                    (number(crowd.and_then(|c| c.removal_ns).map(|ns| short(ns as f64))))
                    (time_cell(
                        &crowd.and_then(memory).map_or("-".to_owned(), |[a, b]| bytes(a + b)),
                        &crowd.and_then(|c| beside(c, bytes)).unwrap_or_default(),
                    ))
                    @match crowd.and_then(|crowd| crowd.waiting) {
                        Some(waiting) => (time_cell(&short(waiting.cpu_ns as f64), &short(waiting.window_ns as f64))),
                        None => (number(None)),
                    }
                    (time_cell(
                        &median_of(&point.skew_ns).map_or("-".to_owned(), short),
                        &median_of(&point.first_of_cpu_skew_ns).map_or(String::new(), short),
                    ))
                    (watched(crowd))
                }
            } }
        },
    )
}

fn beside(crowd: &CrowdRecord, bytes: impl Fn(f64) -> String) -> Option<String> {
    let [_, helpers] = memory(crowd)?;
    let sums = crowd.memory?;
    let kernel = sums
        .kernel_bytes
        .map(|kernel| bytes(kernel as f64 / f64::from(sums.cells)));
    Some(format!(
        "{} / {}",
        bytes(helpers),
        kernel.unwrap_or_else(|| "unknown".to_owned())
    ))
}

fn counts(crowd: Option<&CrowdRecord>, point: &ScalePoint) -> Markup {
    let Some(crowd) = crowd else {
        return number(Some(count(point.cells.number.len() as u64)));
    };
    let all = [crowd.created, crowd.armed, crowd.finished]
        .iter()
        .all(|&cells| cells == crowd.asked);
    html! {
        td.num {
            @if all { "all" } @else {
                span.bad { (count(crowd.created.into())) ", " (count(crowd.armed.into())) ", " (count(crowd.finished.into())) }
            }
        }
    }
}

fn watched(crowd: Option<&CrowdRecord>) -> Markup {
    match crowd.and_then(|crowd| crowd.watchdog) {
        Some(watchdog) if watchdog.froze => html! {
            td.num { span.bad { (short(watchdog.worst_delay_ns as f64)) ", froze" } }
        },
        Some(watchdog) => time_cell(
            &short(watchdog.worst_delay_ns as f64),
            &short(watchdog.limit_ns as f64),
        ),
        None => number(None),
    }
}
