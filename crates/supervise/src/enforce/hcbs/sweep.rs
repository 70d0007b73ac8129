//! What missions have left behind that were killed with all their cells: what the group at the top reserves for them, and their groups.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Top;
use crate::enforce::Left;
use crate::ledger::{self, Entry, Holder, Ledger, LedgerError};

/// Gives back what the group at the top reserves for missions of which nothing runs any more, as the ledger knows it. Those of supervisors
/// that run are not told of.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is given back then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    // They are root's.
    let Some(top) = Top::of_this_machine().ok().filter(|_| ledger::is_root()) else {
        return Ok(Vec::new());
    };
    let note = match top.note() {
        Ok(Some(note)) => note,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => {
            let text = error.to_string();
            return Ok(vec![Left { text, failed: true }]);
        }
    };
    // Whoever reserves has entered itself before, and nobody can while the ledger is locked.
    let locked = ledger.lock()?;
    let entries = locked.entries()?;
    let mut left = Vec::new();
    for mission in note.missions() {
        let is_of = |entry: &&Entry| matches!(&entry.holder, Holder::Mission { name, .. } if name == mission);
        let runs = (entries.iter().find(is_of))
            .is_some_and(|entry| entry.process.still_runs().unwrap_or(true));
        if runs {
            continue;
        }
        let what = format!(
            "{:.3} ms of every second of each cpu, which cpu.rt.max reserves for mission `{mission}`",
            note.of_mission(mission) as f64 / 1e3
        );
        let groups = top.groups(mission);
        if groups
            .iter()
            .any(|group| freezer::hold::is_populated(group))
        {
            let text = format!(
                "{what}: they stay, for cells have their budgets from it; `timecell up` takes them over, `timecell down {mission}` ends them"
            );
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
        let given = removed.and_then(|()| {
            (top.change(mission, BTreeMap::clear)).map_err(|error| error.to_string())
        });
        let (text, failed) = match given {
            Ok(()) => (
                format!("{what}: given back, nothing runs by it any more"),
                false,
            ),
            Err(why) => (format!("{what}: {why}"), true),
        };
        left.push(Left { text, failed });
    }
    Ok(left)
}
