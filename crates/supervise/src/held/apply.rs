//! Puts a thing under its holds, and takes it out of them again.

use std::path::Path;

use freezer::process::PlaceError;
use freezer::{Reservation, Stop};

use super::back::{self, Back};
use super::escaped::escaped;
use super::file::{NOT_MADE, Record, Records};
use super::threads::{self, Refused};
use super::tidy::{holder, leave};
use super::{HeldError, group, place};
use crate::ledger::{Entry, Locked};

/// Makes a group for a process that shares its own with others; the processes are moved once that is noted.
pub(super) fn take_out(record: &mut Record, records: &mut Records) -> Result<(), HeldError> {
    let Some(pid) = record.thing.pid else {
        return Ok(());
    };
    let from = record.thing.group.clone();
    record.thing.group = from.join(group::name_for(pid));
    record.thing.taken_from = Some(from);
    // Recorded before it is created, so that it can be removed if this process is killed.
    record.thing.inode = NOT_MADE;
    records.all.push(record.clone());
    records.write()?;
    let made = group::make(&record.thing.group);
    records.forget(&record.thing.group);
    match made {
        Ok(inode) => {
            record.thing.inode = inode;
            Ok(())
        }
        Err(error) => {
            let _ = records.write();
            Err(error)
        }
    }
}

pub(super) fn note(
    records: &mut Records,
    locked: &Locked,
    record: Record,
    entry: Entry,
) -> Result<(), HeldError> {
    records.all.push(record);
    records.write()?;
    Ok(locked.put(entry)?)
}

pub(super) fn put_under(
    record: &mut Record,
    records: &mut Records,
    reservation: Reservation,
) -> Result<(), HeldError> {
    if let (Some(from), Some(pid)) = (&record.thing.taken_from, record.thing.pid) {
        group::gather(from, &record.thing, pid)?;
    }
    // A thread that is outside the group beforehand was never in it.
    record.begun = true;
    records.forget(&record.thing.group);
    records.all.push(record.clone());
    records.write()?;
    group::divide(&record.parts())?;
    record.back.keep_cpuset(&record.cpus());
    // The cpuset that it was left with is known by now.
    records.forget(&record.thing.group);
    records.all.push(record.clone());
    records.write()?;
    let thing = &record.thing;
    let parts = record.parts();
    let keep = |class| {
        threads::keep(&thing.group, &parts, class, &record.back).map_err(|refused| match refused {
            Refused::Group(error) => error,
            Refused::Thread(reason) => HeldError::Threads {
                what: thing.to_string(),
                reason,
            },
        })
    };
    // On one cpu first, so that it overruns no budget by more than one cpu's time, and its class last: a real-time thread has a
    // budget from its first instant on.
    keep(None)?;
    // The held program may have the right to set its own class.
    for (group, cpu) in &parts {
        place().hold(group, Stop::Freeze, *cpu, reservation)?;
    }
    if record.class.is_some() {
        keep(record.class.as_ref())?;
    }
    match thing.runs() {
        true => Ok(()),
        false => Err(HeldError::Ended(thing.to_string())),
    }
}

/// Restores everything after an error, and returns the error; parts that cannot be restored no longer exist.
pub(super) fn undo(
    record: &mut Record,
    records: &mut Records,
    locked: &Locked,
    error: HeldError,
) -> HeldError {
    // A thing held all the same must not be forgotten.
    if let Err(HeldError::Place(why)) = take_away(record) {
        return HeldError::StillHeld {
            error: error.to_string(),
            why,
            name: record.thing.name.clone(),
        };
    }
    records.forget(&record.thing.group);
    let _ = records.write();
    let _ = locked.remove(&holder(record));
    leave(&place());
    error
}

/// Restores its classes and cpus but for changes of others, releases it, and dissolves the groups that were created for it.
///
/// # Errors
/// [`HeldError::Place`] if its keeper does not release it: it stays held then. Otherwise the first thing that could not
/// be restored; the others are.
pub(super) fn take_away(record: &mut Record) -> Result<(), HeldError> {
    take_away_by(record, |group| place().let_go(group))
}

fn take_away_by(
    record: &mut Record,
    let_go: impl Fn(&Path) -> Result<(), PlaceError>,
) -> Result<(), HeldError> {
    let mut back = record.back.clone();
    let thing = &record.thing;
    let (parts, class) = (record.parts(), record.class.as_ref());
    let threads = |reason| HeldError::Threads {
        what: thing.to_string(),
        reason,
    };
    let put_back =
        |back: &mut Back| back::put_back(&thing.group, &parts, class, back).map_err(threads);
    // Its class first, while it has a budget; and again, for threads that had been lowered and get theirs when it is
    // released.
    let first = put_back(&mut back);
    let let_go = parts.iter().try_for_each(|(group, _)| let_go(group));
    if let Err(error) = let_go {
        // The next attempt is not to take the state put back by this one for others'.
        record.back = back;
        return Err(error.into());
    }
    let then = put_back(&mut back);
    let outside = escaped(record)
        .and_then(|tids| back::put_back_of(&tids, &record.cpus(), class, &back).map_err(threads));
    let joined = group::join(&parts, &thing.group);
    let dissolved = joined.and_then(|()| match &thing.taken_from {
        Some(from) => group::dissolve(&thing.group, from),
        None => Ok(()),
    });
    first.and(then).and(outside).and(dissolved)
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::record;
    use super::*;

    #[test]
    fn a_group_is_noted_before_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("shared");
        let mut records = Records::read_at(dir.path());
        let mut held = record("7");
        held.thing.group.clone_from(&from);
        // It cannot be made, and nothing is left of it.
        assert!(take_out(&mut held.clone(), &mut records).is_err());
        assert_eq!(Records::read_at(dir.path()).all, []);
        std::fs::create_dir(&from).unwrap();
        take_out(&mut held, &mut records).unwrap();
        let own = from.join("held-by-timecell-7");
        assert_eq!((&held.thing.group, own.is_dir()), (&own, true));
        // A reader that finds this process killed by now knows of it.
        let noted = Records::read_at(dir.path()).all;
        assert_eq!(
            (noted.len(), &noted[0].thing.group, noted[0].thing.inode),
            (1, &own, NOT_MADE)
        );
        assert_eq!(records.all, []);
    }

    #[test]
    fn what_is_not_let_go_stays_where_it_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("held");
        std::fs::create_dir(&group).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let tid = child.id().cast_signed();
        let mut held = record("7");
        held.thing.group = group.clone();
        held.thing.taken_from = Some(dir.path().to_owned());
        held.class = None;
        // On a machine that had more cpus: they cannot be given back.
        held.back = Back::of(&[tid], Some(tid)).with_cpus(&[4_000]);
        let cpu = *host::sched::get_affinity(tid).unwrap().last().unwrap();
        held.holds[0].cpus = vec![cpu];
        host::sched::set_affinity(tid, &[cpu]).unwrap();
        let listed = || std::fs::write(group.join("cgroup.threads"), format!("{tid}\n")).unwrap();
        listed();
        let silent = |group: &Path| Err(PlaceError::Silent(group.to_owned()));
        let error = take_away_by(&mut held, silent).unwrap_err();
        assert!(matches!(error, HeldError::Place(_)), "{error}");
        assert!(group.exists());
        // Once it is let go, all that can be put back is, and the other thing is told.
        let gone = |group: &Path| {
            std::fs::remove_file(group.join("cgroup.threads")).unwrap();
            Ok(())
        };
        let error = take_away_by(&mut held, gone).unwrap_err();
        assert!(matches!(error, HeldError::Threads { .. }), "{error}");
        assert!(!group.exists());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
