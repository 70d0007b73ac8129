//! What the kernel counts of a cell's limits: processes that it has killed for memory, and forks that it has refused.
//!
//! The counters go with the cell's groups, which its removal takes away, so the last look at them is kept.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use super::outside::{all, number, read};
use crate::cause::Cause;
use crate::state::Limit;

/// The counters of one life of a cell.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Processes killed for memory, whoever had none left.
    kills: Counter,
    /// How often the cell itself came up against its limit of memory.
    own: Counter,
    /// The most that it has used, bytes: not every kernel of version 1 counts how often the limit was reached.
    peak: Counter,
    /// Refused forks.
    forks: Counter,
    memory_bytes: Option<u64>,
    pids: Option<u64>,
    told: Vec<Limit>,
}

impl Limits {
    /// Of these groups and those below them, where engines put what they make; `told`: what this life was told of before.
    pub(super) fn of(groups: &[PathBuf], told: &[Limit]) -> Limits {
        let groups = with_those_below(groups);
        let count = |file, key| Counter::of(&groups, file, key);
        let least = |files: [&str; 2]| least(&groups, &files);
        Limits {
            kills: Counter::either(
                count("memory.events", Some("oom_kill")),
                count("memory.oom_control", Some("oom_kill")),
            ),
            own: Counter::either(
                count("memory.events", Some("oom")),
                count("memory.failcnt", None),
            ),
            peak: count("memory.max_usage_in_bytes", None),
            forks: count("pids.events", Some("max")),
            memory_bytes: least(["memory.max", "memory.limit_in_bytes"]),
            pids: least(["pids.max", "pids.max"]),
            told: told.to_vec(),
        }
    }

    /// The program has ended: what is counted now stands when its groups are gone.
    pub(super) fn keep(&mut self) {
        self.kills.keep();
        self.own.keep();
        self.peak.keep();
        self.forks.keep();
    }

    /// Why the kernel has killed a process of the cell, if it has for memory.
    pub(super) fn memory_kill(&self) -> Option<Cause> {
        (self.kills.now() > 0).then(|| Cause::Memory {
            limit_bytes: (self.memory_bytes)
                .filter(|limit| self.own.now() > 0 || self.peak.now() >= limit - limit / 8),
        })
    }

    /// The limits that were reached and are told for the first time.
    pub(super) fn reached(&mut self) -> Vec<Limit> {
        let memory = self.memory_kill().map(|cause| Limit::Memory {
            limit_bytes: match cause {
                Cause::Memory { limit_bytes } => limit_bytes,
                _ => None,
            },
        });
        let forks = (self.forks.now() > 0).then_some(Limit::Pids { most: self.pids });
        let mut new: Vec<Limit> = memory.into_iter().chain(forks).collect();
        new.retain(|limit| !self.told.iter().any(|told| told.is_like(*limit)));
        self.told.extend(&new);
        if self
            .told
            .iter()
            .any(|told| matches!(told, Limit::Pids { .. }))
        {
            // Nobody is woken for it again.
            self.forks.files.clear();
        }
        new
    }

    /// What the kernel signals (POLLPRI) when a fork is refused.
    pub(super) fn alarms(&self) -> impl Iterator<Item = RawFd> {
        self.forks.files.iter().map(AsRawFd::as_raw_fd)
    }
}

/// A number that the kernel counts up in files of several groups.
#[derive(Debug, Default)]
struct Counter {
    files: Vec<File>,
    key: Option<&'static str>,
    kept: u64,
}

impl Counter {
    fn of(groups: &[PathBuf], file: &'static str, key: Option<&'static str>) -> Counter {
        Counter {
            files: all(groups, &[file], |text| value(text, key).is_some()),
            key,
            kept: 0,
        }
    }

    /// Whichever version of control groups counts.
    fn either(first: Counter, second: Counter) -> Counter {
        match first.files.is_empty() {
            true => second,
            false => first,
        }
    }

    fn now(&self) -> u64 {
        let each = self
            .files
            .iter()
            .filter_map(|file| value(&read(file)?, self.key));
        each.max().map_or(self.kept, |now| now.max(self.kept))
    }

    fn keep(&mut self) {
        self.kept = self.now();
    }
}

fn value(text: &str, key: Option<&str>) -> Option<u64> {
    match key {
        Some(key) => number(text, key),
        None => text.trim().parse().ok(),
    }
}

/// Podman makes a group of its own in the one that it is given.
pub(super) fn with_those_below(groups: &[PathBuf]) -> Vec<PathBuf> {
    let below = |group: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(group).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        dirs.map(|entry| entry.path()).collect()
    };
    groups
        .iter()
        .flat_map(|group| std::iter::once(group.clone()).chain(below(group)))
        .collect()
}

/// The least of the limits that stand in these files; `max` is none.
fn least(groups: &[PathBuf], files: &[&str]) -> Option<u64> {
    /// Version 1 writes "no limit" as the largest number of whole pages.
    const NONE: u64 = 1 << 62;
    (groups.iter())
        .flat_map(|group| files.iter().map(|file| group.join(file)))
        .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
        .filter(|limit| *limit < NONE)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_for_memory_name_whose_it_was() {
        for (limit, events, before, after) in [
            (
                "memory.max",
                "memory.events",
                "max 0\noom 0\noom_kill 0\n",
                "max 3\noom 1\noom_kill 1\n",
            ),
            (
                "memory.limit_in_bytes",
                "memory.oom_control",
                "under_oom 0\noom_kill 0\n",
                "under_oom 0\noom_kill 1\n",
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let put = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
            put(limit, "67108864\n");
            put(events, before);
            if events == "memory.oom_control" {
                put("memory.failcnt", "0\n");
                put("memory.max_usage_in_bytes", "40000000\n");
            }
            let mut limits = Limits::of(&[dir.path().to_owned()], &[]);
            assert_eq!((limits.memory_kill(), limits.reached()), (None, vec![]));
            put(events, after);
            if events == "memory.oom_control" {
                let machine = Cause::Memory { limit_bytes: None };
                assert_eq!(limits.memory_kill(), Some(machine));
                put("memory.max_usage_in_bytes", "67043328\n");
            }
            limits.keep();
            let limit_bytes = Some(64 << 20);
            // The group is gone, what it had counted is not.
            put(events, "");
            assert_eq!(limits.memory_kill(), Some(Cause::Memory { limit_bytes }));
            assert_eq!(limits.reached(), [Limit::Memory { limit_bytes }]);
            assert_eq!(limits.reached(), []);
        }
    }

    #[test]
    fn refused_forks_are_told_once_a_life_also_below_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("libpod-1");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("pids.max"), "16\n").unwrap();
        fs::write(below.join("pids.events"), "max 7\n").unwrap();
        let groups = [dir.path().to_owned()];
        let mut limits = Limits::of(&groups, &[]);
        assert_eq!(limits.alarms().count(), 1);
        assert_eq!(limits.reached(), [Limit::Pids { most: Some(16) }]);
        assert_eq!((limits.reached(), limits.alarms().count()), (vec![], 0));
        let mut again = Limits::of(&groups, &[Limit::Pids { most: None }]);
        assert_eq!(again.reached(), []);
    }
}
