//! The results for servers in words.

use super::super::special;
use super::super::study::{CellStudy, Outcome};
use super::fix::ServerFix;
use super::study::ServerStudy;
use text::units::exact;
use text::words::plural;

/// `in a deferrable server of 3 ms every 10 ms, priority 1 on cpu 0`.
pub(in super::super) fn words(cell: &CellStudy, server: &ServerStudy) -> String {
    let budget = super::super::explain::reservation_words(cell);
    let budget = budget.strip_prefix("in ").unwrap_or(&budget);
    let priority = server
        .priority
        .map(|priority| format!("priority {priority} "))
        .unwrap_or_default();
    let cpu = server.cpu;
    format!(
        "in a {} server of {budget}, {priority}on cpu {cpu}",
        server.kind
    )
}

/// The sentence on the server itself.
pub(in super::super) fn sentence(cell: &CellStudy, server: &ServerStudy) -> String {
    let name = &cell.name;
    let deadline = exact(server.deadline_ns);
    match (server.outcome, &server.shortage) {
        (Outcome::Holds, _) if server.kind == "cbs" => format!(
            "server  {name}: holds; like every cbs server on cpu {}, it gets its budget by the \
             end of its period of {deadline}",
            server.cpu
        ),
        (Outcome::Holds, _) => format!(
            "server  {name}: holds; it gets its whole budget within {} of each refill (deadline {deadline})",
            server.response_ns.map_or("-".to_owned(), exact)
        ),
        (outcome, Some(shortage)) => format!(
            "server  {name}: {}; within {} of a refill, up to {} of budgets may be due, {} more than the cpu has",
            if outcome == Outcome::Fails {
                "fails"
            } else {
                "not shown"
            },
            exact(shortage.instant_ns),
            exact(shortage.demand_ns),
            exact(shortage.demand_ns.saturating_sub(shortage.supply_ns))
        ),
        (_, None) => {
            let why = server.undecided.as_deref().unwrap_or("undecided");
            format!("server  {name}: {why}")
        }
    }
}

/// The witness of a server that is not guaranteed to get its budget, and the fixes.
pub(in super::super) fn lines(cell: &CellStudy, server: &ServerStudy) -> Vec<String> {
    let Some(shortage) = &server.shortage else {
        return doubts(cell, server);
    };
    let mut lines = vec![format!(
        "why     {}: its server can lack part of its budget {} after a refill: by then {} is \
         due to it and to the servers that delay it, but the cpu has only {}; {} short",
        cell.name,
        exact(shortage.instant_ns),
        exact(shortage.demand_ns),
        exact(shortage.supply_ns),
        exact(shortage.demand_ns.saturating_sub(shortage.supply_ns)),
    )];
    for part in &shortage.parts {
        lines.push(format!(
            "demand  {}: {} of {}",
            exact(part.demand_ns),
            plural(part.budgets, "budget"),
            part.cell
        ));
    }
    for fix in &server.fixes {
        lines.push(format!("fix     {}", fix_words(fix)));
    }
    if server.fixes.is_empty() {
        lines.push("fix     no change of a single number was found".to_owned());
    }
    lines
}

/// The test's counts against a deadline that it does not show to hold.
fn doubts(cell: &CellStudy, server: &ServerStudy) -> Vec<String> {
    let Some(witness) = &server.doubt else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "why     {}: task {} is not shown to meet its deadline: {} after the worst-case \
         instant, {} of work is due but only {} of cpu time is guaranteed; {} short",
        cell.name,
        special::name(cell, witness.task),
        exact(witness.instant),
        exact(witness.demand),
        exact(witness.supply),
        exact(witness.demand.saturating_sub(witness.supply)),
    )];
    lines.extend(super::super::explain::demands(cell, witness));
    lines
}

fn fix_words(fix: &ServerFix) -> String {
    let change = |from: &i64, to: &i64| {
        let (from, to) = (from.unsigned_abs(), to.unsigned_abs());
        let sign = if to > from { "+" } else { "-" };
        format!(
            "{sign}{} ({} -> {})",
            exact(from.abs_diff(to)),
            exact(from),
            exact(to)
        )
    };
    match fix {
        ServerFix::Budget {
            cell,
            from_ns,
            to_ns,
        } => {
            format!("budget of {cell} {}", change(from_ns, to_ns))
        }
        ServerFix::Period {
            cell,
            from_ns,
            to_ns,
        } => {
            format!("period of the server of {cell} {}", change(from_ns, to_ns))
        }
        ServerFix::Deadline {
            cell,
            from_ns,
            to_ns,
        } => {
            format!(
                "deadline of the reservation of {cell} {}",
                change(from_ns, to_ns)
            )
        }
        ServerFix::Priority { cell, from, to } => format!("priority of {cell} {from} -> {to}"),
        ServerFix::Cpu { cell, from, to } => format!("cpu of {cell} {from} -> {to}"),
    }
}
