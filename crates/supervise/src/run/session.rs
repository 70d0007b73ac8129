//! A mission from its admission to its end, through all updates.

use std::collections::BTreeMap;
use std::path::Path;

use super::carried::{Carried, Decided};
use super::desk::Wanted;
use super::keeper::Keeper;
use super::update::Turn;
use super::{Asked, Event, Inputs, Notify, Options, Plan, RunError, Signals, beside, plan};
use crate::admit::{Facts, HeldCell, HeldMemory};
use crate::control::{Change, ControlError, Refusal};
use crate::ledger::{Entry, Holder, LedgerError, Locked};
use crate::state::Text;

/// Keeps an admitted mission running, through its updates, until it is to end; then ends it and leaves nothing.
///
/// `facts` are those of the machine, asked once; `read` reads the mission file of an update, and its errors are
/// sentences for the client.
///
/// # Errors
/// When the journal cannot be opened or written, another mission's cells run under it, or the system refuses something
/// that the supervisor needs. Running cells continue then.
pub fn keep(
    first: Plan,
    facts: &Facts,
    read: &mut dyn FnMut(&Path) -> Result<Inputs, Vec<String>>,
    options: &Options,
    notify: Notify,
    signals: &Signals,
    tell: &mut dyn FnMut(&Event),
) -> Result<Asked, RunError> {
    // Otherwise a cell that is restarted after a while without moves would spend most of its start waiting for the
    // kernel.
    let _quick = host::quick_moves::QuickMoves::hold().ok();
    let mut plan = first;
    let mut before: Option<Plan> = None;
    let mut turn = Keeper::open(&plan, options, notify, &mut *tell)?.run(signals)?;
    loop {
        let carried = match turn {
            Turn::Over(asked) => return Ok(asked),
            Turn::TakenBack(mut carried) => {
                if let Some(old) = before.take() {
                    plan = old;
                }
                carried.put_back();
                let (mission, admission) = (plan.inputs.mission(), &plan.admission);
                let memory = plan::memory(mission, admission, &|name| carried.memory_limit(name));
                let locked = carried.take_locked();
                if let Err(error) = enter(locked, &plan, &options.dir, memory) {
                    let text = error.to_string();
                    tell(&Event::Note { text });
                }
                carried
            }
            Turn::Wanted(mut carried) => {
                if let Some(next) = next(&plan, &mut carried, facts, read, options) {
                    before = Some(std::mem::replace(&mut plan, next));
                }
                carried
            }
        };
        turn = Keeper::resume(&plan, *carried, &mut *tell)?.run(signals)?;
    }
}

/// The plan after an update that can begin; `None`: it is refused, and the client was told.
fn next(
    plan: &Plan,
    carried: &mut Carried,
    facts: &Facts,
    read: &mut dyn FnMut(&Path) -> Result<Inputs, Vec<String>>,
    options: &Options,
) -> Option<Plan> {
    let wanted = carried.take_wanted()?;
    let client = wanted.client;
    // From here until it is entered nobody else decides.
    let locked = carried.take_locked();
    match decide(plan, wanted, locked, carried, facts, read, options) {
        Ok((next, decided)) => {
            carried.update(plan, &next, decided);
            Some(next)
        }
        Err((kind, why)) => {
            carried.refuse(client, kind, why);
            None
        }
    }
}

fn decide(
    plan: &Plan,
    wanted: Wanted,
    locked: Result<Locked, LedgerError>,
    carried: &Carried,
    facts: &Facts,
    read: &mut dyn FnMut(&Path) -> Result<Inputs, Vec<String>>,
    options: &Options,
) -> Result<(Plan, Decided), (Refusal, Vec<String>)> {
    let began = timecell_client::now_ns();
    let inputs = read(&wanted.file).map_err(|why| (Refusal::BadFile, why))?;
    let (old, new) = (&plan.inputs.mission().name, &inputs.mission().name);
    if old != new {
        let why = format!(
            "{}: declares the mission `{new}`, but `{old}` runs here; start another mission with `timecell up`",
            inputs.file.name()
        );
        return Err((Refusal::BadFile, vec![why]));
    }
    let unknown = |error: LedgerError| (Refusal::NotAdmitted, vec![error.to_string()]);
    let locked = locked.map_err(unknown)?;
    let others = locked
        .others(&holder(plan, &options.dir))
        .map_err(unknown)?;
    let facts = facts.for_mission(old, &others, &carried.pids());
    let next = inputs.admitted_after(plan, &facts, &wanted.anew);
    if !next.admission.is_admitted() {
        return Err((Refusal::NotAdmitted, next.refusals()));
    }
    let changes = changes(plan, &next, &wanted.anew);
    let of = |which: Change| {
        (changes.iter().filter(move |(_, change)| **change == which)).map(|(name, _)| name.clone())
    };
    let old: Vec<String> = of(Change::Removed).chain(of(Change::Changed)).collect();
    if let Some(why) = beside::keeps_frames(plan, &next, &old) {
        return Err((Refusal::NotAdmitted, vec![why]));
    }
    let (stay, no_room) = beside::may_stay(plan, &next, &old, &facts);
    // Those of the old version are held until they have ended.
    let leaving: Vec<HeldCell> = (plan.admission.held.iter())
        .filter(|held| !held.supervisor && old.contains(&held.cell))
        .cloned()
        .collect();
    let mut entry = entry(&next, &options.dir, &leaving).map_err(unknown)?;
    entry.memory = memory(plan, &next, carried, &old);
    locked.put(entry).map_err(unknown)?;
    drop(locked);
    let admission_ns = timecell_client::now_ns() - began;
    let decided = Decided {
        wanted,
        stay,
        no_room,
        changes,
        admission_ns,
    };
    Ok((next, decided))
}

