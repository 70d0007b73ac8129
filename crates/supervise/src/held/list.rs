//! The held things, with the counts of the processes that hold them.

use std::path::Path;

use freezer::page::{Entry, Totals};
use freezer::process::{Place, PlaceError};
use serde::Serialize;

use super::escaped::escaped;
use super::file::{PutBack, Record, Records};
use super::tidy::{Forgotten, ask, clear, forget_ended, leave, whether_held};
use super::{HeldError, Thing, as_root, group, place, threads};
use crate::admit::Hold;
use crate::ledger::{Broken, Ledger};

/// All that is held.
#[derive(Debug)]
pub struct Listing {
    /// Each.
    pub held: Vec<Seen>,
    /// Things that have ended or were without their budget since anybody looked, a sentence each.
    pub notes: Vec<String>,
    /// Whether some of it could not be restored and is tried again, or is unknown.
    pub failed: bool,
}

/// One that is held.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// It.
    #[serde(flatten)]
    pub thing: Thing,
    /// Its grant, a hold for each cpu.
    pub holds: Vec<SeenHold>,
    /// Whether its threads were given that priority.
    pub was_given_class: bool,
    /// Since when, RFC 3339.
    pub since_utc: String,
    /// The same, ns ago.
    pub age_ns: i64,
    /// The last change by others that was put back.
    pub put_back: Option<PutBack>,
    /// Since when others have it otherwise, so that nothing is guaranteed and nothing put back any more; `None`: it stands.
    pub broken: Option<Broken>,
    /// Its threads.
    pub threads: usize,
    /// Those of them that may run on other cpus, because they have chosen so themselves, or the kernel has forgotten their affinity: before
    /// Linux 6.2 it does when the cpuset controller is handed down to a group around them, or taken away.
    pub threads_elsewhere: usize,
    /// Threads that have left its group, with the class or the cpu that they were given there: nobody holds them to the budget.
    pub threads_outside: usize,
    /// Threads in it or outside that have chosen a priority above its keeper's, which then reacts too late.
    pub threads_above: usize,
}

/// A hold on one cpu.
#[derive(Debug, Serialize)]
pub struct SeenHold {
    /// The grant.
    #[serde(flatten)]
    pub hold: Hold,
    /// Why nobody holds it, a clause; `None`: it is held.
    pub not_held: Option<String>,
    /// Periods that have ended.
    pub periods: u64,
    /// Those whose budget was used up.
    pub exhausted: u64,
    /// Cpu time charged to it, ns.
    pub used_ns: i64,
    /// The largest use beyond a budget, ns.
    pub largest_overrun_ns: i64,
    /// Cpu time that it got in long system calls after its class was lowered, ns.
    pub best_effort_ns: i64,
    /// Cpu time that it used while nobody held it and does not owe, ns.
    pub waived_ns: i64,
    /// Calls on the group's files that failed, each of which was tried again.
    pub errors: u64,
}

/// The held things of this machine. Those that have ended are reported and forgotten; if all processes that held something were
/// killed, it is held again. A keeper may take 10 s to answer, and admission does not wait for that meanwhile.
///
/// # Errors
/// That the file or the ledger cannot be used.
pub fn list(ledger: &Ledger) -> Result<Listing, HeldError> {
    as_root()?;
    let place = place();
    list_of(&place, ledger, Records::read, || ask(&place))
}

fn list_of(
    place: &Place,
    ledger: &Ledger,
    read: impl FnOnce() -> Result<Records, HeldError>,
    ask: impl FnOnce() -> Result<bool, PlaceError>,
) -> Result<Listing, HeldError> {
    let again = ask();
    let let_go = |group: &Path| match &again {
        // A keeper that has just failed to answer is not asked again.
        Err(PlaceError::Silent(path)) => Err(PlaceError::Silent(path.clone())),
        _ => place.let_go(group),
    };
    let locked = ledger.lock()?;
    let mut records = read()?;
    let Forgotten { mut notes, is_left } =
        forget_ended(&mut records, &locked, |record| clear(record, let_go))?;
    let mut failed = is_left;
    if records.all.is_empty() {
        // A process that is about to hold something would lose the place under its keeper.
        leave(place);
    }
    drop(locked);
    if !records.all.is_empty() {
        notes.extend(whether_held(&again));
        failed |= again.is_err();
    }
    let entries = place.groups().unwrap_or_default();
    let held = (records.all.iter()).map(|record| {
        let outside = escaped(record).unwrap_or_else(|why| {
            notes.push(why.to_string());
            failed = true;
            Vec::new()
        });
        seen(record, &entries, &outside)
    });
    let held = held.collect();
    Ok(Listing {
        held,
        notes,
        failed,
    })
}

