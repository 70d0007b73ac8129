//! Puts a running thing under a budget: found, admitted beside the grants of others, recorded, and then held.

use std::path::Path;

use analysis::linux::{FreezerSupply, Reaction};
use freezer::Reservation;
use freezer::hold as groups;
use host::root::Root;
use host::sched::Class;
use model::Enforcer;
use model::mission::CellClass;

use super::apply::{note, put_under, take_out, undo};
use super::back::Back;
use super::file::{Record, Records};
use super::thing::{Found, find};
use super::tidy::{holder, tidy};
use super::{HeldError, Thing, as_root, group, place, threads};
use crate::admit::{HIGHEST_HELD, HeldCell, Hold, Room, room_for};
use crate::ledger::{Entry, Ledger, LedgerError};
use crate::machine::Here;
use crate::stamp::Stamp;

/// Its use before the first use is seen, ns.
pub(super) const FIRST_USE_NS: i64 = Reaction::FIRST_USE.cast_signed();
/// The cost of holding it, ns in each of its periods.
pub(super) const COST_NS: i64 = Reaction::COST.cast_signed();

/// Of this budget nothing is certain any more where they look so late, ns.
pub(super) fn least_budget_ns(late_ns: i64) -> i64 {
    late_ns.saturating_add(FIRST_USE_NS)
}

/// In a period this short nothing of any budget is guaranteed, or only the freezer's own time is left, ns.
pub(super) fn least_period_ns(late_ns: i64) -> i64 {
    late_ns
        .saturating_add(least_budget_ns(late_ns))
        .max(COST_NS)
}

/// The thing to be held, with its budget.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// A container's name or id, a unit's name with its suffix, or a process's number.
    pub what: String,
    /// The budget, ns in every period.
    pub budget_ns: i64,
    /// The period, ns.
    pub period_ns: i64,
    /// The cpus, each with a budget of its own, and every thread on one of them; none: the first on which there is room.
    pub cpus: Vec<u32>,
    /// The class that all its threads are to have, SCHED_FIFO or SCHED_RR; `None`: they keep theirs.
    pub class: Option<Class>,
}

/// The thing held from now on.
#[derive(Debug, Clone)]
pub struct Held {
    /// It.
    pub thing: Thing,
    /// Its cpus, each with the guarantee there and its basis.
    pub rooms: Vec<Room>,
    /// Its real-time threads' priorities, the lowest and the highest; `None`: all are ordinary.
    pub priorities: Option<(u8, u8)>,
    /// Its threads.
    pub threads: usize,
}

/// Holds a running thing to a budget from now on, regardless of the caller's fate. Things that have ended since the
/// last look go to `notes`, a sentence each, even if this fails.
///
/// # Errors
/// [`HeldError`]; nothing is changed then.
pub fn hold(wanted: &Wanted, ledger: &Ledger, notes: &mut Vec<String>) -> Result<Held, HeldError> {
    as_root()?;
    let top = groups::top(&Root::live())?;
    let reservation = Reservation::new(wanted.budget_ns, wanted.period_ns)?;
    let here = Here::default();
    let facts = here.facts();
    facts.real_time.clone().map_err(HeldError::NoRealTime)?;
    if let Some(&cpu) = wanted.cpus.iter().find(|cpu| !facts.cpus.contains(cpu)) {
        let online = host::cpus::format_list(&facts.cpus);
        return Err(HeldError::Cpu { cpu, online });
    }
    // An engine may take long to answer, and nobody is to wait for it.
    let Found { thing, is_guest } = find(&wanted.what)?;
    let locked = ledger.lock()?;
    let mut records = Records::read()?;
    notes.extend(tidy(&mut records, &locked)?);
    // Otherwise it would not be seen whether it is released where it cannot be held.
    place().page()?;
    apart(&thing, is_guest, &records)?;
    let processes = match (is_guest, thing.pid) {
        (true, Some(pid)) => group::family(&thing, &thing.group, pid),
        _ => group::processes(&thing.group),
    };
    let others = ledger.entries()?;
    group::check(&thing, &processes, &group::supervisors(&others), &top)?;
    if wanted.class.is_some() {
        stays(&thing, is_guest, &top)?;
    }
    let back = before(&thing, is_guest, &processes).with_cpuset(&thing);
    for &cpu in &wanted.cpus {
        if let Some(cpus) = back.cpuset().and_then(|cpuset| cpuset.lacks(cpu)) {
            let (what, cpus) = (thing.to_string(), cpus.to_owned());
            return Err(HeldError::Cpuset { what, cpu, cpus });
        }
    }
    if wanted.cpus.len() > back.living().len().max(1) {
        return Err(HeldError::Few {
            what: thing.to_string(),
            threads: back.living().len(),
            cpus: wanted.cpus.len(),
        });
    }
    let back = match wanted.class {
        Some(_) => back.with_rt_groups(&processes),
        None => back,
    };
    if let Some(tid) = back.deadline() {
        let what = thing.to_string();
        return Err(HeldError::Deadline { what, tid });
    }
    let own = wanted.class.as_ref().and_then(Class::priority);
    let priorities = own.map_or(back.priorities(), |own| Some((own, own)));
    if let Some((_, priority)) = priorities.filter(|(_, highest)| *highest > HIGHEST_HELD) {
        let what = thing.to_string();
        return Err(HeldError::Priority { what, priority });
    }
    let cell = cell(&thing, wanted, priorities);
    let facts = facts.for_held(&others, &processes);
    let mut cpus = facts.cpus.clone();
    cpus.retain(|cpu| back.cpus().contains(cpu));
    // Ordinary threads have no guarantee, even with a reaction measured here.
    let measured = facts.measured_beside().filter(|_| priorities.is_some());
    large_enough(wanted, measured)?;
    let rooms = room_for(&cell, &cpus, &facts).map_err(|why| HeldError::NotAdmitted {
        what: thing.to_string(),
        why,
    })?;
    let mut record = Record {
        holds: cell.holds.clone(),
        class: wanted.class.clone(),
        since_utc: Stamp::now().utc(),
        since_ns: timecell_client::now_ns(),
        back,
        thing,
        begun: false,
        put_back: None,
        broken: None,
    };
    for (hold, room) in record.holds.iter_mut().zip(&rooms) {
        hold.cpus = vec![room.cpu];
    }
    if is_guest {
        take_out(&mut record, &mut records)?;
    }
    let thing = record.thing.clone();
    let around = match (is_guest, record.holds.len()) {
        (true, _) | (_, 1) => thing.group.clone(),
        _ => group::with_all(&thing)?,
    };
    let many = record.holds.len() > 1;
    for hold in &mut record.holds {
        hold.threads = Some(match (many, hold.cpus.first()) {
            (true, Some(cpu)) => around.join(group::name_on(*cpu)),
            _ => around.clone(),
        });
    }
    let entry = entry(&record, cell)?;
    // Recorded before anything of it is changed, so that it can be restored if this process is killed.
    let held = note(&mut records, &locked, record.clone(), entry)
        .and_then(|()| put_under(&mut record, &mut records, reservation));
    if let Err(error) = held {
        return Err(undo(&mut record, &mut records, &locked, error));
    }
    Ok(Held {
        threads: group::threads(&thing.group).len(),
        thing,
        rooms,
        priorities,
    })
}

