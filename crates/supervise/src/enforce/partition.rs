//! The cpus that a mission has to itself: cpuset partitions, which confine its threads of SCHED_DEADLINE, and all its
//! other cells that are to run there. They outlive the supervisor, like the cells in them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::file::at;
use host::isolate::{PARTITION_PREFIX, Partitions};

use super::EnforceError;
use crate::ledger::{self, Entry, Holder, Ledger, LedgerError, Locked};
use crate::{lock, names};

/// The lock for making or removing partitions.
const LOCK: &str = "partitions.lock";
/// How long one waits for others that do.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keeps all others of the machine from making and removing partitions: cells are made on threads of their own, several may want the same
/// partition, and the affinities of tasks are noted of all partitions together.
///
/// # Errors
/// A sentence.
fn alone() -> Result<File, host::Error> {
    let dir = Path::new(lock::PLACE);
    Ok(lock::take(dir, LOCK, PATIENCE).map_err(at(&dir.join(LOCK)))?)
}

/// Those of this machine.
///
/// # Errors
/// Why it has none, a clause.
pub(crate) fn of_this_machine() -> Result<Partitions, host::Error> {
    Partitions::detect(lock::PLACE)
}

/// Those of a mission.
#[derive(Debug)]
pub(super) struct ByPartition {
    mission: String,
}

impl ByPartition {
    pub(super) fn of(mission: &str) -> ByPartition {
        ByPartition {
            mission: mission.to_owned(),
        }
    }

    /// Makes those of these cpus that are not there.
    ///
    /// # Errors
    /// Why a partition cannot be created, a sentence; none is created then.
    pub(super) fn make(&self, wanted: &[Vec<u32>]) -> Result<(), EnforceError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let partitions = of_this_machine()?;
        let _alone = alone()?;
        let mut new: Vec<String> = Vec::new();
        for cpus in wanted {
            let name = names::partition(&self.mission, cpus);
            let was_there = partitions.path(&name).exists();
            if let Err(why) = partitions.make(&name, cpus) {
                for name in new {
                    // Nobody is in it yet.
                    let _ = partitions.remove(&name);
                }
                return Err(why.into());
            }
            if !was_there {
                new.push(name);
            }
        }
        Ok(())
    }

    /// Removes all but those of these cpus; one with processes in it stays.
    ///
    /// # Errors
    /// Of the first that stays.
    pub(super) fn keep_only(&self, wanted: &[Vec<u32>]) -> Result<(), EnforceError> {
        // They are root's.
        let Some(partitions) = of_this_machine().ok().filter(|_| ledger::is_root()) else {
            return Ok(());
        };
        let _alone = alone()?;
        // A note that could not be written keeps no mission from its end; `clean` tells it.
        let _ = partitions.finish();
        let mut result = Ok(());
        for partition in partitions.all(&names::partitions_of(&self.mission)) {
            if !wanted.contains(&partition.cpus) {
                let removed = partitions.remove(&partition.name);
                result = result.and(removed.map_err(EnforceError::from));
            }
        }
        result
    }

    /// Keeps the controllers of cgroup v2 that cells count on: systemd takes away those that none of its units needs, and with them cpus and limits.
    ///
    /// # Errors
    /// The kernel's refusal, a sentence.
    pub(super) fn keep_controllers(&self) -> Result<(), EnforceError> {
        // They are root's.
        let Some(partitions) = of_this_machine().ok().filter(|_| ledger::is_root()) else {
            return Ok(());
        };
        let name = names::controllers_of(&self.mission);
        if partitions.are_controllers_kept(&name) {
            return Ok(());
        }
        let _alone = alone()?;
        Ok(partitions.keep_controllers(&name)?)
    }

    /// Does this, and keeps no controllers that were not kept before if it fails.
    ///
    /// # Errors
    /// Those of `change`.
    pub(super) fn or_controllers_as_before<T>(
        &self,
        change: impl FnOnce() -> Result<T, EnforceError>,
    ) -> Result<T, EnforceError> {
        match of_this_machine().ok().filter(|_| ledger::is_root()) {
            Some(partitions) => {
                partitions.or_controllers_as_before(&names::controllers_of(&self.mission), change)
            }
            None => change(),
        }
    }

    /// Stops keeping them.
    ///
    /// # Errors
    /// The kernel's refusal, a sentence.
    pub(super) fn leave_controllers(&self) -> Result<(), EnforceError> {
        let Some(partitions) = of_this_machine().ok().filter(|_| ledger::is_root()) else {
            return Ok(());
        };
        let name = names::controllers_of(&self.mission);
        Ok(partitions.leave_controllers(&name)?)
    }

    /// The group of these cpus; `None`: this machine has no partitions.
    pub(super) fn group(&self, cpus: &[u32]) -> Option<PathBuf> {
        let partitions = of_this_machine().ok()?;
        Some(partitions.path(&names::partition(&self.mission, cpus)))
    }
}