fn seen(record: &Record, entries: &[Entry], outside: &[i32]) -> Seen {
    let thing = &record.thing;
    let parts = record.parts();
    let elsewhere = parts.iter().map(|part| threads::elsewhere(*part));
    let threads_elsewhere = elsewhere.sum();
    let holds = record.holds.iter().zip(parts);
    Seen {
        holds: holds
            .map(|(hold, (group, _))| of_cpu(hold, group, entries))
            .collect(),
        was_given_class: record.class.is_some(),
        since_utc: record.since_utc.clone(),
        age_ns: timecell_client::now_ns().saturating_sub(record.since_ns),
        put_back: record.put_back.clone(),
        broken: record.broken.clone(),
        threads: group::threads(&thing.group).len(),
        threads_elsewhere,
        threads_outside: outside.len(),
        threads_above: threads::above(&thing.group, outside),
        thing: thing.clone(),
    }
}

fn of_cpu(hold: &Hold, group: &Path, entries: &[Entry]) -> SeenHold {
    let inode = group::inode(group).ok();
    let entry = (entries.iter())
        .find(|entry| entry.which.path == group && Some(entry.which.inode) == inode);
    let not_held = match entry {
        None => Some("nothing holds it: release it, and hold it again".to_owned()),
        Some(entry) => {
            (entry.not_held).map(|errno| std::io::Error::from_raw_os_error(errno).to_string())
        }
    };
    let totals = entry.map_or_else(Totals::default, |entry| entry.progress.totals);
    SeenHold {
        hold: hold.clone(),
        not_held,
        periods: totals.periods,
        exhausted: totals.exhausted,
        used_ns: totals.used_ns,
        largest_overrun_ns: totals.overrun_ns,
        best_effort_ns: entry.map_or(0, |entry| entry.progress.best_effort_ns),
        waived_ns: totals.waived_ns,
        errors: totals.errors,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt as _;

    use super::super::file::tests::record;
    use super::*;

    #[test]
    fn whoever_does_not_answer_keeps_nobody_from_deciding() {
        // The ledger is root's.
        if !crate::ledger::is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("ledger"));
        let mut records = Records::read_at(dir.path());
        let mut runs = record("1");
        // A group with a process in it, as far as its files say.
        runs.thing.group = dir.path().join("group");
        std::fs::create_dir(&runs.thing.group).unwrap();
        std::fs::write(runs.thing.group.join("cgroup.events"), "populated 1\n").unwrap();
        runs.thing.inode = group::inode(&runs.thing.group).unwrap();
        records.all = vec![record("7"), runs];
        records.write().unwrap();
        let place = Place::new(dir.path().join("place"), "/nonexistent");
        let silent = || {
            assert!(ledger.try_lock().is_ok(), "it waits with the lock");
            Err(PlaceError::Silent(place.dir().to_owned()))
        };
        let read = || Ok(Records::read_at(dir.path()));
        let listing = list_of(&place, &ledger, read, silent).unwrap();
        assert_eq!(listing.held.len(), 1);
        let notes = listing.notes;
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[0].contains("process 7 (sleep) has ended"),
            "{notes:?}"
        );
        assert!(notes[1].contains("cannot tell whether"), "{notes:?}");
        assert!(notes[1].contains("no keeper answers"), "{notes:?}");
        assert!(listing.failed);
        let answers = list_of(&place, &ledger, read, || Ok(true)).unwrap();
        assert!(
            answers.notes[0].contains("held again"),
            "{:?}",
            answers.notes
        );
        assert!(!answers.failed);
    }

    #[test]
    fn the_place_is_not_removed_once_somebody_else_decides() {
        // The ledger is root's.
        if !crate::ledger::is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path().join("ledger"));
        let place = Place::new(dir.path().join("place"), "/nonexistent");
        let made = || {
            let mut builder = std::fs::DirBuilder::new();
            builder.mode(0o700).recursive(true).create(place.dir())
        };
        made().unwrap();
        // A keeper that ends late.
        let keeper = std::fs::File::create(place.dir().join("heir.lock")).unwrap();
        keeper.lock().unwrap();
        let (say, said) = std::sync::mpsc::channel();
        let read = || {
            say.send(()).unwrap();
            Ok(Records::read_at(dir.path()))
        };
        std::thread::scope(|scope| {
            let lists = scope.spawn(|| list_of(&place, &ledger, read, || Ok(false)));
            said.recv().unwrap();
            let locked = ledger.lock().unwrap();
            made().unwrap();
            drop(keeper);
            assert!(lists.join().unwrap().unwrap().held.is_empty());
            assert!(place.dir().exists(), "it went while another had the ledger");
            drop(locked);
        });
        let listing = list_of(
            &place,
            &ledger,
            || Ok(Records::read_at(dir.path())),
            || Ok(false),
        );
        assert!(listing.is_ok() && !place.dir().exists());
    }
}
