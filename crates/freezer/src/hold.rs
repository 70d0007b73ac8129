//! The group that is held: one around the cell's, which no engine creates, moves or thaws.
//!
//! In the tree of version 2, and at the same place in those of version 1, a cell has the group `/<id>`. A cell that is
//! held has its engine's group below: `/<id>/cell` where the path is ours to choose (bare, embedded, crun, runc), and
//! the group that podman creates below its `--cgroup-parent /<id>`. So the held group is `/<id>` of version 2, on every
//! machine:
//!
//! - `podman pause`, an OCI runtime's `pause`, and the freeze of a cell that is shed write to the group below. A process
//!   runs only if no group above it is frozen: two nested freezers do not undo each other. On a hybrid machine those use
//!   the freezer of version 1, a separate mechanism that does not interfere with this one.
//! - `exec` into the container puts processes into the group below, where they are held like the rest. With the hold
//!   beside the engine's tree and processes moved into it, they would escape.
//! - A cell that sees its cgroup at all sees the one below as the root of its cgroup namespace.
//! - Limits at `/<id>` still hold, for the groups below too; `/<id>` has no processes of its own, as version 2 demands
//!   of a group that passes controllers down. With podman its monitor lies below `/<id>` too and stops with the
//!   container: it reports its end when the group is next thawed.
//! - Removing a cell's groups removes `/<id>` with everything below.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::cgroup::{self, Cgroups};
use host::file::there;
use host::root::Root;

/// The name of the engine's group in the held one.
pub const INNER: &str = "cell";

/// Between attempts to remove a group.
const AGAIN: Duration = Duration::from_millis(5);

/// Why a group cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// A feature that the machine lacks.
    #[error("{0}")]
    Missing(String),
    /// No cgroup v2.
    #[error(
        "cgroup v2 is not mounted; mount it with `mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified`"
    )]
    NoV2,
    /// A kernel older than 5.2.
    #[error("{}: there is no freezer; Linux 5.2 or later is needed", .0.display())]
    NoFreezer(PathBuf),
    /// Not a name.
    #[error("`{0}` is not a valid group name")]
    Name(String),
    /// The system's error.
    #[error("{}: {reason}", path.display())]
    Group {
        /// The group.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
}

/// Where held groups are created: the top of the tree of version 2, if this kernel has the freezer there.
///
/// # Errors
/// [`HoldError::Missing`].
pub fn top(root: &Root) -> Result<PathBuf, HoldError> {
    host::enforcers::freezer(root).map_err(|why| HoldError::Missing(why.to_string()))
}

/// Whether there are processes in this group or below it; false for one that is gone.
pub fn is_populated(group: &Path) -> bool {
    let events = host::file::text(group.join("cgroup.events")).unwrap_or_default();
    events.lines().any(|line| line == "populated 1")
}

/// The group around a cell's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    path: PathBuf,
    id: String,
}

impl Hold {
    /// The held group of the cell with this id, created if it is not there.
    ///
    /// # Errors
    /// [`HoldError`]; a group that could not be used is not left behind.
    pub fn make(cgroups: &Cgroups, id: &str) -> Result<Hold, HoldError> {
        let is_name = !id.is_empty() && !id.starts_with('.') && !id.contains(['/', '\0', '\n']);
        if !is_name {
            return Err(HoldError::Name(id.to_owned()));
        }
        let top = &cgroups.v2.as_ref().ok_or(HoldError::NoV2)?.point;
        let path = top.join(id);
        let made = fs::create_dir(&path);
        let is_new = made.is_ok();
        if let Err(reason) = there(made) {
            return Err(HoldError::Group { path, reason });
        }
        if !path.join("cgroup.freeze").exists() {
            if is_new {
                let _ = fs::remove_dir(&path);
            }
            return Err(HoldError::NoFreezer(path));
        }
        Ok(Hold {
            path,
            id: id.to_owned(),
        })
    }

    /// The directory of the group that a keeper holds.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the engine's group, from the root of every hierarchy: for an OCI bundle's `cgroupsPath`.
    pub fn inner(&self) -> String {
        format!("/{}/{INNER}", self.id)
    }

    /// Removes it with the empty groups in it; fine if it is gone.
    ///
    /// # Errors
    /// EBUSY while a process is in it.
    pub fn remove(&self) -> Result<(), HoldError> {
        remove(&self.path, Duration::ZERO)
    }
}

/// Removes a held group with the empty groups in it; fine if it is gone. Killed processes stay in it until they have
/// ended: waits for that up to `patience`.
///
/// # Errors
/// EBUSY while a process is in it.
pub fn remove(group: &Path, patience: Duration) -> Result<(), HoldError> {
    let until = Instant::now() + patience;
    loop {
        match cgroup::remove_empty(group) {
            Ok(()) => return Ok(()),
            Err(error) if is_busy(&error) && Instant::now() < until => std::thread::sleep(AGAIN),
            Err(reason) => {
                let path = group.to_owned();
                return Err(HoldError::Group { path, reason });
            }
        }
    }
}

/// Whether something is in it: in a control group processes, in any other directory files.
fn is_busy(error: &io::Error) -> bool {
    use io::ErrorKind::{DirectoryNotEmpty, ResourceBusy};
    matches!(error.kind(), ResourceBusy | DirectoryNotEmpty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::cgroup::Mount;

    fn at(point: &Path) -> Cgroups {
        Cgroups {
            v1: Vec::new(),
            v2: Some(Mount {
                controllers: Vec::new(),
                point: point.to_owned(),
                root: "/".to_owned(),
            }),
        }
    }

    #[test]
    fn a_group_is_removed_with_those_in_it_once_it_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("g");
        let inner = group.join(INNER);
        fs::create_dir_all(&inner).unwrap();
        let inside = inner.join("inside");
        fs::write(&inside, "").unwrap();
        let error = remove(&group, Duration::ZERO).unwrap_err();
        assert!(matches!(error, HoldError::Group { .. }), "{error}");
        let leaves = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            fs::remove_file(inside).unwrap();
        });
        assert!(remove(&group, Duration::from_secs(20)).is_ok());
        leaves.join().unwrap();
        assert!(!group.exists());
        assert!(remove(&group, Duration::ZERO).is_ok());
    }

    #[test]
    fn where_nothing_can_be_held_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let cgroups = at(dir.path());
        // A directory is no group: it has no freezer.
        let error = Hold::make(&cgroups, "c").unwrap_err();
        assert!(matches!(error, HoldError::NoFreezer(_)), "{error}");
        assert!(!dir.path().join("c").exists());
        for id in ["", "..", "a/b", ".hidden", "a\nb"] {
            let error = Hold::make(&cgroups, id).unwrap_err();
            assert!(matches!(error, HoldError::Name(_)), "{id}: {error}");
        }
        let none = Cgroups {
            v1: Vec::new(),
            v2: None,
        };
        assert!(matches!(Hold::make(&none, "c"), Err(HoldError::NoV2)));
        let nowhere = at(Path::new("/nowhere"));
        let error = Hold::make(&nowhere, "c").unwrap_err();
        assert!(matches!(error, HoldError::Group { .. }), "{error}");
    }
}
