//! What has ended while it was held: forgotten, with nothing of it left. And what is held by nobody any more: held again.

use freezer::page::Page;
use freezer::process::{Place, PlaceError};

use super::escaped::escaped;
use super::file::{Record, Records};
use super::{HeldError, Thing, group, place, threads};
use crate::ledger::{Holder, Locked};

/// What is held, as the machine's ledger knows it.
pub(super) fn holder(record: &Record) -> Holder {
    Holder::Held {
        name: record.thing.name.clone(),
        group: record.thing.group.clone(),
        inode: record.thing.inode,
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Tidied {
    /// What is to be told, a sentence each.
    pub(super) told: Vec<String>,
    /// Whether those who hold something cannot be asked: that is told, and takes long to find out.
    pub(super) cannot_ask: bool,
}

/// Forgets what has ended, has what is held by nobody held again, and says so, a sentence each; also that nobody can be asked whether it is. What
/// is left of one that has ended is tried again by whoever comes next.
///
/// # Errors
/// When the ledger or the file cannot be written.
pub(super) fn tidy(records: &mut Records, locked: &Locked) -> Result<Tidied, HeldError> {
    tidy_at(&place(), records, locked, clear)
}

fn tidy_at(
    place: &Place,
    records: &mut Records,
    locked: &Locked,
    clear: impl Fn(&Record) -> Result<(), HeldError>,
) -> Result<Tidied, HeldError> {
    let mut told = forget_ended(records, locked, clear)?;
    if records.all.is_empty() {
        leave();
        return Ok(Tidied {
            told,
            cannot_ask: false,
        });
    }
    // What was told is forgotten by now: it must not be lost over what cannot be asked.
    let again = hold_again(place);
    let cannot_ask = again.is_err();
    match again {
        Ok(false) => {}
        Ok(true) => told.push(
            "those who held it had all been killed, and what is held was without its budget; it is held again"
                .to_owned(),
        ),
        Err(error) => told.push(not_known(&error)),
    }
    Ok(Tidied { told, cannot_ask })
}

/// That those who hold something cannot be asked, a sentence.
pub(super) fn not_known(error: &PlaceError) -> String {
    format!("whether what is held is held to its budget cannot be told: {error}")
}

/// Whether what is held was held by nobody, and is again.
fn hold_again(place: &Place) -> Result<bool, PlaceError> {
    let is_kept = place.page()?.as_ref().is_none_or(Page::is_kept);
    Ok(!is_kept && !place.adopt()?.is_empty())
}

fn forget_ended(
    records: &mut Records,
    locked: &Locked,
    clear: impl Fn(&Record) -> Result<(), HeldError>,
) -> Result<Vec<String>, HeldError> {
    let mut told = Vec::new();
    let mut is_changed = false;
    for record in std::mem::take(&mut records.all) {
        if record.thing.runs() {
            records.all.push(record);
            continue;
        }
        // Why nobody can tell is told by what comes next.
        let outside = escaped(&record).map_or(0, |threads| threads.len());
        let left = clear(&record).err();
        let mut text = match outside {
            0 => format!(
                "{} has ended while it was held; it is held no more",
                record.thing
            ),
            some => have_left(&record, some, left.as_ref()),
        };
        match left {
            Some(left) => {
                if !record.begun {
                    text = format!(
                        "{} was to be held, by somebody who was killed before",
                        record.thing
                    );
                }
                text.push_str(&format!(
                    "; something is left, which is tried again: {left}"
                ));
                records.all.push(record);
            }
            None => {
                locked.remove(&holder(&record))?;
                is_changed = true;
                // Whoever was to hold it was killed before anything was changed.
                if !record.begun {
                    continue;
                }
            }
        }
        told.push(text);
    }
    if is_changed {
        records.write()?;
    }
    Ok(told)
}

/// That threads are outside of the group by now, a sentence; `left` is what could not be put back.
pub(super) fn have_left(record: &Record, threads: usize, left: Option<&HeldError>) -> String {
    let back = match left {
        Some(HeldError::Threads { .. } | HeldError::Outside { .. }) => {
            "not all of them have back what they had"
        }
        _ => "they have back what they had",
    };
    format!(
        "{} had left its group with {threads} of its threads, which ran without a budget; {back}, and it is held no more",
        record.thing
    )
}

/// Those who held something without a process are asked to let go of it, and its group goes if it was made here. Whoever has left it gets back
/// what it had.
fn clear(record: &Record) -> Result<(), HeldError> {
    let thing = &record.thing;
    let outside = escaped(record).and_then(|tids| {
        let done = threads::put_back_of(&tids, record.cpu, record.fifo, &record.back);
        done.map_err(|reason| HeldError::Threads {
            what: thing.to_string(),
            reason,
        })
    });
    // First what tells whether they have it.
    outside.and(let_go(thing))
}

fn let_go(thing: &Thing) -> Result<(), HeldError> {
    // One that was made again under the same path is held by whoever has asked for that, and is not this one.
    let held = place().groups()?;
    if held
        .iter()
        .any(|entry| entry.which.path == thing.group && entry.which.inode == thing.inode)
    {
        place().let_go(&thing.group)?;
    }
    match &thing.taken_from {
        Some(from) => group::dissolve(&thing.group, from),
        None => Ok(()),
    }
}

/// Removes the place of those who hold nothing any more. Where that does not work now, whoever asks next does it.
pub(super) fn leave() {
    let place = place();
    if place.groups().is_ok_and(|groups| groups.is_empty()) {
        let _ = place.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::record;
    use super::*;
    use crate::ledger::Ledger;

    #[test]
    fn what_could_not_be_cleared_is_kept_and_tried_again() {
        // The ledger is root's.
        if !crate::ledger::is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("ledger"));
        let locked = ledger.lock().unwrap();
        let mut records = Records::read_at(dir.path());
        let mut never_made = record("8");
        never_made.begun = false;
        records.all = vec![record("7"), never_made];
        records.write().unwrap();
        let refuses = |record: &Record| match record.thing.name.as_str() {
            "7" => Err(HeldError::Ended("it".to_owned())),
            _ => Ok(()),
        };
        let told = forget_ended(&mut records, &locked, refuses).unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("which is tried again"), "{told:?}");
        assert_eq!(Records::read_at(dir.path()).all, [record("7")]);
        let told = forget_ended(&mut records, &locked, |_| Ok(())).unwrap();
        assert_eq!(
            told,
            ["process 7 (sleep) has ended while it was held; it is held no more"]
        );
        assert_eq!(Records::read_at(dir.path()).all, []);
    }

    #[test]
    fn what_has_ended_is_told_also_where_nobody_can_be_asked() {
        use std::os::unix::fs::PermissionsExt as _;
        // The ledger is root's.
        if !crate::ledger::is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let locked = Ledger::at(dir.path().join("ledger")).lock().unwrap();
        let mut records = Records::read_at(dir.path());
        let mut runs = record("1");
        // A group with a process in it, as far as its files say.
        runs.thing.group = dir.path().join("group");
        std::fs::create_dir(&runs.thing.group).unwrap();
        std::fs::write(runs.thing.group.join("cgroup.events"), "populated 1\n").unwrap();
        runs.thing.inode = group::inode(&runs.thing.group).unwrap();
        records.all = vec![record("7"), runs.clone()];
        let place = Place::new(dir.path().join("place"), "/nonexistent");
        std::fs::create_dir(place.dir()).unwrap();
        // Others may change it, so that nothing in it is believed.
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.dir(), open).unwrap();
        let tidied = tidy_at(&place, &mut records, &locked, |_| Ok(())).unwrap();
        assert!(tidied.cannot_ask);
        let told = tidied.told;
        assert_eq!(records.all, [runs]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("process 7 (sleep) has ended"), "{told:?}");
        assert!(told[1].contains("cannot be told"), "{told:?}");
    }

    #[test]
    fn whoever_has_left_is_not_said_to_have_what_could_not_be_put_back() {
        let refused = HeldError::Threads {
            what: "it".to_owned(),
            reason: host::sched::SchedError::NoSuchProcess { pid: 7 },
        };
        let said = |left: Option<&HeldError>| have_left(&record("7"), 2, left);
        assert!(said(None).contains("; they have back what they had"));
        assert!(said(Some(&HeldError::Ended("it".to_owned()))).contains("; they have back"));
        assert!(said(Some(&refused)).contains("; not all of them have back what they had"));
    }
}
