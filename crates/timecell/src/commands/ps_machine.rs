//! `timecell ps --machine`: the grants on this machine with their holders, and the unaccounted real-time threads.

use model::mission::CellClass;
use report::exact;
use supervise::admit::{HeldCell, Hold, Unaccounted};
use supervise::ledger::{Entry, Ledger, found_twice, unaccounted};

use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 2;

/// Prints it.
pub fn run(json: bool) -> Result<Ended, CommandError> {
    let ledger = Ledger::default();
    let entries = ledger.entries()?;
    let outside = found_twice(|| (ledger.entries()).map(|now| unaccounted(&now, None, &[])))?;
    if json {
        let json = serde_json::json!({
            "schema": SCHEMA,
            "entries": entries,
            "unaccounted": outside,
        });
        out::print(&format!("{json:#}"));
    } else {
        out::foreign(&text(&entries, &outside));
    }
    Ok(Ended::Fine)
}

fn text(entries: &[Entry], outside: &[Unaccounted]) -> String {
    let mut lines = Vec::new();
    if entries.is_empty() {
        lines.push("nothing is granted on this machine".to_owned());
    }
    for entry in entries {
        let (holder, process) = (&entry.holder, entry.process.pid);
        lines.push(format!(
            "{holder}   process {process}, since {}",
            entry.since_utc
        ));
        if !entry.measured_cpus.is_empty() {
            let cpus = host::cpus::format_list(&entry.measured_cpus);
            lines.push(format!("    measures on cpu {cpus}"));
        }
        if entry.memory.limits_bytes > 0 {
            let most = model::mib(entry.memory.limits_bytes);
            lines.push(format!("    at most {most} of memory"));
        }
        lines.extend(entry.cells.iter().flat_map(cell));
        if let Some(broken) = &entry.broken {
            let (since, why) = (&broken.since_utc, out::name(&broken.why));
            lines.push(format!(
                "    broken since {since}: {why}; nothing is guaranteed any more"
            ));
        }
    }
    if !outside.is_empty() {
        lines.push(String::new());
        lines.push("unaccounted real-time threads".to_owned());
    }
    for thread in outside {
        lines.push(format!(
            "    {:<10} process {}, thread {} ({}), cpu {}",
            thread.class,
            thread.pid,
            thread.tid,
            out::name(&thread.name),
            host::cpus::format_list(&thread.cpus)
        ));
    }
    lines.join("\n")
}

/// Its holds, a line each.
fn cell(cell: &HeldCell) -> Vec<String> {
    let line = |hold: &Hold| {
        let own = hold.reservation_ns.filter(|_| cell.supervisor);
        let held = match (hold.budget_ns.zip(hold.period_ns)).or(own) {
            Some((budget, period)) => format!("{} every {}", exact(budget), exact(period)),
            None => "no budget for the whole cell".to_owned(),
        };
        let class = match hold.class {
            CellClass::RoundRobin => "RR",
            _ => "FIFO",
        };
        let priorities = match hold.priorities {
            Some((lowest, highest)) if lowest == highest => format!(", {class} {lowest}"),
            Some((lowest, highest)) => format!(", {class} {lowest} to {highest}"),
            None => String::new(),
        };
        format!(
            "    {}: cpu {}, {held}, {}{priorities}",
            cell.cell,
            host::cpus::format_list(&hold.cpus),
            match cell.supervisor {
                true => "itself",
                false => cell.enforcer.name(),
            }
        )
    };
    cell.holds.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_name_cannot_add_lines_or_escapes() {
        let thread = Unaccounted {
            pid: 7,
            tid: 8,
            name: "\u{1b}[31mX\nnothing".to_owned(),
            class: "FIFO 90".to_owned(),
            cpus: vec![1],
        };
        let text = text(&[], &[thread]);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