/// A mission as the ledger knows it.
fn holder(plan: &Plan, dir: &Path) -> Holder {
    Holder::Mission {
        name: plan.inputs.mission().name.clone(),
        dir: dir.to_owned(),
    }
}

/// The holdings of a mission of this plan, and those left of an earlier one.
fn entry(plan: &Plan, dir: &Path, leaving: &[HeldCell]) -> Result<Entry, LedgerError> {
    let entry = Entry::own(holder(plan, dir))?;
    let mut entry = entry.holding(&plan.admission, &plan.inputs.measured);
    entry.cells.extend(leaving.iter().map(|held| HeldCell {
        // No cell's name has a dot.
        cell: format!("{}.before", held.cell),
        ..held.clone()
    }));
    Ok(entry)
}

/// The memory that the cells of the next plan may use, and those of the old one that are to end.
fn memory(plan: &Plan, next: &Plan, carried: &Carried, ends: &[String]) -> HeldMemory {
    let stays = |name: &str| {
        let limit = carried.memory_limit(name)?;
        (!ends.iter().any(|end| end == name)).then_some(limit)
    };
    let memory = plan::memory(next.inputs.mission(), &next.admission, &stays);
    if next.admission.memory.is_none() {
        return memory;
    }
    ends.iter().fold(memory, |memory, name| {
        let cell = plan.inputs.mission().cell(name);
        let declared = cell.and_then(|cell| cell.rights.memory);
        match carried.memory_limit(name) {
            Some(limit) => memory.and(declared.map(model::Bytes::bytes), limit),
            None => memory,
        }
    })
}

/// Enters the holdings of a mission of this plan in place of its former ones.
fn enter(
    locked: Result<Locked, LedgerError>,
    plan: &Plan,
    dir: &Path,
    memory: HeldMemory,
) -> Result<(), LedgerError> {
    let mut entry = entry(plan, dir, &[])?;
    entry.memory = memory;
    locked?.put(entry)
}

fn changes(plan: &Plan, next: &Plan, anew: &[String]) -> BTreeMap<String, Change> {
    let (old, new) = (plan.inputs.mission(), next.inputs.mission());
    let mut changes = BTreeMap::new();
    for cell in &new.cells {
        let name = &cell.name;
        let change = if old.cell(name).is_none() {
            Change::Added
        } else if anew.contains(name) || !next.leaves(plan, name) {
            Change::Changed
        } else {
            Change::Unchanged
        };
        changes.insert(name.clone(), change);
    }
    for cell in old
        .cells
        .iter()
        .filter(|cell| new.cell(&cell.name).is_none())
    {
        changes.insert(cell.name.clone(), Change::Removed);
    }
    changes
}

/// The mission files that a directory's journal knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastAdmitted {
    /// Of the mission that was admitted last, ended or not.
    pub last: Option<Text>,
    /// Of one that was not ended: its supervisor was killed, or the power went.
    pub unfinished: Option<Text>,
}

/// Which mission a directory has admitted last. The journal is only read.
///
/// # Errors
/// When there is no journal, or it cannot be read.
pub fn last_admitted(dir: &Path) -> Result<LastAdmitted, ControlError> {
    let state = crate::control::state(dir)?;
    Ok(LastAdmitted {
        last: state.last_file.or_else(|| state.file.clone()),
        unfinished: state.file,
    })
}
