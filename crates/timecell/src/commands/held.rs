//! `timecell hold` and `timecell release`: hold running work to a budget with the freezer, and release it.

use std::fmt::Write as _;

use host::sched::Class;
use report::exact;
use supervise::admit::{Basis, Room};
use supervise::held::{self, Held, Listing, Released, Seen, SeenHold, Thing, Wanted};
use supervise::ledger::Ledger;

use crate::cli::{Hold, Release};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 2;

/// Holds something, or lists all holds.
pub fn hold(options: &Hold) -> Result<Ended, CommandError> {
    let ledger = Ledger::default();
    let (Some(what), Some(reserve)) = (&options.what, options.reserve) else {
        print_list(&held::list(&ledger)?, options.json);
        return Ok(Ended::Fine);
    };
    let wanted = Wanted {
        what: what.clone(),
        budget_ns: reserve.budget_ns,
        period_ns: reserve.period_ns,
        cpus: options.cpu.clone().map_or_else(Vec::new, |cpus| cpus.0),
        class: match (options.fifo, options.rr) {
            (Some(priority), _) => Some(Class::Fifo { priority }),
            (None, own) => own.map(|priority| Class::RoundRobin { priority }),
        },
    };
    let mut notes = Vec::new();
    let held = held::hold(&wanted, &ledger, &mut notes);
    tell(&notes);
    let held = held?;
    if options.json {
        let json = serde_json::json!({
            "schema": SCHEMA,
            "held": held.thing,
            "budget_ns": wanted.budget_ns,
            "period_ns": wanted.period_ns,
            "priorities": held.priorities,
            "threads": held.threads,
            "cpus": held.rooms.iter().map(room).collect::<Vec<_>>(),
            "notes": notes,
        });
        out::print(&format!("{json:#}"));
    } else {
        out::foreign(&begun(&wanted, &held));
    }
    Ok(Ended::Fine)
}

/// The guarantee on one cpu.
fn room(room: &Room) -> serde_json::Value {
    serde_json::json!({
        "cpu": room.cpu,
        "rate": room.rate,
        "delay_ns": room.delay_ns,
        "basis": room.basis,
        "notes": room.notes,
    })
}

/// Releases one, or all.
pub fn release(options: &Release) -> Result<Ended, CommandError> {
    let ledger = Ledger::default();
    let released = match &options.what {
        Some(what) => held::release(what, &ledger)?,
        None => held::release_all(&ledger)?,
    };
    tell(&released.notes);
    if options.json {
        let left: Vec<String> = released.left.iter().map(ToString::to_string).collect();
        let json = serde_json::json!({
            "schema": SCHEMA,
            "released": released.things,
            "notes": released.notes,
            "left": left,
        });
        out::print(&format!("{json:#}"));
    } else {
        out::foreign(&let_go(&released));
    }
    for left in &released.left {
        out::error(&left.to_string());
    }
    Ok(match released.left.is_empty() {
        true => Ended::Fine,
        false => Ended::Failed,
    })
}

/// Notes the holds that have ended since the last look.
fn tell(notes: &[String]) {
    for text in notes {
        out::note(&format!("note    {}", out::name(text)));
    }
}

/// The name of a thing, safe within a printed line.
fn called(thing: &Thing) -> String {
    out::name(&thing.to_string())
}

fn begun(wanted: &Wanted, held: &Held) -> String {
    let ns = |time: i64| exact(time.unsigned_abs());
    let cpus: Vec<u32> = held.rooms.iter().map(|room| room.cpu).collect();
    let mut text = format!(
        "{}: {} of {} in every {}, held by the freezer of {}\n",
        called(&held.thing),
        ns(wanted.budget_ns),
        of_cpus(&cpus),
        ns(wanted.period_ns),
        held.thing.group.display()
    );
    let threads = match held.threads {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    };
    let class = (wanted.class.as_ref()).map_or_else(|| class(held.priorities), Class::to_string);
    if held.priorities.is_none() {
        let _ = writeln!(
            text,
            "    {threads}, ordinary: the budget is the most that they get, and real-time threads come first; --fifo or --rr guarantees it"
        );
    }
    for room in held.rooms.iter().filter(|_| held.priorities.is_some()) {
        let (whose, the_cpu) = match cpus.len() {
            1 => (threads.clone(), "the cpu".to_owned()),
            many => (
                format!("{threads} on {many} cpus"),
                format!("cpu {}", room.cpu),
            ),
        };
        let _ = match room.delay_ns {
            Some(delay) => writeln!(
                text,
                "    {whose}, {class}: guaranteed {:.1} % of {the_cpu} after waiting up to {}, by {}",
                room.rate * 100.0,
                exact(delay),
                rests_on(&room.basis)
            ),
            None => writeln!(text, "    {whose}, {class}"),
        };
    }
    let mut notes: Vec<&String> = held.rooms.iter().flat_map(|room| &room.notes).collect();
    notes.dedup();
    for note in notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = write!(
        text,
        "    release it with: timecell release {}",
        held.thing.name
    );
    text
}

/// Such as "cpu 1", or for several "each of cpus 0-1".
fn of_cpus(cpus: &[u32]) -> String {
    let list = host::cpus::format_list(cpus);
    match cpus.len() {
        1 => format!("cpu {list}"),
        _ => format!("each of cpus {list}"),
    }
}

/// The basis of the guarantee.
fn rests_on(basis: &Basis) -> &'static str {
    match basis {
        Basis::Measured { .. } => "what was measured for this budget on this machine",
        Basis::Reaction {
            unmeasured: None, ..
        } => "the freezer's rule and its reaction measured on this machine",
        Basis::Reaction { .. }
        | Basis::Tick { .. }
        | Basis::Windows { .. }
        | Basis::Ample { .. }
        | Basis::WholeCpu => "the freezer's rule and its reaction measured on another machine",
    }
}

