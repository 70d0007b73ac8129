//! Forgets things that ended while held, leaving nothing of them, and holds again those that nobody holds any more.

use std::path::Path;

use freezer::page::Page;
use freezer::process::{Place, PlaceError};

use super::escaped::escaped;
use super::file::{Record, Records};
use super::{HeldError, back, group, place};
use crate::ledger::{Holder, Locked};

/// A held thing, as the machine's ledger knows it.
pub(super) fn holder(record: &Record) -> Holder {
    Holder::Held {
        name: record.thing.name.clone(),
        group: record.thing.group.clone(),
        inode: record.thing.inode,
    }
}

/// Forgets things that have ended, has those that nobody holds held again, and reports both, a sentence each; also if
/// nobody can be asked. The next caller retries the incomplete cleanup of those that have ended.
///
/// # Errors
/// When the ledger or the file cannot be written.
pub(super) fn tidy(records: &mut Records, locked: &Locked) -> Result<Vec<String>, HeldError> {
    let place = place();
    let let_go = |group: &Path| place.let_go(group);
    tidy_at(&place, records, locked, |record| clear(record, let_go))
}

fn tidy_at(
    place: &Place,
    records: &mut Records,
    locked: &Locked,
    clear: impl Fn(&Record) -> Result<(), HeldError>,
) -> Result<Vec<String>, HeldError> {
    let Forgotten { mut notes, .. } = forget_ended(records, locked, clear)?;
    if records.all.is_empty() {
        leave(place);
        return Ok(notes);
    }
    // Things that were noted are forgotten by now: the news must not be lost over a keeper that cannot be asked.
    notes.extend(whether_held(&hold_again(place)));
    Ok(notes)
}

/// The report on the keeper, a sentence; `None`: nothing. `again` is whether nothing was held until it was asked.
pub(super) fn whether_held(again: &Result<bool, PlaceError>) -> Option<String> {
    match again {
        Ok(false) => None,
        Ok(true) => Some(
            "keeper, watcher and heir had all been killed, so what is held stood still or ran without its budget; it is held again"
                .to_owned(),
        ),
        Err(error) => Some(format!(
            "cannot tell whether budgets are enforced: {error}"
        )),
    }
}

/// Whether nothing held it, and it is held again.
fn hold_again(place: &Place) -> Result<bool, PlaceError> {
    match is_kept(place)? {
        true => Ok(false),
        false => ask(place),
    }
}

/// The same, once the keeper has answered, which may take 10 s.
pub(super) fn ask(place: &Place) -> Result<bool, PlaceError> {
    let is_kept = is_kept(place)?;
    Ok(!place.adopt()?.is_empty() && !is_kept)
}

/// Whether the recorded groups are really held; true if nothing is recorded.
fn is_kept(place: &Place) -> Result<bool, PlaceError> {
    Ok(place.page()?.as_ref().is_none_or(Page::is_kept))
}

/// Things that have ended.
#[derive(Debug)]
pub(super) struct Forgotten {
    /// The result for each, a sentence.
    pub(super) notes: Vec<String>,
    /// Whether something of one is left and is tried again.
    pub(super) is_left: bool,
}

/// Forgets things that have ended; the first half of [`tidy`].
///
/// # Errors
/// When the ledger or the file cannot be written.
pub(super) fn forget_ended(
    records: &mut Records,
    locked: &Locked,
    clear: impl Fn(&Record) -> Result<(), HeldError>,
) -> Result<Forgotten, HeldError> {
    let mut notes = Vec::new();
    let (mut is_changed, mut is_left) = (false, false);
    for record in std::mem::take(&mut records.all) {
        if record.thing.runs() {
            records.all.push(record);
            continue;
        }
        // The next step reports why that is unknown.
        let outside = escaped(&record).map_or(0, |threads| threads.len());
        let left = clear(&record).err();
        let mut text = match outside {
            0 => format!(
                "{} has ended while it was held; it is no longer held",
                record.thing
            ),
            some => have_left(&record, some, left.as_ref()),
        };
        match left {
            Some(left) => {
                if !record.begun {
                    text = format!(
                        "{} was about to be held when the `timecell` that did it was killed",
                        record.thing
                    );
                }
                text.push_str(&format!(
                    "; the cleanup is incomplete and is tried again: {left}"
                ));
                records.all.push(record);
                is_left = true;
            }
            None => {
                locked.remove(&holder(&record))?;
                is_changed = true;
                // The process that was to hold it was killed before anything was changed.
                if !record.begun {
                    continue;
                }
            }
        }
        notes.push(text);
    }
    if is_changed {
        records.write()?;
    }
    Ok(Forgotten { notes, is_left })
}

