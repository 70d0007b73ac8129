//! Stopping all of a cell's processes where they stand, and letting them go on, by the freezer of its cgroups. No
//! signal is sent: nothing in the cell can see it, refuse it or undo it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use host::cgroup::Cgroups;

/// How long the last process may need to stop: one in the midst of a system call finishes it first.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the freezer of version 1 is given before it begins anew. Where a process executes a program, its other
/// threads are killed first, but one that is already frozen does not die, and the process waits for it without ever
/// standing still; only a thaw ends that. A process that is merely within a long system call loses nothing by it.
const ASK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
enum Freezer {
    V1(PathBuf),
    V2(PathBuf),
}

/// A cell that is being stopped: by another thread than the one that has the cell, if need be.
#[derive(Debug, Clone)]
pub struct Freezing {
    freezer: Freezer,
    began: Instant,
    asked: Instant,
}

impl Freezing {
    /// Asks the kernel to stop the cell.
    ///
    /// # Errors
    /// Where there is no freezer.
    pub(super) fn begin(id: &str) -> Result<Freezing, String> {
        let freezer = find(id)?;
        freezer.set(true)?;
        let now = Instant::now();
        Ok(Freezing {
            freezer,
            began: now,
            asked: now,
        })
    }

    /// Waits until the last process stands still, for so long at most; whether it does.
    ///
    /// # Errors
    /// When a process has not stopped within 5 s since the beginning; then the cell goes on.
    pub fn wait(&mut self, within: Duration) -> Result<bool, String> {
        let until = Instant::now() + within;
        while !self.freezer.is_frozen() {
            if self.asked.elapsed() > ASK_AGAIN && matches!(self.freezer, Freezer::V1(_)) {
                self.freezer.set(false)?;
                std::thread::sleep(Duration::from_millis(1));
                self.freezer.set(true)?;
                self.asked = Instant::now();
            }
            if self.began.elapsed() > PATIENCE {
                self.freezer.set(false)?;
                return Err(format!(
                    "a process did not stop within {} s",
                    PATIENCE.as_secs()
                ));
            }
            if Instant::now() > until {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(true)
    }

    /// As [`Freezing::wait`] to the end, or until it is `unwanted`: then the cell goes on, and `false` is returned.
    ///
    /// # Errors
    /// As [`Freezing::wait`].
    pub fn finish(mut self, unwanted: &AtomicBool) -> Result<bool, String> {
        const STEP: Duration = Duration::from_millis(2);
        while !self.wait(STEP)? {
            if unwanted.load(Ordering::SeqCst) {
                break;
            }
        }
        // Asked once more: it may have become so between the kernel's word and here.
        if unwanted.load(Ordering::SeqCst) {
            self.freezer.set(false)?;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Stops the cell; returns when the last of its processes stands still.
///
/// # Errors
/// Where there is no freezer, or a process does not stop in time; then the cell goes on.
pub(super) fn freeze(id: &str) -> Result<(), String> {
    let mut freezing = Freezing::begin(id)?;
    while !freezing.wait(PATIENCE)? {}
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
