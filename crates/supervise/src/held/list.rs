//! What is held, with what those who hold it have counted.

use freezer::page::{Entry, Totals};
use freezer::process::Place;
use serde::Serialize;

use super::escaped::escaped;
use super::file::{Record, Records};
use super::tidy::{Tidied, not_known, tidy};
use super::{HeldError, Thing, as_root, place, threads};
use crate::ledger::Ledger;

/// All that is held.
#[derive(Debug)]
pub struct Listing {
    /// Each.
    pub held: Vec<Seen>,
    /// What has ended or was without its budget since anybody looked, a sentence each.
    pub told: Vec<String>,
}

/// One that is held.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// It.
    #[serde(flatten)]
    pub thing: Thing,
    /// The cpu.
    pub cpu: u32,
    /// The budget, ns in every period.
    pub budget_ns: i64,
    /// The period, ns.
    pub period_ns: i64,
    /// Priorities of its real-time threads when it was put under its budget, the lowest and the highest; `None`: all were ordinary.
    pub priorities: Option<(u8, u8)>,
    /// Whether its threads were given that priority.
    pub was_given_class: bool,
    /// Since when, RFC 3339.
    pub since_utc: String,
    /// The same, ns ago.
    pub age_ns: i64,
    /// Why nobody holds it, a clause; `None`: it is held.
    pub not_held: Option<String>,
    /// Its threads.
    pub threads: usize,
    /// Those of them that may run on other cpus, because they have chosen so themselves.
    pub threads_elsewhere: usize,
    /// Threads that have left its group, with the class or the cpu that they were given there: nobody holds them to the budget.
    pub threads_outside: usize,
    /// Those in it or outside that have chosen a priority above that of those who hold it, who come too late then.
    pub threads_above: usize,
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

/// What is held on this machine. What has ended is told of and forgotten; if all who held something were killed, it is held again.
///
/// # Errors
/// That the file or the ledger cannot be used.
pub fn list(ledger: &Ledger) -> Result<Listing, HeldError> {
    as_root()?;
    let locked = ledger.lock()?;
    let mut records = Records::read()?;
    let Tidied {
        mut told,
        cannot_ask,
    } = tidy(&mut records, &locked)?;
    let entries = match records.all.is_empty() {
        true => Vec::new(),
        false => entries(&place(), cannot_ask, &mut told),
    };
    let held = (records.all.iter()).map(|record| {
        let outside = escaped(record).unwrap_or_else(|why| {
            told.push(why.to_string());
            Vec::new()
        });
        seen(record, &entries, &outside)
    });
    Ok(Listing {
        held: held.collect(),
        told,
    })
}

/// What those who hold something say of it, or their page alone where they cannot be asked, which is told unless it was found before
/// (`cannot_ask`).
fn entries(place: &Place, cannot_ask: bool, told: &mut Vec<String>) -> Vec<Entry> {
    if !cannot_ask {
        match place.adopt() {
            Ok(entries) => return entries,
            Err(error) => told.push(not_known(&error)),
        }
    }
    place.groups().unwrap_or_default()
}

fn seen(record: &Record, entries: &[Entry], outside: &[i32]) -> Seen {
    let thing = &record.thing;
    let entry = (entries.iter())
        .find(|entry| entry.which.path == thing.group && entry.which.inode == thing.inode);
    let not_held = match entry {
        None => Some("nobody holds it: let it go, and hold it again".to_owned()),
        Some(entry) => {
            (entry.not_held).map(|errno| std::io::Error::from_raw_os_error(errno).to_string())
        }
    };
    let totals = entry.map_or_else(Totals::default, |entry| entry.progress.totals);
    let (threads_elsewhere, threads) = threads::elsewhere(&thing.group, record.cpu);
    let threads_above = threads::above(&thing.group, outside);
    Seen {
        cpu: record.cpu,
        budget_ns: record.budget_ns,
        period_ns: record.period_ns,
        priorities: record.priorities,
        was_given_class: record.fifo.is_some(),
        since_utc: record.since_utc.clone(),
        age_ns: timecell_client::now_ns().saturating_sub(record.since_ns),
        not_held,
        threads,
        threads_elsewhere,
        threads_outside: outside.len(),
        threads_above,
        periods: totals.periods,
        exhausted: totals.exhausted,
        used_ns: totals.used_ns,
        largest_overrun_ns: totals.overrun_ns,
        best_effort_ns: entry.map_or(0, |entry| entry.progress.best_effort_ns),
        waived_ns: totals.waived_ns,
        errors: totals.errors,
        thing: thing.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_nobody_can_be_asked_is_told_once() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let place = Place::new(dir.path().join("place"), "/nonexistent");
        std::fs::create_dir(place.dir()).unwrap();
        // Others may change it, so that nothing in it is believed.
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.dir(), open).unwrap();
        for (cannot_ask, said) in [(true, 0), (false, 1)] {
            let mut told = Vec::new();
            assert_eq!(entries(&place, cannot_ask, &mut told), []);
            assert_eq!(told.len(), said, "{told:?}");
            assert!(told.iter().all(|told| told.contains("cannot be told")));
        }
    }
}
