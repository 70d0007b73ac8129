//! The kernel's counts for a cell's limits: processes that it killed for memory, and forks that it refused.
//!
//! The counters go with the cell's groups, which its removal takes away, so the last reading is kept.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

use host::cgroup;
use host::process::is_dying;

use super::outside::{all, number, read};
use crate::cause::{Cause, ForMemory};
use crate::state::Limit;

/// The counters of one life of a cell.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Processes killed for lack of memory anywhere.
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
    /// Whether refused forks are counted and not signalled: version 1 of control groups does so.
    silent: bool,
    /// Kills that were counted when it was last looked at, and when the last of them was seen, CLOCK_MONOTONIC ns.
    seen_kills: u64,
    last_kill_ns: Option<i64>,
    /// The cell's first process, and whether it was seen dying of a kill that was just counted.
    program: Option<i32>,
    doomed: bool,
    /// Whether the program may have ended for memory; `None`: it has not ended.
    ended_for_memory: Option<bool>,
}

/// A kill that was seen so shortly before the end of a program may have ended it, ns: the kernel counts a kill before it
/// sends the signal, and a large process takes its time to go. One whose budget is used up takes many periods, and is known
/// by its dying.
const JUST_NS: i64 = 1_000_000_000;

impl Limits {
    /// With this process as its program.
    pub(super) fn of_program(mut self, pid: i32) -> Limits {
        self.program = Some(pid);
        self
    }

