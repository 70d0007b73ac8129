//! Stopping all of a cell's processes where they stand, and letting them go on, by the freezer of its cgroups. No
//! signal is sent: nothing in the cell can see it, refuse it or undo it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::cgroup::Cgroups;

/// How long the last process may need to stop: one in the midst of a system call finishes it first.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the freezer of version 1 is given before it begins anew. Where a process executes a program, its other
/// threads are killed first, but one that is already frozen does not die, and the process waits for it without ever
/// standing still; only a thaw ends that. A process that is merely within a long system call loses nothing by it.
const ASK_AGAIN: Duration = Duration::from_millis(50);

enum Freezer {
    V1(PathBuf),
    V2(PathBuf),
}

/// Stops the cell; returns when the last of its processes stands still.
///
/// # Errors
/// Where there is no freezer, or a process does not stop in time; then the cell goes on.
pub(super) fn freeze(id: &str) -> Result<(), String> {
    let freezer = find(id)?;
    freezer.set(true)?;
    let began = Instant::now();
    let mut asked = began;
    while !freezer.is_frozen() {
        if asked.elapsed() > ASK_AGAIN && matches!(freezer, Freezer::V1(_)) {
            freezer.set(false)?;
            std::thread::sleep(Duration::from_millis(1));
            freezer.set(true)?;
            asked = Instant::now();
        }
        if began.elapsed() > PATIENCE {
            freezer.set(false)?;
            return Err(format!(
                "a process did not stop within {} s",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// Lets the cell go on; fine if it was not stopped.
///
/// # Errors
/// Where there is no freezer.
pub(super) fn thaw(id: &str) -> Result<(), String> {
    find(id)?.set(false)
}

/// As [`thaw`], where there is anything to thaw: on version 1 a stopped process does not even die.
pub(crate) fn thaw_if_there(cgroups: &Cgroups, id: &str) {
    if let Some(freezer) = find_in(cgroups, id)
        && freezer.path().exists()
    {
        // What is not thawed does not end, and that is reported.
        let _ = freezer.set(false);
    }
}

fn find(id: &str) -> Result<Freezer, String> {
    let cgroups = host::cgroup::detect().map_err(|error| error.to_string())?;
    find_in(&cgroups, id).ok_or_else(|| {
        format!(
            "there is no freezer ({}); mount one with `mkdir -p /sys/fs/cgroup/freezer && mount -t cgroup -o freezer none /sys/fs/cgroup/freezer`",
            cgroups.layout()
        )
    })
}

fn find_in(cgroups: &Cgroups, id: &str) -> Option<Freezer> {
    if let Some(mount) = cgroups.v1_mount("freezer") {
        return Some(Freezer::V1(mount.point.join(id)));
    }
    let v2 = cgroups.v2.as_ref()?;
    Some(Freezer::V2(v2.point.join(id)))
}

impl Freezer {
    fn path(&self) -> &Path {
        match self {
            Freezer::V1(path) | Freezer::V2(path) => path,
        }
    }

    fn set(&self, frozen: bool) -> Result<(), String> {
        let (file, text) = match (self, frozen) {
            (Freezer::V1(dir), true) => (dir.join("freezer.state"), "FROZEN"),
            (Freezer::V1(dir), false) => (dir.join("freezer.state"), "THAWED"),
            (Freezer::V2(dir), true) => (dir.join("cgroup.freeze"), "1"),
            (Freezer::V2(dir), false) => (dir.join("cgroup.freeze"), "0"),
        };
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn is_frozen(&self) -> bool {
        match self {
            Freezer::V1(dir) => fs::read_to_string(dir.join("freezer.state"))
                .is_ok_and(|text| text.trim() == "FROZEN"),
            Freezer::V2(dir) => fs::read_to_string(dir.join("cgroup.events"))
                .is_ok_and(|text| text.lines().any(|line| line == "frozen 1")),
        }
    }
}
