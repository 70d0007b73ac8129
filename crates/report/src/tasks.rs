//! A measured task set compared with its deadlines and the bounds of its analysis, for terminal and page.

use record::summary::{CellSummary, RunSummary, TaskSummary};

use crate::grid::{Cell, Table, lost, name};
use crate::reserved;
use text::style::Style;
use text::units::{Unit, time};
use text::words::{count, plural};

/// A thread of a task set with its task and its longest response, ns.
pub(crate) type Row<'a> = (&'a CellSummary, &'a TaskSummary, Option<i64>);

/// The threads of all trials.
pub(crate) fn rows(summary: &RunSummary) -> Vec<Row<'_>> {
    let worst = |cell: &CellSummary| cell.metrics.first().map(|m| m.summary.max_ns);
    (summary.cells.iter())
        .filter_map(|cell| Some((cell, cell.task.as_ref()?, worst(cell))))
        .collect()
}

/// Whether the longest response is beyond the bound.
pub(crate) fn beyond(task: &TaskSummary, worst: Option<i64>) -> bool {
    task.bound_ns
        .zip(worst)
        .is_some_and(|(bound, worst)| worst > bound)
}

/// Deadlines and bounds, as sentences.
pub(crate) fn findings(summary: &RunSummary) -> Vec<String> {
    let rows: Vec<_> = rows(summary)
        .into_iter()
        .filter(|(_, task, _)| !task.competes)
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let jobs: u64 = rows.iter().map(|(cell, ..)| cell.planned).sum();
    let late: u64 = rows.iter().map(|(_, task, _)| task.late).sum();
    let skipped: u64 = rows.iter().map(|(cell, ..)| cell.skipped).sum();
    let mut sentences = vec![match late + skipped {
        0 => format!(
            "All {} of the task set met their deadlines.",
            plural(jobs, "job")
        ),
        lost => format!(
            "{} of {} of the task set missed their deadlines: {} ended late, {} never ran because their period had passed.",
            count(lost),
            plural(jobs, "job"),
            count(late),
            count(skipped)
        ),
    }];
    let above: Vec<_> = rows
        .iter()
        .filter(|(_, task, worst)| beyond(task, *worst))
        .collect();
    let bounded = rows
        .iter()
        .filter(|(_, task, _)| task.bound_ns.is_some())
        .count() as u64;
    for group in above.chunk_by(|a, b| a.0.trial == b.0.trial) {
        sentences.push(exceeded(group, &rows));
    }
    if bounded > 0 && above.is_empty() {
        sentences.push(format!(
            "Every response of {} with a bound stayed within it.",
            plural(bounded, "task")
        ));
    }
    sentences.extend(reserved::findings(summary));
    let is_certain = |(_, task, _): &Row<'_>| {
        let held = task.held.as_ref();
        held.is_some_and(|held| held.certain_ns.is_some())
    };
    if bounded == 0 && !rows.iter().any(is_certain) {
        sentences.push("The analysis has no bound for these tasks.".to_owned());
    }
    sentences
}

/// One trial's responses beyond their bounds, and how much of that is work beyond the wcet.
fn exceeded(group: &[&Row], all: &[Row]) -> String {
    let (cell, task, worst) = group.iter().copied().fold(group[0], |most, row| {
        let excess = |row: &Row| {
            let (bound, worst) = (row.1.bound_ns.unwrap_or(0), row.2.unwrap_or(0));
            (worst - bound) as f64 / bound.max(1) as f64
        };
        if excess(row) > excess(most) {
            row
        } else {
            most
        }
    });
    let of_trial = all.iter().filter(|row| row.0.trial == cell.trial).count() as u64;
    let (bound, longest) = (task.bound_ns.unwrap_or(0), worst.unwrap_or(0));
    let excess = |row: &&Row| {
        let used = row.0.cpu_time_per_activation_ns?;
        Some((used / row.1.wcet_ns.max(1) as f64 - 1.0) * 100.0)
    };
    let work = group
        .iter()
        .filter_map(excess)
        .fold(f64::NEG_INFINITY, f64::max);
    let work = if work > 0.05 {
        format!("jobs took up to {work:.1} % more cpu time on average than their wcet")
    } else {
        "jobs took no more cpu time on average than their wcet".to_owned()
    };
    format!(
        "{}: {} of {} responded later than their bounds, at worst {} against {} ({}). The analysis rests on the wcet alone: the kernel's \
         overheads (wake-up, switches, interrupts, a hypervisor's pauses) are not in its model, and {work}.",
        cell.trial,
        count(group.len() as u64),
        plural(of_trial, "task"),
        time(longest as f64),
        time(bound as f64),
        task.name,
    )
}

/// The median of its responses, ns.
pub(crate) fn median(cell: &CellSummary) -> Option<i64> {
    let first = cell.metrics.first()?;
    Some(first.summary.median_ns)
}

/// A ratio of two times such as `0.412`.
pub(crate) fn normalised(ns: Option<i64>, deadline_ns: i64) -> String {
    ns.map_or("-".to_owned(), |ns| {
        format!("{:.3}", ns as f64 / deadline_ns.max(1) as f64)
    })
}

/// The table of tasks; empty without a task set.
pub(crate) fn table(summary: &RunSummary) -> Table<Row<'_>> {
    let rows = rows(summary);
    let unit = Unit::common(rows.iter().flat_map(|(_, task, longest)| {
        let times = [task.wcet_ns, task.period_ns, task.deadline_ns].map(Some);
        let found = [*longest, task.bound_ns];
        times.into_iter().chain(found).flatten().map(|ns| ns as f64)
    }));
    let bound = |(_, task, _): &Row| Some(task.bound_ns? as f64);
    let table = Table::new("the task set against its deadlines and its analysis", rows)
        .unit(unit)
        .head("task", |(cell, task, _)| {
            name(cell).below(if task.competes { "competes" } else { "" })
        })
        .text("class", |(cell, ..)| cell.class.as_str())
        .on_page()
        .times("wcet", |(_, task, _)| Some(task.wcet_ns as f64))
        .times("period", |(_, task, _)| Some(task.period_ns as f64))
        .times("deadline", |(_, task, _)| Some(task.deadline_ns as f64))
        .times("longest response", |(.., longest)| Some((*longest)? as f64));
    let scale = table.scale(bound);
    table
        .number("bound", |row| {
            let exceeded = if beyond(row.1, row.2) { "exceeded" } else { "" };
            Some(Cell::from(scale.show(bound(row)?)).below(exceeded))
        })
        .number("median/deadline", |(cell, task, _)| {
            normalised(median(cell), task.deadline_ns)
        })
        .number("longest/deadline", |(_, task, longest)| {
            normalised(*longest, task.deadline_ns)
        })
        .number("late", |(_, task, _)| lost(task.late))
        .number("skipped", |(cell, ..)| lost(cell.skipped))
}

/// The tables of tasks and reservations that a terminal shows, with their explanation; empty without a task set.
pub(crate) fn shown(summary: &RunSummary, style: Style) -> String {
    let table = table(summary);
    if table.is_empty() {
        return String::new();
    }
    let sentences = findings(summary);
    table.block(style)
        + &reserved::table(summary).block(style)
        + &style.sentences(&sentences)
        + "\n"
}