/// Whether the reaction leaves something of the budget: the worst that was measured on this machine, else the usual one.
fn large_enough(wanted: &Wanted, measured: Option<Reaction>) -> Result<(), HeldError> {
    let (budget_ns, period_ns) = (wanted.budget_ns, wanted.period_ns);
    let reaction = measured.unwrap_or(Reaction::MEASURED);
    let (budget, period) = (budget_ns.unsigned_abs(), period_ns.unsigned_abs());
    let supply = FreezerSupply::new(budget, period, reaction);
    match supply.is_ok() && period_ns > COST_NS {
        true => Ok(()),
        false => Err(HeldError::TooSmall {
            budget_ns,
            period_ns,
            late_ns: i64::try_from(reaction.late).unwrap_or(i64::MAX),
            is_measured: measured.is_some(),
        }),
    }
}

/// Whether it is neither held already nor in, or around, a held thing.
fn apart(thing: &Thing, is_guest: bool, records: &Records) -> Result<(), HeldError> {
    let what = || thing.to_string();
    for held in &records.all {
        let other = &held.thing;
        let nested = |how| HeldError::Nested {
            what: what(),
            other: other.to_string(),
            how,
        };
        // A process that shares its group with others has that one here, and a divided one a part of its own.
        let is_first = thing.pid.is_some() && thing.pid == other.pid;
        let is_divided = is_first && thing.group.starts_with(&other.group);
        if (thing.group == other.group && !is_guest) || is_divided {
            return Err(HeldError::Already {
                what: what(),
                name: other.name.clone(),
                cpus: host::cpus::format_list(&held.cpus()),
                budget: held
                    .holds
                    .first()
                    .and_then(|hold| hold.budget_ns.zip(hold.period_ns)),
            });
        }
        if thing.group.starts_with(&other.group) {
            return Err(nested("around it"));
        }
        // A process that shares a group gets one beside those of others there.
        if !is_guest && other.group.starts_with(&thing.group) {
            return Err(nested("in it"));
        }
        if other.name == thing.name {
            return Err(HeldError::SameName {
                what: what(),
                other: other.to_string(),
                name: other.name.clone(),
            });
        }
    }
    Ok(())
}

/// That nobody but root takes it out of its group: it would keep its class, and have no budget.
fn stays(thing: &Thing, is_guest: bool, top: &Path) -> Result<(), HeldError> {
    let own = match (is_guest, thing.pid) {
        (true, Some(pid)) => thing.group.join(group::name_for(pid)),
        _ => thing.group.clone(),
    };
    match group::others_rule(&own, top, 0) {
        None => Ok(()),
        Some(group) => Err(HeldError::Movable {
            what: thing.to_string(),
            group,
        }),
    }
}