/// That threads have left the group, a sentence; `left` is the error of restoring.
pub(super) fn have_left(record: &Record, threads: usize, left: Option<&HeldError>) -> String {
    let back = match left {
        Some(HeldError::Threads { .. } | HeldError::Outside { .. }) => {
            "not all of them got their settings back"
        }
        _ => "they got their settings back",
    };
    format!(
        "{} had left its group with {threads} threads, which ran without a budget; {back}, and it is no longer held",
        record.thing
    )
}

/// Has the keeper release something without a process, and removes its group if it was created here. Threads that have
/// left it get back their former state.
pub(super) fn clear(
    record: &Record,
    let_go_of: impl Fn(&Path) -> Result<(), PlaceError>,
) -> Result<(), HeldError> {
    let thing = &record.thing;
    let outside = escaped(record).and_then(|tids| {
        let done = back::put_back_of(&tids, &record.cpus(), record.class.as_ref(), &record.back);
        done.map_err(|reason| HeldError::Threads {
            what: thing.to_string(),
            reason,
        })
    });
    // The error that tells whether they have it comes first.
    outside.and(let_go(record, let_go_of))
}

fn let_go(
    record: &Record,
    let_go_of: impl Fn(&Path) -> Result<(), PlaceError>,
) -> Result<(), HeldError> {
    let thing = &record.thing;
    let held = place().groups()?;
    for (group, _) in record.parts() {
        // A group recreated under the same path is held for its own requester, and is not this one.
        let is_it = |entry: &freezer::page::Entry| {
            let (path, inode) = (&entry.which.path, entry.which.inode);
            path == group && (group != thing.group || inode == thing.inode)
        };
        if held.iter().any(is_it) {
            let_go_of(group)?;
        }
    }
    group::join(&record.parts(), &thing.group)?;
    match &thing.taken_from {
        Some(from) => group::dissolve(&thing.group, from),
        None => Ok(()),
    }
}

/// Removes the place of a keeper that holds nothing any more. If that fails now, the next caller does it.
pub(super) fn leave(place: &Place) {
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
        let Forgotten { notes, is_left } = forget_ended(&mut records, &locked, refuses).unwrap();
        assert!(is_left && notes.len() == 1, "{notes:?}");
        assert!(notes[0].contains("is tried again"), "{notes:?}");
        assert_eq!(Records::read_at(dir.path()).all, [record("7")]);
        let Forgotten { notes, is_left } = forget_ended(&mut records, &locked, |_| Ok(())).unwrap();
        assert!(!is_left);
        assert_eq!(
            notes,
            ["process 7 (sleep) has ended while it was held; it is no longer held"]
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
        let notes = tidy_at(&place, &mut records, &locked, |_| Ok(())).unwrap();
        assert_eq!(records.all, [runs]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[0].contains("process 7 (sleep) has ended"),
            "{notes:?}"
        );
        assert!(notes[1].contains("cannot tell whether"), "{notes:?}");
    }

    #[test]
    fn whoever_has_left_is_not_said_to_have_what_could_not_be_put_back() {
        let refused = HeldError::Threads {
            what: "it".to_owned(),
            reason: host::sched::SchedError::NoSuchProcess { pid: 7 },
        };
        let said = |left: Option<&HeldError>| have_left(&record("7"), 2, left);
        assert!(said(None).contains("; they got their settings back"));
        assert!(
            said(Some(&HeldError::Ended("it".to_owned())))
                .contains("; they got their settings back")
        );
        assert!(said(Some(&refused)).contains("; not all of them got their settings back"));
    }
}