fn class(priorities: Option<(u8, u8)>) -> String {
    match priorities {
        None => "ordinary".to_owned(),
        Some((lowest, highest)) if lowest == highest => format!("FIFO {lowest}"),
        Some((lowest, highest)) => format!("FIFO {lowest} to {highest}"),
    }
}

fn let_go(released: &Released) -> String {
    let lines: Vec<String> = (released.things.iter())
        .map(|thing| format!("{}: released", called(thing)))
        .collect();
    let is_silent = released.notes.is_empty() && released.left.is_empty();
    match (lines.is_empty(), is_silent) {
        (true, true) => "nothing is held on this machine".to_owned(),
        _ => lines.join("\n"),
    }
}

fn print_list(listing: &Listing, json: bool) {
    if json {
        let json = serde_json::json!({
            "schema": SCHEMA,
            "held": listing.held,
            "notes": listing.notes,
        });
        out::print(&format!("{json:#}"));
        return;
    }
    tell(&listing.notes);
    match listing.held.is_empty() {
        true => out::print("nothing is held on this machine"),
        false => out::foreign(&listing.held.iter().map(line).collect::<Vec<_>>().join("\n")),
    }
}

/// A held thing, in several lines.
fn line(seen: &Seen) -> String {
    let mut text = called(&seen.thing);
    for hold in &seen.holds {
        text.push_str(&on_cpu(hold, seen));
    }
    if let Some(put_back) = &seen.put_back {
        let (what, at) = (out::name(&put_back.what), &put_back.at_utc);
        let _ = write!(text, "\n    put back at {at}: {what}");
    }
    if let Some(broken) = &seen.broken {
        let (why, since) = (out::name(&broken.why), &broken.since_utc);
        let _ = write!(
            text,
            "\n    broken since {since}: {why}; nothing is guaranteed and nothing put back any more; release it, and hold it again"
        );
    }
    if seen.threads_outside > 0 {
        let _ = write!(
            text,
            "\n    threads that left its cgroup, and are not held to the budget: {}",
            seen.threads_outside
        );
    }
    if seen.threads_above > 0 {
        let _ = write!(
            text,
            "\n    threads with a higher priority than the processes that hold it, which makes those late: {}",
            seen.threads_above
        );
    }
    if seen.threads_elsewhere > 0 {
        let _ = write!(
            text,
            "\n    {} of {} threads may run on other cpus, and overrun the budget by more: they or others changed their affinity, or the kernel lost it when a cpuset came or went (Linux before 6.2)",
            seen.threads_elsewhere, seen.threads
        );
    }
    text
}

/// One hold of it, in lines of their own.
fn on_cpu(seen: &SeenHold, of: &Seen) -> String {
    let ns = |time: i64| exact(time.unsigned_abs());
    let share = seen.used_ns as f64 * 100.0 / of.age_ns.max(1) as f64;
    let hold = &seen.hold;
    let mut text = format!(
        "\n    {} of cpu {} in every {} since {}, {}\n    used {} ({share:.1} %) in {} periods, budget used up in {}; largest overrun {}",
        exact(hold.budget_ns.unwrap_or_default()),
        host::cpus::format_list(&hold.cpus),
        exact(hold.period_ns.unwrap_or_default()),
        of.since_utc,
        class(hold.priorities),
        ns(seen.used_ns),
        seen.periods,
        seen.exhausted,
        ns(seen.largest_overrun_ns),
    );
    if seen.best_effort_ns > 0 {
        let _ = write!(
            text,
            "; beyond it {} as best effort",
            ns(seen.best_effort_ns)
        );
    }
    if seen.waived_ns > 0 {
        let waived = ns(seen.waived_ns);
        let _ = write!(
            text,
            "; {waived} while nothing held it, not counted against the budget"
        );
    }
    if let Some(why) = &seen.not_held {
        let _ = write!(text, "\n    not held: {why}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervise::admit::Exactness;
    use supervise::held::Kind;

    #[test]
    fn on_what_a_guarantee_rests_is_told() {
        let reaction = Exactness {
            late_ns: 20_000,
            overrun_ns: 40_000,
        };
        let wanted = Wanted {
            what: "web".to_owned(),
            budget_ns: 3_000_000,
            period_ns: 10_000_000,
            cpus: Vec::new(),
            class: Some(Class::Fifo { priority: 60 }),
        };
        let said = |basis: Basis| {
            let held = Held {
                thing: Thing {
                    kind: Kind::Podman,
                    name: "web".to_owned(),
                    id: "ab".repeat(32),
                    pid: Some(7),
                    group: "/nowhere".into(),
                    inode: 1,
                    taken_from: None,
                },
                rooms: vec![Room {
                    cpu: 1,
                    rate: 0.288,
                    delay_ns: Some(14_000_000),
                    basis,
                    notes: Vec::new(),
                }],
                priorities: Some((60, 60)),
                threads: 1,
            };
            begun(&wanted, &held)
        };
        let measured = said(Basis::Measured {
            to_ns: 50_000_000,
            reaction: None,
        });
        assert!(
            measured.contains("by what was measured for this budget on this machine"),
            "{measured}"
        );
        let here = said(Basis::Reaction {
            reaction,
            unmeasured: None,
        });
        assert!(
            here.contains("by the freezer's rule and its reaction measured on this machine"),
            "{here}"
        );
    }
}
