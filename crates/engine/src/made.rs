//! The common steps of all engines: note first, make, undo on failure; and the cell they hand out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::error::{Doing, Error, Result, refused};
use crate::identity::Identity;
use crate::process::{self, Process};
use crate::{Cell, CellProcess, CellSpec, EngineError, marks, note, programs};
use host::file::gone;

/// A payload as its engine made it.
pub(crate) struct Payload {
    pub(crate) pid: i32,
    /// Where the payload is a child of this process.
    pub(crate) child: Option<Child>,
    /// A process of the engine's that stays as long as the payload and is a child of this process.
    pub(crate) helper: Option<Child>,
}

/// Removes an engine's own state of a cell, but no processes; may be called again and on half a cell.
pub(crate) type Wipe = fn(&dyn Identity) -> Result<()>;

/// The log of engine and payload in a cell's private directory.
pub fn log_file(work_dir: &Path) -> PathBuf {
    work_dir.join("log")
}

/// The log of a cell.
pub(crate) fn log(cell: &dyn Identity) -> PathBuf {
    log_file(cell.work_dir())
}

/// The directory with the bundle, the runtime's state and the like; removed as a whole.
pub(crate) fn state(cell: &dyn Identity) -> PathBuf {
    cell.work_dir().join("state")
}

/// A private directory of the cell for managers that refuse those of more than some characters, as podman does from 50 on: not below the
/// cell's own; the name follows from the cell, so that it is found again.
pub(crate) fn home(cell: &dyn Identity) -> PathBuf {
    let base = if programs::is_root() {
        "/run"
    } else {
        "/dev/shm"
    };
    let name = format!("{}/{}", cell.work_dir().display(), cell.id());
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Path::new(base).join(format!("timecell-{hash:016x}"))
}

/// The root filesystem as an archive, for managers that want an image.
pub(crate) fn pack(spec: &CellSpec) -> Result<PathBuf> {
    let archive = state(spec).join("rootfs.tar");
    fs::create_dir_all(state(spec))?;
    let tar = programs::find("tar").ok_or("`tar` is not installed")?;
    let mut pack = Command::new(tar);
    pack.arg("--create")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(&spec.rootfs)
        .arg(".");
    process::run_quiet(&mut pack, &log(spec))?;
    Ok(archive)
}

/// An error that names engine and deed.
pub(crate) fn error(cell: &dyn Identity, doing: &str, source: impl Into<Error>) -> EngineError {
    EngineError {
        engine: cell.engine(),
        doing: doing.to_owned(),
        source: source.into(),
    }
}

/// Writes the note, makes the cell, and undoes everything if that fails.
pub(crate) fn create(
    spec: &CellSpec,
    make: impl FnOnce() -> Result<Payload>,
    wipe: Wipe,
) -> Result<Box<dyn Cell>, EngineError> {
    const DOING: &str = "create the cell";
    check_given(spec).map_err(|cause| error(spec, DOING, cause))?;
    note::write(spec).map_err(|cause| error(spec, DOING, cause))?;
    match make() {
        Ok(payload) => Ok(Box::new(Made {
            spec: spec.clone(),
            pid: payload.pid,
            process: Process::of(payload.pid),
            child: payload.child,
            helper: payload.helper,
            wipe,
            removed: false,
        })),
        Err(cause) => Err(error(spec, DOING, undone(spec, wipe, cause))),
    }
}

/// Clears away a cell that could not be made for this reason, and adds the parts that could not be cleared.
pub(crate) fn undone(cell: &dyn Identity, wipe: Wipe, source: Error) -> Error {
    match clear(cell, wipe) {
        Ok(()) => source,
        Err(left) => source.noted(format!("; and afterwards {left}")),
    }
}

/// Kills every process of a cell and removes everything else of it but its log.
pub(crate) fn clear(cell: &dyn Identity, wipe: Wipe) -> Result<()> {
    marks::kill_of(cell)?;
    finish(cell, wipe)
}

/// Removes the rest once the processes have ended.
pub(crate) fn finish(cell: &dyn Identity, wipe: Wipe) -> Result<()> {
    wipe(cell)?;
    remove_dir(&state(cell))?;
    Ok(note::remove(cell.work_dir())?)
}

/// Removes a directory with all it holds; fine if there is none.
pub(crate) fn remove_dir(dir: &Path) -> Result<()> {
    gone(fs::remove_dir_all(dir)).doing(|| format!("{} cannot be removed", dir.display()))
}

fn check_given(spec: &CellSpec) -> Result<()> {
    let program = spec.rootfs.join("timecell");
    if !program.is_file() {
        return Err(refused!(
            "{} is missing; the root filesystem of a cell holds the timecell binary",
            program.display()
        ));
    }
    if !spec.shared.is_dir() {
        return Err(refused!(
            "the shared directory {} is missing",
            spec.shared.display()
        ));
    }
    for device in &spec.rights.devices {
        if !device.exists() {
            return Err(refused!("the device {} is missing", device.display()));
        }
    }
    Ok(())
}

/// A cell that was made.
struct Made {
    spec: CellSpec,
    pid: i32,
    /// `None` if the payload had ended before it could be looked at.
    process: Option<Process>,
    child: Option<Child>,
    helper: Option<Child>,
    wipe: Wipe,
    removed: bool,
}

impl Cell for Made {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn processes(&self) -> Vec<CellProcess> {
        let home = home(&self.spec);
        marks::belonging(&self.spec, &home)
            .into_iter()
            .filter(|pid| *pid != self.pid)
            .map(|pid| CellProcess {
                pid,
                name: host::process::name(pid).unwrap_or_default(),
            })
            .collect()
    }

    fn log_tail(&self) -> String {
        process::tail(&log(&self.spec))
    }

    fn remove(&mut self) -> Result<(), EngineError> {
        if self.removed {
            return Ok(());
        }
        let mut undo = || -> Result<()> {
            if let Some(child) = &mut self.child {
                // As for the processes that are not our children.
                let _ = host::sched::bandwidth::release(self.pid);
                // Only reaping right here frees the pid, so no other process can be hit.
                let _ = child.kill();
                child.wait()?;
            } else if let Some(process) = self.process {
                process.kill()?;
            }
            if let Some(helper) = &mut self.helper {
                let _ = helper.kill();
                helper.wait()?;
            }
            finish(&self.spec, self.wipe)
        };
        undo().map_err(|cause| error(&self.spec, "remove the cell", cause))?;
        self.removed = true;
        Ok(())
    }
}
