use std::fmt::Write;

use analysis::{Verdict, Witness};

use super::mend::{Change, Mend};
use super::servers;
use super::special::Special;
use super::study::{CellStudy, Outcome, Study};
use crate::style::Style;
use crate::units::exact;
use crate::words::{clean, plural};

/// For every cell how much more work it bears, and for those that miss a deadline the witness, what the demand is made
/// of, and what would mend it. Ends with a line break; empty when nothing was sought.
pub fn explanation(study: &Study, style: Style) -> String {
    let mut out = String::new();
    for cell in &study.cells {
        if let Some(line) = room(cell) {
            let _ = writeln!(out, "{}", style.wrap(&clean(&line), 8));
        }
        let mut said = match &cell.server {
            Some(server) => servers::lines(cell, server),
            None => Vec::new(),
        };
        if let Verdict::Unschedulable(witness) = &cell.verdict {
            said.extend(lines(cell, witness));
        }
        if let Some(special) = &cell.special {
            said.extend(special.reasons(cell));
        }
        let mended = said.iter().any(|line| line.starts_with("mend "));
        said.extend(mend_lines(cell, mended));
        for line in said {
            let _ = writeln!(out, "{}", style.wrap(&clean(&line), 8));
        }
    }
    out
}

/// `in 5 ms every 10 ms`, `in 5 ms within 8 ms of every 10 ms`, `on a cpu of its own`, or the server that keeps it.
pub(super) fn supply_words(cell: &CellStudy) -> String {
    if let Some(Special::Global(global)) = &cell.special {
        return global.supply_words(cell);
    }
    match &cell.server {
        Some(server) => servers::words(cell, server),
        None => reservation_words(cell),
    }
}

pub(super) fn reservation_words(cell: &CellStudy) -> String {
    match &cell.reservation {
        None => "on a cpu of its own".to_owned(),
        Some(r) if r.deadline_ns == r.period_ns => {
            format!("in {} every {}", exact(r.budget_ns), exact(r.period_ns))
        }
        Some(r) => format!(
            "in {} within {} of every {}",
            exact(r.budget_ns),
            exact(r.deadline_ns),
            exact(r.period_ns)
        ),
    }
}

/// By how much every wcet may grow, or must shrink.
fn room(cell: &CellStudy) -> Option<String> {
    let room = cell.room.as_ref()?;
    let factor = format!("{}.{:03}", room.per_mille / 1_000, room.per_mille % 1_000);
    let what = if room.per_mille >= 1_000 {
        format!("every wcet may be {factor} times as long")
    } else {
        format!("it would hold with every wcet {factor} times as long")
    };
    let first = match room.bottleneck {
        Some(task) => format!("; beyond that {} misses first", name(cell, task)),
        None => String::new(),
    };
    Some(format!("room    {}: {what}{first}", cell.name))
}

fn name(cell: &CellStudy, task: usize) -> &str {
    cell.tasks.get(task).map_or("?", |task| &task.name)
}

fn lines(cell: &CellStudy, witness: &Witness) -> Vec<String> {
    let mut lines = vec![format!(
        "why     {}: task {} can miss its deadline: {} after the worst-case instant {} of work must be done, and only \
         {} of cpu time is certain; {} short",
        cell.name,
        name(cell, witness.task),
        exact(witness.instant),
        exact(witness.demand),
        exact(witness.supply),
        exact(witness.demand.saturating_sub(witness.supply)),
    )];
    lines.extend(demands(cell, witness));
    lines
}

/// What a demand is made of.
pub(super) fn demands(cell: &CellStudy, witness: &Witness) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &witness.parts {
        lines.push(format!(
            "demand  {}: {} of {}",
            exact(part.demand),
            plural(part.jobs, "job"),
            name(cell, part.task)
        ));
    }
    let counted: u64 = witness
        .parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(part.demand));
    let rest = witness.demand.saturating_sub(counted);
    if rest > 0 {
        lines.push(format!("demand  {}: blocking", exact(rest)));
    }
    lines
}

fn mend_lines(cell: &CellStudy, mended: bool) -> Vec<String> {
    let mends = cell.mends.iter();
    let mut lines: Vec<String> = mends
        .map(|mend| format!("mend    {}", words(cell, mend)))
        .collect();
    if lines.is_empty() && !mended && cell.outcome == Outcome::Missed {
        lines.push("mend    no change of one number alone was found".to_owned());
    }
    lines
}

fn words(cell: &CellStudy, mend: &Mend) -> String {
    let (from, to) = (mend.from_ns.unsigned_abs(), mend.to_ns.unsigned_abs());
    let from_to = format!("{} -> {}", exact(from), exact(to));
    let by = exact(from.abs_diff(to));
    let task = mend.task.map_or("?", |task| name(cell, task));
    match mend.change {
        Change::Budget => format!("budget +{by} ({from_to})"),
        Change::ReservationPeriod => format!("period of the reservation -{by} ({from_to})"),
        Change::Deadline => format!("deadline of {task} +{by} ({from_to})"),
        Change::Wcet => format!("wcet of {task} -{by} ({from_to})"),
        Change::WcetHigh => format!("wcet_hi of {task} -{by} ({from_to})"),
        Change::Move => format!("move {task} to another cell"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feasibility::study;
    use model::taskset::TaskSet;

    #[test]
    fn a_refusal_is_explained_and_mended() {
        let text = "schema = 1\n[[cell]]\nname = \"c\"\n\
            [[cell.task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"5ms\"\n\
            [[cell.task]]\nname = \"b\"\nwcet = \"4ms\"\nperiod = \"10ms\"\ndeadline = \"7ms\"\nblocking = \"1us\"\n";
        let set = TaskSet::parse("x", text).expect("a task set");
        let shown = explanation(&study(&set, true), Style::default());
        for part in [
            "why     c: task b can miss its deadline: 7 ms after",
            "8.001 ms of work must be done",
            "demand  4 ms: 2 jobs of a",
            "demand  4 ms: 1 job of b",
            "demand  1 us: blocking",
            "mend    deadline of b +1.001 ms (7 ms -> 8.001 ms)",
            "mend    move",
        ] {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}");
        }
        let fine = TaskSet::parse("x", &text.replace("\"7ms\"", "\"9ms\"")).expect("a task set");
        // 2 jobs of a and 1 of b make 8 ms of the 9 ms less blocking: 8.999/8 = 1.124.
        assert_eq!(
            explanation(&study(&fine, true), Style::default()),
            "room    c: every wcet may be 1.124 times as long; beyond that b misses first\n"
        );
        assert_eq!(explanation(&study(&fine, false), Style::default()), "");
    }
}
