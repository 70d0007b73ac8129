//! `timecell clean`: saves the measurements of killed processes, and removes their remains.

use bench::Unsaved;
use supervise::control::orphaned;
use supervise::enforce::{
    sweep_freezers, sweep_groups, sweep_jailhouse, sweep_partitions, sweep_quotas, sweep_servers,
};
use supervise::held::{self, HeldError, Listing};
use supervise::ledger::{Holder, Ledger};

use crate::cli::Clean;
use crate::commands::common::give_to_sudo_user;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Writes the measurements of this user's killed coordinators to their runs, and removes their remains. Of missions that no longer
/// run it ends the partitions beside Linux, and removes the cpuset partitions, the reservations in cpu.rt.max, the groups that budgets hold and the ledger entries. Renews holds that nothing enforces any more, and
/// reports cells that still run without a supervisor.
pub fn run(options: &Clean) -> Result<Ended, CommandError> {
    let unsaved = if options.discard {
        Unsaved::Discard
    } else {
        Unsaved::Keep
    };
    let swept = bench::sweep_stale(unsaved);
    for line in swept.iter().flat_map(|swept| &swept.sentences) {
        out::print(line);
    }
    for run in swept.iter().filter_map(|swept| swept.run.as_deref()) {
        give_to_sudo_user(run, None);
    }
    // Report each before the next can fail.
    let ledger = Ledger::default();
    let mut kept = Vec::new();
    for sweep in [
        sweep_partitions,
        sweep_servers,
        sweep_groups,
        sweep_freezers,
        sweep_quotas,
        sweep_jailhouse,
    ] {
        let left = sweep(&ledger)?;
        left.iter().for_each(|left| out::print(&left.text));
        kept.extend(left);
    }
    let mut is_silent = swept.is_empty() && kept.is_empty();
    let mut tell = |text: &str| {
        is_silent = false;
        out::print(text);
    };
    let failed = put_in_order(&ledger, held::list, &mut tell)?;
    if is_silent {
        out::print("nothing was left behind");
    }
    let whole = swept.iter().all(|swept| swept.whole) && !kept.iter().any(|left| left.failed);
    let whole = whole && !failed;
    Ok(if whole { Ended::Fine } else { Ended::Failed })
}

/// Removes finished entries from the ledger, and checks all holds and all that still runs, reporting each before the next can fail. Returns whether
/// something that should be held is not, or it is unknown whether it is.
fn put_in_order(
    ledger: &Ledger,
    list: impl FnOnce(&Ledger) -> Result<Listing, HeldError>,
    tell: &mut dyn FnMut(&str),
) -> Result<bool, CommandError> {
    for holder in ledger.forget_over()? {
        tell(&format!(
            "{holder}: it no longer runs, and what was granted to it is free again"
        ));
    }
    ledger.forget_names()?;
    let is_root = rustix::process::geteuid().is_root();
    let mut failed = false;
    if is_root {
        let listing = list(ledger)?;
        listing.notes.iter().for_each(|note| tell(note));
        failed = listing.failed;
    }
    run_on(ledger)?.iter().for_each(|alone| tell(alone));
    Ok(failed)
}

/// One sentence for each mission without a supervisor whose cells still run: they are held as before, and nothing of them is removed here.
fn run_on(ledger: &Ledger) -> Result<Vec<String>, CommandError> {
    let missions = ledger.entries()?.into_iter();
    let alone = missions.filter_map(|entry| match entry.holder {
        Holder::Mission { dir, .. } => orphaned(&dir),
        Holder::Bench { .. } | Holder::Held { .. } => None,
    });
    Ok(alone
        .map(|alone| {
            format!(
                "mission `{}` has no supervisor; still running, held as before: {}; `timecell down {}` ends it",
                alone.mission,
                alone.who(),
                alone.called()
            )
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use supervise::ledger::Entry;

    #[test]
    fn what_was_done_is_told_whatever_comes_next() {
        // The ledger is root's.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(dir.path());
        let over = || {
            let mut entry = Entry::own(Holder::Mission {
                name: "no-such-mission".to_owned(),
                dir: "/nowhere".into(),
            });
            entry
                .iter_mut()
                .for_each(|entry| entry.process.start_ticks += 1);
            ledger.lock().unwrap().put(entry.unwrap()).unwrap();
        };
        let ended = |list: Result<Listing, HeldError>| {
            let mut told = Vec::new();
            over();
            let ended = put_in_order(&ledger, |_| list, &mut |text| told.push(text.to_owned()));
            (ended, told)
        };
        let (failed, told) = ended(Err(HeldError::NotRoot));
        assert!(matches!(failed, Err(CommandError::Held(_))), "{failed:?}");
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("mission `no-such-mission`: "),
            "{told:?}"
        );
        assert!(ledger.entries().unwrap().is_empty());
        for failed in [true, false] {
            let listing = Listing {
                held: Vec::new(),
                notes: vec!["it has ended".to_owned()],
                failed,
            };
            let (ended, told) = ended(Ok(listing));
            assert_eq!(ended.unwrap(), failed);
            assert_eq!(told[1..], ["it has ended"]);
        }
    }
}
