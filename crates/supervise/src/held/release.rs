//! Letting go of what is held: everything is put back as it was found.

use super::escaped::escaped;
use super::file::{Record, Records};
use super::hold::take_away;
use super::tidy::{have_left, holder, leave, tidy};
use super::{HeldError, Thing, as_root};
use crate::ledger::{Ledger, Locked};

/// What was let go.
#[derive(Debug, Default)]
pub struct Released {
    /// Each.
    pub things: Vec<Thing>,
    /// What has ended since anybody looked, a sentence each.
    pub told: Vec<String>,
    /// What could not be put back, and why what is held still was not let go.
    pub left: Vec<HeldError>,
}

/// Lets go of one by its name, the beginning of a container's id, or its number.
///
/// # Errors
/// [`HeldError::NotHeld`], or that the file or the ledger cannot be used.
pub fn release(what: &str, ledger: &Ledger) -> Result<Released, HeldError> {
    each(ledger, |records| match records.called(what)? {
        Some(record) => Ok(vec![record.clone()]),
        None => Err(HeldError::NotHeld {
            what: what.to_owned(),
            held: held(records),
        }),
    })
}

/// Lets go of all that is held on this machine.
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
    // One that has ended is told of as such, not as one that was never held.
    let asked = which(&records)?;
    let told = tidy(&mut records, &locked)?.told;
    let mut released = Released {
        told,
        ..Released::default()
    };
    for record in asked {
        if records.all.contains(&record) {
            one(record, &mut records, &locked, &mut released)?;
        }
    }
    if records.all.is_empty() {
        leave();
    }
    Ok(released)
}

fn one(
    record: Record,
    records: &mut Records,
    locked: &Locked,
    released: &mut Released,
) -> Result<(), HeldError> {
    // Why nobody can tell is told by what comes next.
    let outside = escaped(&record).map_or(0, |threads| threads.len());
    let done = take_away(&record);
    // Where those who hold it do not let go, it is held, and what is to be put back must not be forgotten.
    if let Err(error @ HeldError::Place(_)) = done {
        released.left.push(error);
        return Ok(());
    }
    if outside > 0 {
        released
            .told
            .push(have_left(&record, outside, done.as_ref().err()));
    }
    released.left.extend(done.err());
    locked.remove(&holder(&record))?;
    records.forget(&record.thing.group);
    records.write()?;
    released.things.push(record.thing);
    Ok(())
}

/// What is held, a clause.
fn held(records: &Records) -> String {
    let names: Vec<String> = (records.all.iter())
        .map(|record| format!("`{}`", record.thing.name))
        .collect();
    match names.as_slice() {
        [] => "nothing is held on this machine".to_owned(),
        names => format!("held is {}", names.join(", ")),
    }
}
