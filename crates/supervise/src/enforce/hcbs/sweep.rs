//! Cleans up after missions and measurements that were killed with all their cells: the top group's reservations for
//! them, and their groups.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use host::hcbs::Top;
use text::units::exact;

use crate::enforce::Left;
use crate::ledger::{self, Entry, Holder, Ledger, LedgerError};
use crate::names;

/// Gives back the top group's reservations for missions and measurements of which nothing runs any more, by the ledger.
/// Those that run are not reported.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is given back then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    // They are root's.
    match Top::of_this_machine().ok().filter(|_| ledger::is_root()) {
        Some(top) => swept(&top, ledger),
        None => Ok(Vec::new()),
    }
}

fn swept(top: &Top, ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    let note = match top.note() {
        Ok(Some(note)) => note,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => {
            let text = error.to_string();
            return Ok(vec![Left { text, failed: true }]);
        }
    };
    // A reserver enters itself first, which nobody can do while the ledger is locked.
    let locked = ledger.lock()?;
    let entries = locked.entries_everywhere()?;
    let mut left = Vec::new();
    for owner in note.owners() {
        let mission = names::mission_of_cells(owner);
        let is_of = |entry: &&Entry| match &entry.holder {
            Holder::Mission { name, .. } => mission == Some(name),
            Holder::Bench { pid, .. } => owner == names::cells_of_bench(*pid),
            Holder::Held { .. } => false,
        };
        let runs = (entries.iter().find(is_of))
            .is_some_and(|entry| entry.process.still_runs().unwrap_or(true));
        if runs {
            continue;
        }
        let (who, fix) = match mission {
            Some(mission) => (
                format!("mission `{mission}`"),
                format!("`timecell up` adopts them, `timecell down {mission}` ends them"),
            ),
            None => (
                format!("a measurement (groups `{}...`)", owner.escape_debug()),
                "the next `timecell bench` ends them".to_owned(),
            ),
        };
        let what = format!(
            "{} of every second of each cpu, which cpu.rt.max reserves for {who}",
            exact(note.of(owner) * 1_000)
        );
        let groups = top.groups(owner).into_iter();
        let groups: Vec<PathBuf> = groups.map(|group| top.root().path(group)).collect();
        if groups
            .iter()
            .any(|group| freezer::hold::is_populated(group))
        {
            let text = format!("{what}: they stay because cells take their budgets from it; {fix}");
            left.push(Left {
                text,
                failed: false,
            });
            continue;
        }
        let removed = (groups.iter())
            .map(|group| {
                freezer::hold::remove(group, Duration::ZERO).map_err(|error| error.to_string())
            })
            .fold(Ok(()), Result::and);
        let given = removed
            .and_then(|()| (top.change(owner, BTreeMap::clear)).map_err(|error| error.to_string()));
        let (text, failed) = match given {
            Ok(()) => (
                format!("{what}: given back, nothing uses it any more"),
                false,
            ),
            Err(why) => (format!("{what}: {why}"), true),
        };
        left.push(Left { text, failed });
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use host::root::Root;

    use super::*;

    #[test]
    fn what_cannot_be_given_back_stays_noted_and_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let file = |path: &str, text: &str| {
            let path = root.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        file(
            "/proc/self/mountinfo",
            "41 31 0:38 / /c rw - cgroup2 cgroup2 rw\n",
        );
        file("/c/cpu.rt.max", "0 1000000");
        let top = Top::at(root.clone(), &dir.path().join("run")).unwrap();
        for (mission, us) in [("a", 300_000), ("b", 100_000)] {
            let group = names::cell_id(mission, "x");
            top.change(&names::cells_of(mission), |all| {
                all.insert(group, us);
            })
            .unwrap();
        }
        // A group that cannot be removed.
        file("/c/timecell-cell-a.x/cpu.rt.max", "30000 100000");
        let ledger = Ledger::at(dir.path().join("ledger"));
        let reserves = || root.read("/c/cpu.rt.max").unwrap();
        let left = swept(&top, &ledger).unwrap();
        let failed: Vec<bool> = left.iter().map(|left| left.failed).collect();
        assert_eq!(failed, [true, false], "{left:?}");
        assert!(left[0].text.contains("for mission `a`: "), "{left:?}");
        assert!(left[1].text.contains("mission `b`: given back"), "{left:?}");
        assert_eq!(reserves(), "300000 1000000");
        assert_eq!(
            top.note().unwrap().unwrap().of(&names::cells_of("a")),
            300_000
        );
        fs::remove_dir_all(root.path("/c/timecell-cell-a.x")).unwrap();
        let left = swept(&top, &ledger).unwrap();
        assert!(!left[0].failed && left.len() == 1, "{left:?}");
        assert_eq!(reserves(), "0 1000000");
        assert_eq!(swept(&top, &ledger).unwrap(), []);
    }
}
