//! `timecell hold` and `timecell release`: hold what already runs to a budget with the freezer, and release it.

use std::fmt::Write as _;

use supervise::admit::Basis;
use supervise::held::{self, Held, Listing, Released, Seen, Thing, Wanted};
use supervise::ledger::Ledger;

use super::admit::ms;
use crate::cli::{Hold, Release};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Holds something, or lists what is held.
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
        cpu: options.cpu,
        fifo: options.fifo,
    };
    let mut told = Vec::new();
    let held = held::hold(&wanted, &ledger, &mut told);
    tell(&told);
    let held = held?;
    if options.json {
        let json = serde_json::json!({
            "schema": SCHEMA,
            "held": held.thing,
            "cpu": held.room.cpu,
            "budget_ns": wanted.budget_ns,
            "period_ns": wanted.period_ns,
            "priorities": held.priorities,
            "threads": held.threads,
            "rate": held.room.rate,
            "delay_ns": held.room.delay_ns,
            "basis": held.room.basis,
            "notes": held.room.notes,
            "ended": told,
        });
        out::print(&format!("{json:#}"));
    } else {
        out::foreign(&begun(&wanted, &held));
    }
    Ok(Ended::Fine)
}

/// Releases one, or all.
pub fn release(options: &Release) -> Result<Ended, CommandError> {
    let ledger = Ledger::default();
    let released = match &options.what {
        Some(what) => held::release(what, &ledger)?,
        None => held::release_all(&ledger)?,
    };
    tell(&released.told);
    if options.json {
        let left: Vec<String> = released.left.iter().map(ToString::to_string).collect();
        let json = serde_json::json!({
            "schema": SCHEMA,
            "released": released.things,
            "ended": released.told,
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

/// Notes what has ended since the last look.
fn tell(told: &[String]) {
    for text in told {
        out::note(&format!("note    {}", out::name(text)));
    }
}

/// The name of a thing, safe within a printed line.
fn called(thing: &Thing) -> String {
    out::name(&thing.to_string())
}

fn begun(wanted: &Wanted, held: &Held) -> String {
    let ns = |time: i64| ms(time.unsigned_abs());
    let mut text = format!(
        "{}: {} of cpu {} in every {}, held by the freezer of {}\n",
        called(&held.thing),
        ns(wanted.budget_ns),
        held.room.cpu,
        ns(wanted.period_ns),
        held.thing.group.display()
    );
    let threads = match held.threads {
        1 => "1 thread".to_owned(),
        many => format!("{many} threads"),
    };
    let _ = match (held.priorities, held.room.delay_ns) {
        (Some(priorities), Some(delay)) => writeln!(
            text,
            "    {threads}, {}: guaranteed {:.1} % of the cpu after waiting up to {}, by {}",
            class(Some(priorities)),
            held.room.rate * 100.0,
            ms(delay),
            rests_on(&held.room.basis)
        ),
        (Some(priorities), None) => writeln!(text, "    {threads}, {}", class(Some(priorities))),
        (None, _) => writeln!(
            text,
            "    {threads}, ordinary: the budget is the most that they get, and real-time threads come first; --fifo guarantees it"
        ),
    };
    for note in &held.room.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = write!(
        text,
        "    release it with: timecell release {}",
        held.thing.name
    );
    text
}

/// What the guarantee rests on.
fn rests_on(basis: &Basis) -> &'static str {
    match basis {
        Basis::Measured { .. } => "what was measured for this budget on this machine",
        Basis::Reaction {
            unmeasured: None, ..
        } => "the freezer's rule and its reaction measured on this machine",
        Basis::Reaction { .. } | Basis::Tick { .. } | Basis::Ample { .. } | Basis::WholeCpu => {
            "the freezer's rule and its reaction measured on another machine"
        }
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
    let is_silent = released.told.is_empty() && released.left.is_empty();
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
            "told": listing.told,
        });
        out::print(&format!("{json:#}"));
        return;
    }
    tell(&listing.told);
    match listing.held.is_empty() {
        true => out::print("nothing is held on this machine"),
        false => out::foreign(&listing.held.iter().map(line).collect::<Vec<_>>().join("\n")),
    }
}

/// A held thing, in several lines.
fn line(seen: &Seen) -> String {
    let ns = |time: i64| ms(time.unsigned_abs());
    let share = seen.used_ns as f64 * 100.0 / seen.age_ns.max(1) as f64;
    let mut text = format!(
        "{}\n    {} of cpu {} in every {} since {}, {}\n    used {} ({share:.1} %) in {} periods, budget used up in {}; largest overrun {}",
        called(&seen.thing),
        ns(seen.budget_ns),
        seen.cpu,
        ns(seen.period_ns),
        seen.since_utc,
        class(seen.priorities),
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
            "\n    {} of {} threads may run on other cpus, and overrun the budget by more: they changed their affinity, or the kernel lost it when a cpuset came or went (Linux before 6.2; `release` and `hold` restore it)",
            seen.threads_elsewhere, seen.threads
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervise::admit::{Exactness, Room};
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
            cpu: None,
            fifo: Some(60),
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
                room: Room {
                    cpu: 1,
                    rate: 0.288,
                    delay_ns: Some(14_000_000),
                    basis,
                    notes: Vec::new(),
                },
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
