//! Removing the cgroups of a cell with whatever runs in them: half-made containers carry no other mark. Every
//! engine is told to put them under `/<id>` of each hierarchy.
//!
//! What still runs in them is part of the cell and is killed: a container whose creation was cut short has a
//! process that bears no mark yet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::root::Root;

use crate::process::Process;

/// How long the kernel may need to let go of a group whose processes have ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Removes `/<id>` with everything below in every hierarchy.
pub(crate) fn remove(id: &str) -> Result<(), String> {
    for dir in places(id) {
        // Nothing in it, as a rule: then there is nothing to look for either.
        if fs::remove_dir(&dir).is_ok() {
            continue;
        }
        kill_tree(&dir)?;
        remove_tree(&dir).map_err(|error| format!("cgroup {}: {error}", dir.display()))?;
    }
    Ok(())
}

/// The groups of a cell that are there.
pub(crate) fn places(id: &str) -> Vec<PathBuf> {
    let Ok(cgroups) = host::cgroup::detect() else {
        return Vec::new();
    };
    let mut places: Vec<PathBuf> = cgroups
        .v1
        .iter()
        .chain(&cgroups.v2)
        .map(|mount| mount.point.join(id))
        .collect();
    // Without root, a runtime can only make groups below its own.
    places.extend(cgroups.v2_group(&Root::live(), 0).map(|own| own.join(id)));
    places.retain(|place| place.is_dir());
    places
}

/// A process that runs in the groups of this id, and the group in which it is.
pub(crate) fn occupant(id: &str) -> Option<(i32, PathBuf)> {
    places(id).into_iter().find_map(first_in)
}

/// Whether any process runs in groups whose ids begin so.
pub fn any_lives(prefix: &str) -> bool {
    let Ok(cgroups) = host::cgroup::detect() else {
        return false;
    };
    let mounts = cgroups.v1.iter().chain(&cgroups.v2);
    mounts
        .flat_map(|mount| groups_below(&mount.point))
        .filter(|group| {
            let name = group.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(prefix)
        })
        .any(|group| first_in(group).is_some())
}

fn first_in(dir: PathBuf) -> Option<(i32, PathBuf)> {
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    match listed.lines().find_map(|line| line.parse().ok()) {
        Some(pid) => Some((pid, dir)),
        None => groups_below(&dir).into_iter().find_map(first_in),
    }
}

fn kill_tree(dir: &Path) -> Result<(), String> {
    for group in groups_below(dir) {
        kill_tree(&group)?;
    }
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    for pid in listed.lines().filter_map(|line| line.parse().ok()) {
        // 0 stands for a process of another pid namespace.
        if pid > 1
            && pid != std::process::id().cast_signed()
            && let Some(process) = Process::of(pid)
        {
            process.kill()?;
        }
    }
    Ok(())
}

fn groups_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
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
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    for pid in listed.lines().filter_map(|line| line.parse::<i32>().ok()) {
        // 0 is a process of another pid namespace, and a signal to it would reach our own group.
        if pid > 1 && pid != own {
            // SAFETY: a process in a cgroup that bears the cell's own name.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}
