//! Releases held things: everything is restored as it was found.

use super::apply::take_away;
use super::cpuset::Cpuset;
use super::escaped::escaped;
use super::file::{Record, Records};
use super::thing::first_process;
use super::tidy::{have_left, holder, leave, tidy};
use super::{HeldError, Thing, as_root, place};
use crate::ledger::{Ledger, Locked};

/// The released things.
#[derive(Debug, Default)]
pub struct Released {
    /// Each.
    pub things: Vec<Thing>,
    /// Things that have ended since anybody looked, a sentence each.
    pub notes: Vec<String>,
    /// Why some state could not be restored, or a thing still held not released.
    pub left: Vec<HeldError>,
}

/// Releases one by its name, the beginning of a container's id, or its number; not necessarily the one by which it was
/// put under its budget.
///
/// # Errors
/// [`HeldError::NotHeld`], or that the file or the ledger cannot be used.
pub fn release(what: &str, ledger: &Ledger) -> Result<Released, HeldError> {
    as_root()?;
    // An engine may take long to answer, and nobody is to wait for it.
    let first = match Records::read()?.called(what)? {
        Some(_) => None,
        None => first_process(what),
    };
    each(ledger, |records| Ok(vec![meant(what, first, records)?]))
}

/// The one that is called so, else the one whose first process is this.
fn meant(what: &str, first: Option<i32>, records: &Records) -> Result<Record, HeldError> {
    let by_process = || {
        let mut all = records.all.iter();
        let first = first?;
        all.find(|record| record.thing.pid == Some(first) && record.thing.runs())
    };
    match records.called(what)?.or_else(by_process) {
        Some(record) => Ok(record.clone()),
        None => Err(HeldError::NotHeld {
            what: what.to_owned(),
            held: held(records),
        }),
    }
}

/// Releases all that is held on this machine.
///
/// # Errors
/// That the file or the ledger cannot be used.
pub fn release_all(ledger: &Ledger) -> Result<Released, HeldError> {
    each(ledger, |records| Ok(records.all.clone()))
}

fn each(
    ledger: &Ledger,
    which: impl FnOnce(&Records) -> Result<Vec<Record>, HeldError>,
) -> Result<Released, HeldError> {
    as_root()?;
    let locked = ledger.lock()?;
    let mut records = Records::read()?;
    // One that has ended is reported as such, not as one that was never held.
    let asked = which(&records)?;
    let notes = tidy(&mut records, &locked)?;
    let mut released = Released {
        notes,
        ..Released::default()
    };
    for record in asked {
        if records.all.contains(&record) {
            one(record, &mut records, &locked, &mut released)?;
        }
    }
    if records.all.is_empty() {
        leave(&place());
    }
    Ok(released)
}

fn one(
    mut record: Record,
    records: &mut Records,
    locked: &Locked,
    released: &mut Released,
) -> Result<(), HeldError> {
    // The next step reports why that is unknown.
    let outside = escaped(&record).map_or(0, |threads| threads.len());
    if let Some(theirs) = record.back.cpuset().and_then(Cpuset::theirs) {
        let note = format!(
            "{}: {theirs} while it was held, and is left so",
            record.thing
        );
        released.notes.push(note);
    }
    let done = take_away(&mut record);
    // If the keeper does not release it, it is held, and the state to restore must not be forgotten.
    if let Err(error @ HeldError::Place(_)) = done {
        released.left.push(error);
        records.forget(&record.thing.group);
        records.all.push(record);
        return records.write();
    }
    if outside > 0 {
        released
            .notes
            .push(have_left(&record, outside, done.as_ref().err()));
    }
    released.left.extend(done.err());
    locked.remove(&holder(&record))?;
    records.forget(&record.thing.group);
    records.write()?;
    released.things.push(record.thing);
    Ok(())
}

/// The held things, a clause.
fn held(records: &Records) -> String {
    let names: Vec<String> = (records.all.iter())
        .map(|record| format!("`{}`", record.thing.name))
        .collect();
    match names.as_slice() {
        [] => "nothing is held on this machine".to_owned(),
        [one] => format!("only {one} is held"),
        names => format!("{} are held", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::record;
    use super::super::group;
    use super::*;

    #[test]
    fn one_is_meant_by_its_first_process_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::read_at(dir.path());
        let mut runs = record("web");
        // A group with a process in it, as far as its files say.
        runs.thing.group = dir.path().to_owned();
        runs.thing.inode = group::inode(dir.path()).unwrap();
        runs.thing.pid = Some(7);
        std::fs::write(dir.path().join("cgroup.events"), "populated 1\n").unwrap();
        let mut ended = record("ended");
        ended.thing.pid = Some(8);
        records.all = vec![ended, runs.clone()];
        for (what, first) in [("web", None), ("7", Some(7)), ("renamed", Some(7))] {
            assert_eq!(meant(what, first, &records).unwrap(), runs, "{what}");
        }
        for (what, first) in [("8", Some(8)), ("9", Some(9)), ("9", None)] {
            let error = meant(what, first, &records).unwrap_err().to_string();
            assert!(error.contains("`ended`, `web` are held"), "{error}");
        }
    }
}
