//! Removing the cgroups of a cell with all processes in them: half-made containers carry no other mark. Every engine puts
//! them under `/<id>` of each hierarchy or, in version 2, of a cpuset partition at its top.
//!
//! A process that still runs in them is part of the cell and is killed: a container whose creation was cut short has a
//! process that bears no mark yet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use host::cgroup::below as groups_below;
use host::cgroup::processes;
use host::isolate::PARTITION_PREFIX;
use host::root::Root;

use crate::error::{Doing, Result};
use crate::process::{Process, kill_each};

/// How long the kernel may need to let go of a group whose processes have ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Removes `/<id>` with everything below in every hierarchy.
pub(crate) fn remove(id: &str) -> Result<()> {
    for dir in places(id) {
        // Nothing in it, as a rule: then there is nothing to look for either.
        if fs::remove_dir(&dir).is_ok() {
            continue;
        }
        kill_tree(&dir)?;
        remove_tree(&dir).doing(|| format!("cgroup {}", dir.display()))?;
    }
    Ok(())
}

/// The groups of a cell that are there.
pub(crate) fn places(id: &str) -> Vec<PathBuf> {
    let Ok(cgroups) = host::cgroup::detect() else {
        return Vec::new();
    };
    let mut places: Vec<PathBuf> = (cgroups.v1.iter().chain(&cgroups.v2))
        .map(|mount| mount.point.join(id))
        .collect();
    let v2 = cgroups.v2.iter();
    places.extend(
        v2.flat_map(|mount| partitions(&mount.point))
            .map(|top| top.join(id)),
    );
    // Without root, a runtime can only make groups below its own.
    places.extend(cgroups.v2_group(&Root::live(), 0).map(|own| own.join(id)));
    places.retain(|place| place.is_dir());
    places
}

/// A process that runs in the groups of this id, and the group in which it is.
pub(crate) fn occupant(id: &str) -> Option<(i32, PathBuf)> {
    places(id).into_iter().find_map(first_in)
}

/// Whether any process runs in groups whose ids begin with `prefix`.
pub fn any_lives(prefix: &str) -> bool {
    of_prefix(prefix)
        .into_iter()
        .any(|group| first_in(group).is_some())
}

/// Removes the groups whose ids begin with `prefix`, of cells of which nothing runs any more.
///
/// # Errors
/// The system's error about the first that stays.
pub fn remove_empty(prefix: &str) -> Result<()> {
    let groups = of_prefix(prefix).into_iter();
    let mut empty = groups.filter(|group| first_in(group.clone()).is_none());
    empty.try_for_each(|group| remove_tree(&group).doing(|| format!("cgroup {}", group.display())))
}

fn of_prefix(prefix: &str) -> Vec<PathBuf> {
    let Ok(cgroups) = host::cgroup::detect() else {
        return Vec::new();
    };
    let mounts = cgroups.v1.iter().chain(&cgroups.v2);
    mounts
        .flat_map(|mount| named_so(&mount.point, prefix))
        .collect()
}

/// Memory that groups whose ids begin with `prefix` hold and that cannot be reclaimed, bytes: pages that processes have written to, and files in
/// memory. Cached files of disks are left out, as the kernel reclaims those when somebody needs room; so is the kernel's own memory for the
/// groups.
pub fn memory_taken(prefix: &str) -> u64 {
    let Ok(cgroups) = host::cgroup::detect() else {
        return 0;
    };
    let v1 = cgroups.v1_mount("memory");
    let Some(mount) = v1.or(cgroups.v2.as_ref()) else {
        return 0;
    };
    let stats = named_so(&mount.point, prefix).into_iter();
    stats
        .filter_map(|group| host::file::text(group.join("memory.stat")).ok())
        .map(|stat| taken(&stat, v1.is_some()))
        .fold(0, u64::saturating_add)
}

/// Of a group and those below it, by its `memory.stat`.
fn taken(stat: &str, is_v1: bool) -> u64 {
    let wanted = match is_v1 {
        true => ["total_rss", "total_shmem"],
        false => ["anon", "shmem"],
    };
    let lines = stat.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(key, _)| wanted.contains(key))
        .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}

/// The cpuset partitions at the top of a hierarchy: cells lie in them as they do at the top.
fn partitions(top: &Path) -> Vec<PathBuf> {
    let mut groups = groups_below(top);
    groups.retain(|group| {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PARTITION_PREFIX)
    });
    groups
}

/// The groups of cells in a hierarchy whose names begin with `prefix`.
fn named_so(top: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut groups = groups_below(top);
    groups.extend(partitions(top).iter().flat_map(|top| groups_below(top)));
    groups.retain(|group| {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix)
    });
    groups
}

fn first_in(dir: PathBuf) -> Option<(i32, PathBuf)> {
    match processes(&dir).first().copied() {
        Some(pid) => Some((pid, dir)),
        None => groups_below(&dir).into_iter().find_map(first_in),
    }
}

fn kill_tree(dir: &Path) -> Result<()> {
    let own = std::process::id().cast_signed();
    let mut pids = host::cgroup::listed_with_those_below(dir, "cgroup.procs");
    // 0 stands for a process of another pid namespace.
    pids.retain(|pid| *pid > 1 && *pid != own);
    let found: Vec<Process> = pids.into_iter().filter_map(Process::of).collect();
    kill_each(&found).into_iter().next().map_or(Ok(()), Err)
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    for group in groups_below(dir) {
        remove_tree(&group)?;
    }
    let began = Instant::now();
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < PATIENCE =>
            {
                kill_in(dir);
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

fn kill_in(dir: &Path) {
    let own = std::process::id().cast_signed();
    for pid in processes(dir) {
        // 0 is a process of another pid namespace, and a signal to it would reach our own group.
        if pid > 1 && pid != own {
            // SAFETY: a process in a cgroup that bears the cell's own name.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_in_partitions_are_found_like_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let inside = "timecell-cpus-m.1/timecell-cell-m.a";
        for group in [
            "timecell-cell-m.b",
            inside,
            "timecell-cell-n.a",
            "other/timecell-cell-m.c",
        ] {
            fs::create_dir_all(dir.path().join(group)).unwrap();
        }
        let mut found = named_so(dir.path(), "timecell-cell-m.");
        found.sort();
        assert_eq!(
            found,
            ["timecell-cell-m.b", inside].map(|group| dir.path().join(group))
        );
    }

    #[test]
    fn what_the_kernel_can_take_back_is_not_taken() {
        let v1 = "cache 4096\nrss 1\nshmem 2\ntotal_cache 9999\ntotal_rss 100\ntotal_rss_huge 7\ntotal_shmem 20\n";
        assert_eq!(taken(v1, true), 120);
        let v2 = "anon 100\nfile 5000\nkernel 9\nshmem 20\nanon_thp 8\n";
        assert_eq!(taken(v2, false), 120);
        assert_eq!(taken("", false), 0);
    }
}