    /// For these groups and those below them, where engines put theirs; `told`: the limits already reported for this
    /// life.
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
            silent: (groups.iter()).any(|group| {
                group.join("pids.events").exists() && !group.join("cgroup.controllers").exists()
            }),
            seen_kills: 0,
            last_kill_ns: None,
            program: None,
            doomed: false,
            ended_for_memory: None,
        }
    }

    /// Its program runs: it has not ended of the kills counted up to now.
    pub(super) fn outlived(mut self) -> Limits {
        self.seen_kills = self.kills.now();
        self
    }

    /// The program has ended: the present counts stand when its groups are gone. Nothing is left to wake anybody for: files
    /// of groups that are gone are always "changed".
    pub(super) fn keep(&mut self, now_ns: i64) {
        self.kills.keep();
        self.own.keep();
        self.peak.keep();
        self.forks.keep();
        self.forks.files.clear();
        // The first time: processes killed later are those that the program has left behind.
        if self.ended_for_memory.is_none() {
            self.look_at_kills(now_ns);
            self.ended_for_memory = Some(self.doomed || self.has_just_killed(now_ns));
        }
    }

    fn look_at_kills(&mut self, now_ns: i64) {
        let kills = self.kills.now();
        if kills > self.seen_kills {
            self.seen_kills = kills;
            self.last_kill_ns = Some(now_ns);
        }
        if !self.doomed && self.has_just_killed(now_ns) {
            self.doomed = self.program.is_some_and(is_dying);
        }
    }

    fn has_just_killed(&self, now_ns: i64) -> bool {
        (self.last_kill_ns).is_some_and(|at_ns| now_ns - at_ns <= JUST_NS)
    }

    /// Whether and why the kernel may have killed the program, which has ended, for memory: another process of the cell may
    /// have been killed long before.
    pub(super) fn memory_kill(&self) -> Option<Cause> {
        (self.ended_for_memory == Some(true)).then(|| Cause::Memory(self.for_memory()))
    }

    fn for_memory(&self) -> ForMemory {
        ForMemory {
            limit_bytes: (self.memory_bytes)
                .filter(|limit| self.own.now() > 0 || self.peak.now() >= limit - limit / 8),
        }
    }

    /// The limits that were reached and are reported for the first time.
    pub(super) fn reached(&mut self, now_ns: i64) -> Vec<Limit> {
        self.look_at_kills(now_ns);
        let memory = (self.kills.now() > 0).then(|| Limit::Memory(self.for_memory()));
        let forks = (self.forks.look() > 0).then_some(Limit::Pids { most: self.pids });
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

    /// Whether to look for refused forks, for which nobody is woken.
    pub(super) fn forks_are_silent(&self) -> bool {
        self.silent
    }

    /// Whether a fork was refused that was not reported.
    pub(super) fn has_refused_forks(&self) -> bool {
        let told = (self.told.iter()).any(|told| matches!(told, Limit::Pids { .. }));
        !told && self.forks.now() > 0
    }

    /// Files on which the kernel signals (POLLPRI) a refused fork.
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

    /// The same, and the files of removed groups are dropped: an engine may remove its group before the end of the
    /// program is seen. Each file is read once, which takes its signal back: a second time could take that of a later
    /// change.
    fn look(&mut self) -> u64 {
        let (kept, key) = (&mut self.kept, self.key);
        self.files.retain(|file| {
            let text = read(file);
            let now = text.as_ref().and_then(|text| value(text, key));
            *kept = now.unwrap_or(0).max(*kept);
            text.is_some()
        });
        self.kept
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
    groups
        .iter()
        .flat_map(|group| std::iter::once(group.clone()).chain(cgroup::below(group)))
        .collect()
}

/// The least of the limits in these files; `max` is no limit.
fn least(groups: &[PathBuf], files: &[&str]) -> Option<u64> {
    /// Version 1 writes "no limit" as the largest number of whole pages.
    const NONE: u64 = 1 << 62;
    (groups.iter())
        .flat_map(|group| files.iter().map(|file| group.join(file)))
        .filter_map(|path| host::file::text(path).ok()?.trim().parse().ok())
        .filter(|limit| *limit < NONE)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
            assert_eq!((limits.memory_kill(), limits.reached(1)), (None, vec![]));
            put(events, after);
            if events == "memory.oom_control" {
                let machine = Limit::Memory(ForMemory { limit_bytes: None });
                let mut other = Limits::of(&[dir.path().to_owned()], &[]);
                assert_eq!(other.reached(2), [machine]);
                put("memory.max_usage_in_bytes", "67043328\n");
            }
            limits.keep(3);
            let memory = ForMemory {
                limit_bytes: Some(64 << 20),
            };
            // The group is gone, its counts are not.
            put(events, "");
            assert_eq!(limits.memory_kill(), Some(Cause::Memory(memory)));
            assert_eq!(limits.reached(4), [Limit::Memory(memory)]);
            assert_eq!(limits.reached(5), []);
        }
    }

    #[test]
    fn a_kill_long_before_has_not_ended_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let events = dir.path().join("memory.events");
        let put = |kills: u32| fs::write(&events, format!("oom 1\noom_kill {kills}\n")).unwrap();
        let groups = [dir.path().to_owned()];
        put(1);
        let killed = |mut limits: Limits, now_ns: i64| {
            limits.keep(now_ns);
            limits.memory_kill().is_some()
        };
        let hour_ns = 3_600 * JUST_NS;
        let after = |look_ns: i64| {
            let mut limits = Limits::of(&groups, &[]);
            assert_eq!(limits.reached(look_ns).len(), 1);
            limits
        };
        assert!(killed(Limits::of(&groups, &[]), 1));
        // The kill was counted, and seen, a moment before the program was gone.
        assert!(killed(after(1), JUST_NS / 2));
        assert!(!killed(after(1), hour_ns));
        // An adopted cell had outlived the kills counted before.
        assert!(!killed(Limits::of(&groups, &[]).outlived(), 1));
        let (again, adopted) = (after(1), Limits::of(&groups, &[]).outlived());
        put(2);
        assert!(killed(again, hour_ns) && killed(adopted, hour_ns));
        // Processes that the program has left behind are killed after its end.
        let mut ended = after(1);
        put(1);
        ended.keep(hour_ns);
        put(3);
        ended.keep(hour_ns + 1);
        assert_eq!(ended.memory_kill(), None);
    }

    /// One without budget is dead only when it is given some to die with.
    #[test]
    fn a_program_that_dies_slowly_has_ended_of_the_kill_that_doomed_it() {
        let dir = tempfile::tempdir().unwrap();
        let events = dir.path().join("memory.events");
        let hour_ns = 3_600 * JUST_NS;
        let ended = |pid: i32| {
            fs::write(&events, "oom 1\noom_kill 1\n").unwrap();
            let mut limits = Limits::of(&[dir.path().to_owned()], &[]).of_program(pid);
            assert_eq!(limits.reached(1).len(), 1);
            limits.keep(hour_ns);
            limits.memory_kill().is_some()
        };
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        // Another process of the cell was killed.
        assert!(!ended(pid));
        // A process that has ended and is not waited for yet still has its flags, as one that exits has.
        child.kill().unwrap();
        let is_gone = || {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .unwrap()
                .contains(") Z ")
        };
        while !is_gone() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(ended(pid));
        child.wait().unwrap();
    }

    #[test]
    fn nobody_is_woken_for_a_program_that_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("pids.events"), "max 0\n").unwrap();
        let mut limits = Limits::of(&[dir.path().to_owned()], &[]);
        assert_eq!(limits.alarms().count(), 1);
        limits.keep(1);
        assert_eq!(limits.alarms().count(), 0);
    }

    #[test]
    fn nobody_is_woken_twice_for_a_group_that_is_gone() {
        let group = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
            .map(|root| PathBuf::from(root).join(format!("timecell-test-{}", std::process::id())))
            .into_iter()
            .find(|group| fs::create_dir(group).is_ok());
        let Some(group) = group
            .filter(|group| group.join("pids.events").exists() || fs::remove_dir(group).is_err())
        else {
            eprintln!("not tested: no group with a limit of processes can be made here");
            return;
        };
        let mut limits = Limits::of(std::slice::from_ref(&group), &[]);
        fs::remove_dir(&group).unwrap();
        assert_eq!(limits.alarms().count(), 1);
        assert_eq!(limits.reached(1), []);
        assert_eq!(limits.alarms().count(), 0);
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
        assert_eq!(limits.reached(1), [Limit::Pids { most: Some(16) }]);
        assert_eq!((limits.reached(2), limits.alarms().count()), (vec![], 0));
        let mut again = Limits::of(&groups, &[Limit::Pids { most: None }]);
        assert_eq!(again.reached(1), []);
    }
}
