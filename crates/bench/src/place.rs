//! Where a run keeps shared files while it lasts: control pages, samples, the one-file root filesystem.
//!
//! One directory on tmpfs for each coordinator, with a note of its owner. It is also the journal: through it, the next start finds and
//! removes the remains of a killed coordinator.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getppid};
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::error::failed;
use host::foreign_file;
use host::process::user;

pub(crate) const PREFIX: &str = "timecell-";
pub(crate) const OWNER: &str = "owner.json";
/// Longest note of an owner that is read: four paths and some words.
const MOST_OWNER_BYTES: u64 = 64 << 10;
pub(crate) const ISOLATION: &str = "isolation-";
/// Name of the directory in a run that its loads work in.
pub(crate) const LOAD_FILES: &str = "load-files";

/// A place's maker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub pid: i32,
    /// Start of that process in clock ticks since boot: a pid alone may have been reused.
    pub start_ticks: u64,
    /// The rt cgroup that the run made, if any.
    pub rt_group: Option<String>,
    /// The prefix of the names of the cgroup v2 groups that separate processes hold for the run, if any.
    #[serde(default)]
    pub held_groups: Option<String>,
    /// The root filesystem, if it had to be made elsewhere.
    pub rootfs: Option<PathBuf>,
    /// The network namespace that the run made for its loads, if any.
    #[serde(default)]
    pub network: Option<String>,
    /// The directory on a disk that its loads work in, if any.
    #[serde(default)]
    pub load_files: Option<PathBuf>,
    /// The directory of the run that is measured, if any.
    #[serde(default)]
    pub run: Option<PathBuf>,
    /// Why the run's directory does not hold everything measured, if the coordinator could still say so.
    #[serde(default)]
    pub unwritten: Option<String>,
}

/// The directory of one coordinator, removed on drop.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
    owner: Owner,
}

impl Place {
    /// The place of this process, unless one exists already.
    pub(crate) fn usual() -> PathBuf {
        base().join(format!("{PREFIX}{}-{}", uid(), std::process::id()))
    }

    /// Makes the directory, named after this process; others call [`new_place`](crate::sweep::new_place).
    ///
    /// # Errors
    /// When shared memory is full or not writable.
    pub(crate) fn create() -> Result<Place, BenchError> {
        let pid = std::process::id().cast_signed();
        let mut dir = Place::usual();
        for again in 2..1000 {
            if !dir.exists() {
                break;
            }
            dir.set_file_name(format!("{PREFIX}{}-{pid}-{again}", uid()));
        }
        DirBuilder::new()
            .mode(0o711)
            .create(&dir)
            .map_err(failed(&dir, "create the directory"))?;
        let place = Place {
            dir,
            owner: Owner {
                pid,
                start_ticks: start_ticks(pid).unwrap_or(0),
                ..Owner::default()
            },
        };
        place.write_owner()?;
        Ok(place)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes free where samples are kept.
    pub fn free_bytes() -> u64 {
        free_bytes(&base())
    }

    /// Notes the directory of the run: a sweep of this place writes there all that is not on record yet.
    pub(crate) fn note_run(&mut self, dir: &Path) -> Result<(), BenchError> {
        let dir = std::path::absolute(dir).map_err(failed(dir, "find the directory"))?;
        self.owner.run = Some(dir);
        self.write_owner()
    }

    /// Leaves a trial's samples behind, because its run cannot be written now.
    pub(crate) fn keep_trial(
        &mut self,
        number: u32,
        why: &record::RecordError,
    ) -> Result<(), BenchError> {
        self.owner.unwritten = Some(format!("trial {number} could not be written ({why})"));
        self.write_owner()
    }

    /// Notes the rt cgroup, before it is made, so that it can be removed after a `kill -9`.
    pub(crate) fn note_rt_group(&mut self, name: &str) -> Result<(), BenchError> {
        self.owner.rt_group = Some(name.to_owned());
        self.write_owner()
    }

    /// Notes the prefix of the names of cgroup v2 groups that other processes hold, before any is created, so that they can be removed
    /// after a `kill -9`.
    pub(crate) fn note_held_groups(&mut self, name: &str) -> Result<(), BenchError> {
        self.owner.held_groups = Some(name.to_owned());
        self.write_owner()
    }

    /// Notes the loads' network namespace, before it is made.
    pub(crate) fn note_network(&mut self, name: &str) -> Result<(), BenchError> {
        self.owner.network = Some(name.to_owned());
        self.write_owner()
    }

    /// Notes the directory that loads work in, before it is made.
    pub(crate) fn note_load_files(&mut self, dir: &Path) -> Result<(), BenchError> {
        let dir = std::path::absolute(dir).map_err(failed(dir, "find the directory"))?;
        self.owner.load_files = Some(dir);
        self.write_owner()
    }

    /// The root filesystem that all cells of this process share: our own binary and empty mount points.
    ///
    /// Beside the samples where programs may be executed there, else where the engine crate finds a place.
    pub(crate) fn rootfs(&mut self) -> Result<PathBuf, BenchError> {
        let dir = self.sub("rootfs")?;
        match engine::rootfs::prepare(&dir) {
            Err(engine::rootfs::RootfsError::NoExec(_)) => {
                let elsewhere = engine::rootfs::place()?.join(std::process::id().to_string());
                self.owner.rootfs = Some(elsewhere.clone());
                self.write_owner()?;
                Ok(engine::rootfs::prepare(&elsewhere)?)
            }
            prepared => Ok(prepared?),
        }
    }

    /// Makes the directory `name` in the place, reachable by the users of rootless cells.
    pub(crate) fn sub(&self, name: &str) -> Result<PathBuf, BenchError> {
        let dir = self.dir.join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(&dir)
            .map_err(failed(&dir, "create the directory"))?;
        Ok(dir)
    }

    /// A trial's journal of tasks and interrupts moved off its cpus.
    pub(crate) fn isolation_journal(&self, trial: u32) -> PathBuf {
        self.dir.join(format!("{ISOLATION}{trial}"))
    }

    fn write_owner(&self) -> Result<(), BenchError> {
        let path = self.dir.join(OWNER);
        let text = serde_json::to_vec(&self.owner).unwrap_or_default();
        record::run::write_atomically(&path, &text).map_err(BenchError::Record)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(elsewhere) = &self.owner.rootfs {
            let _ = remove_tree(elsewhere);
            // Removed by the last coordinator; others' root filesystems keep it.
            let _ = elsewhere.parent().map(fs::remove_dir);
        }
        let trials = list(&self.dir.join("trials"));
        if trials.iter().any(|trial| holds_cells(trial)) {
            // The next start, or `timecell clean`, removes them, and the place after them.
            return;
        }
        if self.owner.unwritten.is_some() {
            let _ = remove_tree(&self.dir.join("rootfs"));
        } else {
            let _ = remove_tree(&self.dir);
        }
    }
}

/// The process of this user, other than this one and its parent, that has a place and is alive.
pub(crate) fn another() -> Option<i32> {
    let mut others = others(living());
    others.find_map(|place| (place.uid == uid()).then_some(place.pid))
}

/// The processes of other users that have a place and are alive: only root sees any.
pub(crate) fn of_other_users() -> Vec<i32> {
    let foreign = others(living()).filter(|place| place.uid != uid());
    foreign.map(|place| place.pid).collect()
}

/// Those of other processes than this one and its parent: `timecell bench self memory` measures a bench that it starts.
fn others(all: Vec<Living>) -> impl Iterator<Item = Living> {
    let parent = Pid::as_raw(getppid());
    let family = [std::process::id().cast_signed(), parent];
    (all.into_iter()).filter(move |place| !family.contains(&place.pid))
}

/// The place of a coordinator that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Living {
    pub dir: PathBuf,
    pub pid: i32,
    pub uid: u32,
}

