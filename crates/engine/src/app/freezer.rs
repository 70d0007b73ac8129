//! Freezing and thawing all of a cell's processes by the freezer of its cgroups. No signal is sent: nothing in the cell can
//! see it, refuse it or undo it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use host::cgroup::Cgroups;
use host::file::at;

use super::spec::AppSpec;

use crate::error::{Result, refused};

/// How long the last process may need to freeze: one in the middle of a system call finishes it first.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the freezer of version 1 may take before it is started again. Where a process executes a program, its other
/// threads are killed first, but one that is already frozen does not die, and the process waits for it without ever freezing; only a thaw ends that.
/// A process that is merely in a long system call loses nothing by it.
const ASK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
enum Freezer {
    V1(PathBuf),
    /// For an enclosed cell, the groups inside the outer one, which the engine must not freeze or thaw.
    V2(Vec<PathBuf>),
}

/// A cell that is being frozen, if need be by another thread than the one that holds the cell.
#[derive(Debug, Clone)]
pub struct Freezing {
    freezer: Freezer,
    began: Instant,
    asked: Instant,
}

impl Freezing {
    /// Asks the kernel to freeze the cell.
    ///
    /// # Errors
    /// Where there is no freezer.
    pub(super) fn begin(spec: &AppSpec) -> Result<Freezing> {
        let freezer = find(spec)?;
        freezer.set(true)?;
        let now = Instant::now();
        Ok(Freezing {
            freezer,
            began: now,
            asked: now,
        })
    }

    /// Waits for at most `within` until the last process is frozen; returns whether it is.
    ///
    /// # Errors
    /// When a process is not frozen 5 s after the start; then the cell is thawed.
    pub fn wait(&mut self, within: Duration) -> Result<bool> {
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
                return Err(refused!(
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

    /// As [`Freezing::wait`] to the end, or until it is `unwanted`: then the cell is thawed, and `false` is returned.
    ///
    /// # Errors
    /// As [`Freezing::wait`].
    pub fn finish(mut self, unwanted: &AtomicBool) -> Result<bool> {
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

/// Freezes the cell; returns when the last of its processes is frozen.
///
/// # Errors
/// Where there is no freezer, or a process does not freeze in time; then the cell is thawed.
pub(super) fn freeze(spec: &AppSpec) -> Result<()> {
    let mut freezing = Freezing::begin(spec)?;
    while !freezing.wait(PATIENCE)? {}
    Ok(())
}

/// Thaws the cell; fine if it was not frozen.
///
/// # Errors
/// Where there is no freezer.
pub(super) fn thaw(spec: &AppSpec) -> Result<()> {
    find(spec)?.set(false)
}

/// As [`thaw`], where there is anything to thaw: on version 1 a frozen process cannot even die.
pub(crate) fn thaw_if_there(cgroups: &Cgroups, id: &str) {
    // On version 2 it does, even if others froze it.
    if let Some(mount) = cgroups.v1_mount("freezer") {
        let dir = mount.point.join(id);
        if dir.exists() {
            // A process that is not thawed does not end, and that is reported.
            let _ = Freezer::V1(dir).set(false);
        }
    }
}

fn find(spec: &AppSpec) -> Result<Freezer> {
    let cgroups = host::cgroup::detect()?;
    find_in(&cgroups, spec).ok_or_else(|| {
        refused!(
            "there is no freezer ({}); mount one with `mkdir -p /sys/fs/cgroup/freezer && mount -t cgroup -o freezer none /sys/fs/cgroup/freezer`",
            cgroups.layout()
        )
    })
}

fn find_in(cgroups: &Cgroups, spec: &AppSpec) -> Option<Freezer> {
    if let Some(mount) = cgroups.v1_mount("freezer") {
        return Some(Freezer::V1(mount.point.join(&spec.id)));
    }
    let v2 = cgroups.v2.as_ref()?;
    let own = spec.outer_group_at(&v2.point);
    let below = match spec.is_enclosed {
        true => crate::cgroups::groups_below(&own),
        false => Vec::new(),
    };
    // Where there is none below, there is nobody to freeze, and an attempt fails: the group around it is somebody else's.
    Some(Freezer::V2(match (spec.is_enclosed, below.is_empty()) {
        (false, _) => vec![own],
        (true, true) => vec![own.join("cell")],
        (true, false) => below,
    }))
}

impl Freezer {
    fn set(&self, frozen: bool) -> Result<()> {
        match self {
            Freezer::V1(dir) => {
                let text = if frozen { "FROZEN" } else { "THAWED" };
                write(&dir.join("freezer.state"), text)
            }
            Freezer::V2(dirs) => {
                let text = if frozen { "1" } else { "0" };
                let mut each = dirs.iter();
                each.try_for_each(|dir| write(&dir.join("cgroup.freeze"), text))
            }
        }
    }

    fn is_frozen(&self) -> bool {
        let says = |file: PathBuf, line: &str| {
            host::file::text(file).is_ok_and(|text| text.lines().any(|each| each == line))
        };
        match self {
            Freezer::V1(dir) => says(dir.join("freezer.state"), "FROZEN"),
            Freezer::V2(dirs) => {
                let mut each = dirs.iter();
                each.all(|dir| says(dir.join("cgroup.events"), "frozen 1"))
            }
        }
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    Ok(fs::write(file, text).map_err(at(file))?)
}