/// The fate of something that a mission has left: a partition, or a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// A sentence.
    pub text: String,
    /// Whether it could not be given back though nobody needs it.
    pub failed: bool,
}

impl Left {
    /// Of a thing of a mission of which nothing runs any more, whose removal has succeeded or not.
    pub(super) fn removed(what: &str, removed: Result<(), String>) -> Left {
        let (text, failed) = match removed {
            Ok(()) => (
                "removed, nothing of the mission runs any more".to_owned(),
                false,
            ),
            Err(why) => (why, true),
        };
        Left {
            text: format!("{what}: {text}"),
            failed,
        }
    }

    fn of(error: &dyn std::error::Error) -> Left {
        Left {
            text: error.to_string(),
            failed: true,
        }
    }
}

/// Removes the partitions of missions of which nothing runs any more, by the ledger. Those of running supervisors are
/// not reported.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is removed then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    // They are root's.
    match of_this_machine().ok().filter(|_| ledger::is_root()) {
        Some(partitions) => swept(&partitions, &ledger.lock()?),
        None => Ok(Vec::new()),
    }
}

/// A creator enters itself first, which nobody can do while the ledger is locked: an empty one is not about to be used.
fn swept(partitions: &Partitions, locked: &Locked) -> Result<Vec<Left>, LedgerError> {
    let mut left = Vec::new();
    let _alone = match alone() {
        Ok(locked) => locked,
        Err(error) => return Ok(vec![Left::of(&error)]),
    };
    if let Err(error) = partitions.finish() {
        left.push(Left::of(&error));
    }
    let (all, kept_for) = (partitions.all(PARTITION_PREFIX), partitions.kept_for());
    let entries = locked.entries_everywhere()?;
    for partition in all {
        // Those of measurements have no dot, and are theirs to remove.
        let name = partition.name.strip_prefix(PARTITION_PREFIX);
        let Some((mission, _)) = name.and_then(|name| name.rsplit_once('.')) else {
            continue;
        };
        let cpus = host::cpus::format_list(&partition.cpus);
        let what = format!("cpuset partition of cpu {cpus} of mission `{mission}`");
        let is_of = |entry: &&Entry| matches!(&entry.holder, Holder::Mission { name, .. } if name == mission);
        let (text, failed) = match entries.iter().find(is_of) {
            Some(entry) if entry.process.still_runs().unwrap_or(true) => continue,
            _ if partitions.is_populated(&partition.name) => (
                format!(
                    "{what}: it stays because cells run in it; `timecell up` adopts them, `timecell down {mission}` ends them"
                ),
                false,
            ),
            _ => match partitions.remove(&partition.name) {
                Ok(()) => (
                    format!("{what}: removed, nothing runs in it any more"),
                    false,
                ),
                Err(why) => (format!("{what}: {why}"), true),
            },
        };
        left.push(Left { text, failed });
    }
    for mission in kept_for {
        if ledger::anything_runs(&entries, &mission) {
            continue;
        }
        let what = format!("group that keeps controllers enabled for mission `{mission}`");
        let (text, failed) = match partitions.leave_controllers(&names::controllers_of(&mission)) {
            Ok(()) => (
                format!("{what}: removed, nothing of the mission runs any more"),
                false,
            ),
            Err(why) => (format!("{what}: {why}"), true),
        };
        left.push(Left { text, failed });
    }
    Ok(left)
}
