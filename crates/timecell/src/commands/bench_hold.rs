//! The cpus of a measurement in the machine's ledger, so that missions and measurements keep off each other's cpus.

use std::collections::BTreeSet;

use bench::Plan;
use supervise::ledger::{Entry, Holder, Holding, Ledger, LedgerError};

use crate::cli::Measured;
use crate::exit::CommandError;
use crate::out;

/// Holds the cpus of this plan's cells until the result is dropped. Loads hold none: they are ordinary work, on whose time
/// nobody relies.
///
/// # Errors
/// If a mission holds one of them and `--beside-missions` is not given, or the ledger cannot be used.
pub fn of_plan(plan: &Plan, what: &str, options: &Measured) -> Result<Holding, CommandError> {
    let cells = plan.trials.iter().flat_map(|trial| &trial.cells);
    let cpus: BTreeSet<u32> = cells.map(|(_, cpu)| *cpu).collect();
    hold(what, cpus.into_iter().collect(), options)
}

/// As [`of_plan`], for a measurement on these cpus, or on all if none is named; `None` for a dry run.
///
/// # Errors
/// As [`of_plan`].
pub fn of_cpus(
    what: &str,
    cpus: &[u32],
    options: &Measured,
) -> Result<Option<Holding>, CommandError> {
    if options.dry_run {
        return Ok(None);
    }
    let cpus = match cpus {
        [] => host::cpus::online().unwrap_or_default(),
        named => named.to_vec(),
    };
    hold(what, cpus, options).map(Some)
}

fn hold(what: &str, cpus: Vec<u32>, options: &Measured) -> Result<Holding, CommandError> {
    let holder = Holder::Bench {
        name: what.to_owned(),
        pid: std::process::id().cast_signed(),
    };
    let locked = Ledger::default().lock()?;
    for note in beside(&locked.others(&holder)?, &cpus, options.beside_missions)? {
        out::note(&note);
    }
    let mut entry = Entry::own(holder).map_err(LedgerError::from)?;
    entry.measured_cpus = cpus;
    Ok(locked.take(entry)?)
}

/// Notes about others that already hold some of these cpus.
///
/// # Errors
/// If one of them is a mission and `beside_missions` is false.
fn beside(
    others: &[Entry],
    cpus: &[u32],
    beside_missions: bool,
) -> Result<Vec<String>, LedgerError> {
    let mut notes = Vec::new();
    for other in others {
        let mut shared = other.cpus();
        shared.retain(|cpu| cpus.contains(cpu));
        if shared.is_empty() {
            continue;
        }
        let (who, list) = (other.who(), host::cpus::format_list(&shared));
        match &other.holder {
            Holder::Mission { .. } if !beside_missions => {
                return Err(LedgerError::InTheWay { who, cpus: list });
            }
            Holder::Mission { .. } => notes.push(format!(
                "note    {who} holds cpu {list}: its cells disturb this measurement, and may be late because of it"
            )),
            Holder::Held { .. } => notes.push(format!(
                "note    {who} is held on cpu {list}: it disturbs this measurement, and may be late because of it"
            )),
            // `bench self` measures a `bench` that it starts.
            Holder::Bench { pid, .. } if *pid == parent() => {}
            Holder::Bench { .. } => notes.push(format!(
                "note    {who} also measures on cpu {list}: the two measurements disturb each other"
            )),
        }
    }
    Ok(notes)
}

fn parent() -> i32 {
    std::os::unix::process::parent_id().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(holder: Holder, cpus: &[u32]) -> Entry {
        let mut entry = Entry::own(holder).unwrap();
        entry.measured_cpus = cpus.to_vec();
        entry
    }

    fn bench(pid: i32, cpus: &[u32]) -> Entry {
        let name = "latency".to_owned();
        let mut entry = entry(Holder::Bench { name, pid }, cpus);
        entry.process.pid = pid;
        entry
    }

    #[test]
    fn another_measurement_on_the_same_cpus_is_told() {
        let others = [bench(7, &[0, 1]), bench(8, &[2]), bench(parent(), &[1])];
        let notes = beside(&others, &[1, 3], false).unwrap();
        assert_eq!(
            notes,
            [
                "note    `timecell bench latency` (process 7) also measures on cpu 1: the two measurements disturb each other"
            ]
        );
    }

    #[test]
    fn a_mission_is_in_the_way_unless_it_is_to_be_measured() {
        let holder = Holder::Mission {
            name: "a".to_owned(),
            dir: "/nowhere".into(),
        };
        let others = [entry(holder, &[1])];
        assert!(beside(&others, &[0], false).unwrap().is_empty());
        let error = beside(&others, &[1], false).unwrap_err().to_string();
        assert!(error.starts_with("mission `a` holds cpu 1"), "{error}");
        assert_eq!(beside(&others, &[1], true).unwrap().len(), 1);
    }
}