/// Every place whose coordinator is alive and that this process may read: those of its user, for root all.
pub(crate) fn living() -> Vec<Living> {
    living_in(&base())
}

pub(crate) fn living_in(base: &Path) -> Vec<Living> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let owned = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (uid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
        let uid: u32 = uid.parse().ok()?;
        let meta = fs::symlink_metadata(entry.path()).ok()?;
        if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o022 != 0 {
            return None;
        }
        let owner = read_owner(&entry.path())?;
        // Anybody may write a note that names a process of somebody else.
        let alive =
            start_ticks(owner.pid) == Some(owner.start_ticks) && user(owner.pid) == Some(uid);
        alive.then(|| Living {
            dir: entry.path(),
            pid: owner.pid,
            uid,
        })
    });
    owned.collect()
}

pub(crate) fn read_owner(dir: &Path) -> Option<Owner> {
    let text = foreign_file::read(&dir.join(OWNER), MOST_OWNER_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Whether cells of the trial with this directory could not be removed.
pub(crate) fn holds_cells(trial: &Path) -> bool {
    list(&trial.join("cells"))
        .iter()
        .any(|dir| engine::is_left(dir))
}

pub(crate) fn list(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .map(|entries| entries.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default()
}

/// tmpfs, so that no page of a control or samples file is ever written back to a disk.
pub(crate) fn base() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() && free_bytes(shm) > 0 {
        shm.to_owned()
    } else {
        std::env::temp_dir()
    }
}

pub(crate) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Bytes that this user may still write below `dir`; 0 if that is unknown.
pub(crate) fn free_bytes(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(0, |stat| stat.f_bavail * stat.f_frsize)
}

pub(crate) use host::process::start_ticks;

pub(crate) fn remove_tree(dir: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed(dir, "remove the directory")(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_names_anothers_process_is_not_believed() {
        use std::os::unix::fs::{PermissionsExt, chown};
        if uid() != 0 {
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let own = std::process::id().cast_signed();
        for uid in [0, 12_345] {
            let dir = base.path().join(format!("{PREFIX}{uid}-1"));
            fs::create_dir(&dir).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o711)).unwrap();
            let note = serde_json::json!({"pid": own, "start_ticks": start_ticks(own)});
            fs::write(dir.join(OWNER), note.to_string()).unwrap();
            chown(&dir, Some(uid), None).unwrap();
        }
        let found: Vec<u32> = living_in(base.path())
            .iter()
            .map(|found| found.uid)
            .collect();
        assert_eq!(found, [0]);
    }
}
