//! What has ended while it was held: forgotten, with nothing of it left. And what is held by nobody any more: held again.

use freezer::page::Page;

use super::escaped::escaped;
use super::file::{NOT_MADE, Record, Records};
use super::{HeldError, group, place, threads};
use crate::ledger::{Holder, Locked};

/// What is held, as the machine's ledger knows it.
pub(super) fn holder(record: &Record) -> Holder {
    Holder::Held {
        name: record.thing.name.clone(),
        group: record.thing.group.clone(),
        inode: record.thing.inode,
    }
}

/// Forgets what has ended, has what is held by nobody held again, and says so, a sentence each. What is left of one that has ended is tried
/// again by whoever comes next.
///
/// # Errors
/// When the ledger or the file cannot be written, or nobody can hold what is held.
pub(super) fn tidy(records: &mut Records, locked: &Locked) -> Result<Vec<String>, HeldError> {
    let mut told = forget_ended(records, locked, clear)?;
    if records.all.is_empty() {
        leave();
        return Ok(told);
    }
    let place = place();
    let is_kept = place.page()?.as_ref().is_none_or(Page::is_kept);
    if !is_kept && !place.adopt()?.is_empty() {
        told.push(
            "those who held it had all been killed, and what is held was without its budget; it is held again"
                .to_owned(),
        );
    }
    Ok(told)
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
        let outside = escaped(&record).len();
        let left = clear(&record).err();
        let mut text = match outside {
            0 => format!(
                "{} has ended while it was held; it is held no more",
                record.thing
            ),
            some => have_left(&record, some),
        };
        match left {
            Some(left) => {
                text.push_str(&format!(
                    "; something is left, which is tried again: {left}"
                ));
                records.all.push(record);
            }
            None => {
                locked.remove(&holder(&record))?;
                is_changed = true;
                // Whoever was to hold it was killed before anything was changed.
                if record.thing.inode == NOT_MADE {
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

/// That threads are outside of the group by now, a sentence.
pub(super) fn have_left(record: &Record, threads: usize) -> String {
    format!(
        "{} had left its group with {threads} of its threads, which ran without a budget; they have back what they had, and it is held no more",
        record.thing
    )
}

/// Those who held something without a process are asked to let go of it, and its group goes if it was made here. Whoever has left it gets back
/// what it had.
fn clear(record: &Record) -> Result<(), HeldError> {
    let thing = &record.thing;
    let outside = threads::put_back_of(&escaped(record), record.cpu, record.fifo, &record.back);
    // One that was made again under the same path is held by whoever has asked for that, and is not this one.
    let held = place().groups()?;
    if held
        .iter()
        .any(|entry| entry.which.path == thing.group && entry.which.inode == thing.inode)
    {
        place().let_go(&thing.group)?;
    }
    if let Some(from) = &thing.taken_from {
        group::dissolve(&thing.group, from)?;
    }
    outside.map_err(|reason| HeldError::Threads {
        what: thing.to_string(),
        reason,
    })
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
        never_made.thing.inode = NOT_MADE;
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
}
