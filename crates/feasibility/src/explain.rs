//! Why a deadline is missed, and the changes that would fix it, in words.

use std::fmt::Write;

use analysis::{Part, Verdict, Witness};

use super::fix::{Change, Fix, MOST_TASKS};
use super::servers;
use super::special::Special;
use super::study::{CellStudy, Outcome, Study};
use text::style::Style;
use text::units::exact;
use text::words::{clean, plural};

/// For every cell how much more work it can take, and for those that miss a deadline the witness, the parts of the demand,
/// and the fixes. Ends with a line break; empty when nothing was searched for.
pub fn explanation(study: &Study, style: Style) -> String {
    let mut out = String::new();
    for cell in &study.cells {
        if let Some(mut line) = room(cell) {
            if !study.uncovered.is_empty() {
                line.push_str("; not counted there: ");
                line.push_str(&study.uncovered.join("; "));
            }
            let _ = writeln!(out, "{}", style.wrap(&clean(&line), 8));
        }
        let mut said = match &cell.server {
            Some(server) => servers::lines(cell, server),
            None => Vec::new(),
        };
        match (&cell.verdict, &cell.special) {
            // Its reasons explain it better.
            (_, Some(Special::Global(_))) => {}
            (Verdict::Unschedulable(witness), _) => said.extend(witness_lines(cell, witness)),
            _ => {}
        }
        if let Some(special) = &cell.special {
            said.extend(special.reasons(cell));
        }
        let fixed = said.iter().any(|line| line.starts_with("fix "));
        said.extend(fix_lines(cell, fixed));
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

/// The factor by which every wcet may grow, or must shrink.
fn room(cell: &CellStudy) -> Option<String> {
    let room = cell.room.as_ref()?;
    let factor = format!("{}.{:03}", room.per_mille / 1_000, room.per_mille % 1_000);
    if room.per_mille == 0 {
        return Some(format!(
            "room    {}: cutting every WCET to 0.1 % would not help",
            cell.name
        ));
    }
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

/// A deadline that can be missed, and the parts of the demand.
pub(super) fn witness_lines(cell: &CellStudy, witness: &Witness) -> Vec<String> {
    let mut lines = vec![format!(
        "why     {}: task {} can miss its deadline: {} after the worst-case instant, {} of work \
         is due but only {} of cpu time is guaranteed; {} short",
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

/// Maximum number of parts of a demand that are listed; of more, the smaller ones are summed up.
const MOST_LINES: usize = 20;

/// A line for each part of a demand; if there are very many, for the largest, and one for the rest.
pub(super) fn largest(parts: &[Part], line: impl Fn(&Part) -> String) -> Vec<String> {
    if parts.len() <= MOST_LINES {
        return parts.iter().map(line).collect();
    }
    let mut parts: Vec<&Part> = parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.demand));
    let (shown, rest) = parts.split_at(MOST_LINES / 2);
    let sum = rest
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(part.demand));
    let mut lines: Vec<String> = shown.iter().map(|&part| line(part)).collect();
    lines.push(format!(
        "demand  {}: {}",
        exact(sum),
        plural(rest.len() as u64, "more task")
    ));
    lines
}

/// The parts of a demand.
pub(super) fn demands(cell: &CellStudy, witness: &Witness) -> Vec<String> {
    let mut lines = largest(&witness.parts, |part| {
        format!(
            "demand  {}: {} of {}",
            exact(part.demand),
            plural(part.jobs, "job"),
            name(cell, part.task)
        )
    });
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

fn fix_lines(cell: &CellStudy, fixed: bool) -> Vec<String> {
    let fixes = cell.fixes.iter();
    let mut lines: Vec<String> = fixes
        .map(|fix| format!("fix     {}", words(cell, fix)))
        .collect();
    if lines.is_empty() && !fixed && cell.outcome == Outcome::Fails {
        lines.push(if cell.tasks.len() > MOST_TASKS {
            format!("fix     not searched: the cell has more than {MOST_TASKS} tasks")
        } else {
            "fix     no change of a single number was found".to_owned()
        });
    }
    lines
}

fn words(cell: &CellStudy, fix: &Fix) -> String {
    let (from, to) = (fix.from_ns.unsigned_abs(), fix.to_ns.unsigned_abs());
    let from_to = format!("{} -> {}", exact(from), exact(to));
    let by = exact(from.abs_diff(to));
    let task = fix.task.map_or("?", |task| name(cell, task));
    match fix.change {
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
    use crate::study;
    use model::taskset::TaskSet;

    #[test]
    fn a_refusal_is_explained_and_fixed() {
        let text = "schema = 1\n[[cell]]\nname = \"c\"\n\
            [[cell.task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"5ms\"\n\
            [[cell.task]]\nname = \"b\"\nwcet = \"4ms\"\nperiod = \"10ms\"\ndeadline = \"7ms\"\nblocking = \"1us\"\n";
        let set = TaskSet::parse("x", text).expect("a task set");
        let shown = explanation(&study(&set, true), Style::default());
        for part in [
            "why     c: task b can miss its deadline: 7 ms after",
            "8.001 ms of work is due",
            "demand  4 ms: 2 jobs of a",
            "demand  4 ms: 1 job of b",
            "demand  1 us: blocking",
            "fix     deadline of b +1.001 ms (7 ms -> 8.001 ms)",
            "fix     move",
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

    fn explained(text: &str) -> String {
        let set = TaskSet::parse("x", text).expect("a task set");
        let shown = explanation(&study(&set, true), Style::default());
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn global(more: &str, tasks: &[(u64, u64)]) -> String {
        let mut text =
            format!("schema = 1\n[[cell]]\nname = \"g\"\npolicy = \"global-edf\"\n{more}\n");
        for (place, (wcet, period)) in tasks.iter().enumerate() {
            text += &format!(
                "[[cell.task]]\nname = \"t{place}\"\nwcet = \"{wcet}ms\"\nperiod = \"{period}ms\"\n"
            );
        }
        text
    }

    #[test]
    fn a_miss_on_several_cpus_is_shown_by_a_run() {
        let shown = explained(&global("cpus = 2", &[(2, 10), (2, 10), (10, 11)]));
        let why = "task t2 misses its deadline if all tasks arrive at once and then as often as allowed: its job 1 \
                   arrives after 0 and is due after 11 ms, when it has had 9 ms of its 10 ms";
        assert!(shown.contains(why), "{shown}");
        assert!(!shown.contains("demand"), "{shown}");
        let part = "reservation = { budget = \"12000001ns\", period = \"10ms\", cpus = 2 }";
        let over = explained(&global(part, &[(10, 40), (48, 50), (50, 60)]));
        assert!(
            over.contains(
                "in the long run the tasks need more than there is: 122.6 ms of cpu time in 60 ms"
            ),
            "{over}"
        );
        assert!(
            over.contains("but only 72.000006 ms is available (1.200000)"),
            "{over}"
        );
        assert!(!over.contains("demand"), "{over}");
    }

    #[test]
    fn what_is_not_sought_is_not_said_to_be_missing() {
        let cell = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"edf\"\n\
                    reservation = { budget = \"1ms\", period = \"100ms\" }\n";
        let task = |place: usize| {
            format!(
                "[[cell.task]]\nname = \"t{place}\"\nwcet = \"1us\"\nperiod = \"1s\"\ndeadline = \"9ms\"\n"
            )
        };
        let many: String = (0..257).map(task).collect();
        let shown = explained(&format!("{cell}{many}"));
        assert!(
            shown.contains("fix not searched: the cell has more than 256 tasks"),
            "{shown}"
        );
        assert!(shown.contains("247 us: 247 more tasks"), "{shown}");
        let shown = explained(&format!("{cell}{}", task(0)));
        assert!(
            shown.contains("cutting every WCET to 0.1 % would not help"),
            "{shown}"
        );
    }
}