/// The present state of its threads.
fn before(thing: &Thing, is_guest: bool, processes: &[i32]) -> Back {
    let threads = match is_guest {
        false => group::threads(&thing.group),
        true => (processes.iter())
            .flat_map(|pid| threads::threads_of(*pid))
            .collect(),
    };
    Back::of(&threads, thing.pid)
}

/// The request to admission.
fn cell(thing: &Thing, wanted: &Wanted, priorities: Option<(u8, u8)>) -> HeldCell {
    let budget = (
        wanted.budget_ns.unsigned_abs(),
        wanted.period_ns.unsigned_abs(),
    );
    let hold = |cpus: Vec<u32>| Hold {
        threads: None,
        cpus,
        budget_ns: Some(budget.0),
        period_ns: Some(budget.1),
        reservation_ns: Some(budget),
        class: match (&wanted.class, priorities) {
            (Some(Class::RoundRobin { .. }), _) => CellClass::RoundRobin,
            (_, Some(_)) => CellClass::Fifo,
            (_, None) => CellClass::Other,
        },
        priorities,
    };
    HeldCell {
        cell: thing.name.clone(),
        enforcer: Enforcer::Freezer,
        holds: match wanted.cpus.as_slice() {
            [] => vec![hold(Vec::new())],
            cpus => cpus.iter().map(|cpu| hold(vec![*cpu])).collect(),
        },
        tasks: Vec::new(),
        supervisor: false,
        only_tasks: false,
    }
}

fn entry(record: &Record, cell: HeldCell) -> Result<Entry, HeldError> {
    let mut entry = Entry::own(holder(record)).map_err(LedgerError::from)?;
    let holds = record.holds.clone();
    entry.cells = vec![HeldCell { holds, ..cell }];
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::record;
    use super::*;

    fn wanted(budget_ns: i64, period_ns: i64) -> Wanted {
        Wanted {
            what: "7".to_owned(),
            budget_ns,
            period_ns,
            cpus: Vec::new(),
            class: None,
        }
    }

    #[test]
    fn what_the_reaction_leaves_nothing_of_is_refused() {
        let us = 1_000;
        let of = |budget: i64, period: i64| large_enough(&wanted(budget * us, period * us), None);
        assert!(of(3_000, 10_000).is_ok());
        assert!(of(121, 10_000).is_ok());
        for (budget, period) in [(120, 10_000), (1, 10_000), (200, 250), (100, 100)] {
            let error = of(budget, period).unwrap_err();
            assert!(matches!(error, HeldError::TooSmall { .. }), "{error}");
        }
    }

    #[test]
    fn the_reaction_that_was_measured_here_stands_in_the_place_of_the_usual_one() {
        let with = |late: u64, budget_ns: i64| {
            let measured = Reaction {
                late,
                overrun: late,
                noticed: true,
            };
            large_enough(&wanted(budget_ns, 10_000_000), Some(measured))
        };
        assert!(with(10_000, 50_000).is_ok());
        assert!(with(4_380_000, 4_400_001).is_ok());
        let said = with(4_380_000, 3_000_000).unwrap_err().to_string();
        assert!(
            said.contains("it checked up to 4.38 ms late on this machine")
                && said.contains("above 4.4 ms in a period above 8.78 ms"),
            "{said}"
        );
    }

    #[test]
    fn one_is_held_once_and_not_inside_another() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::read_at(dir.path());
        records.all = vec![record("7")];
        let thing = |name: &str, group: &str| Thing {
            name: name.to_owned(),
            pid: name.parse().ok(),
            group: group.into(),
            ..record("7").thing
        };
        let apart =
            |name: &str, group: &str, guest: bool| apart(&thing(name, group), guest, &records);
        assert!(apart("9", "/nowhere/9", false).is_ok());
        assert!(matches!(
            apart("9", "/nowhere/7", false),
            Err(HeldError::Already { .. })
        ));
        assert!(matches!(
            apart("7", "/nowhere/7/held-by-timecell-cpu0", true),
            Err(HeldError::Already { .. })
        ));
        for guest in [false, true] {
            let within = apart("9", "/nowhere/7/b", guest);
            assert!(matches!(
                within,
                Err(HeldError::Nested {
                    how: "around it",
                    ..
                })
            ));
        }
        let around = apart("9", "/nowhere", false);
        assert!(matches!(
            around,
            Err(HeldError::Nested { how: "in it", .. })
        ));
        // Its own group will be beside the other's.
        assert!(apart("9", "/nowhere", true).is_ok());
        assert!(matches!(
            apart("7", "/else", false),
            Err(HeldError::SameName { .. })
        ));
    }

    #[test]
    fn ordinary_threads_are_asked_for_as_such() {
        let thing = record("7").thing;
        let of = |priorities| cell(&thing, &wanted(3, 10), priorities);
        assert_eq!(
            (of(None).holds[0].class, of(None).check().is_err()),
            (CellClass::Other, true)
        );
        let mut placed = of(None);
        placed.holds[0].cpus = vec![1];
        assert!(placed.check().is_ok());
        assert_eq!(of(Some((3, 4))).holds[0].class, CellClass::Fifo);
    }
}
