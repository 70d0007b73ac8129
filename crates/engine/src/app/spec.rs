//! The specification of a cell of an application.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::EngineKind;
pub use model::mission::{Access, Device, Image, Network, User as Ids};
use serde::{Deserialize, Serialize};

use super::Grants;
use crate::User;
use crate::identity::Identity;

/// The specification of a cell that runs an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppSpec {
    /// Name, unique on the machine: letters, digits, `-`, `_` and `.`, at most 128 of them, a letter or digit first. It
    /// becomes the name of the cell's cgroups.
    pub id: String,
    /// The engine that makes it: embedded, crun, runc, podman, or bare.
    pub engine: EngineKind,
    /// Private directory of this cell, absolute: note, state, output. Nobody else's files may be in it.
    pub work_dir: PathBuf,
    /// Its image; paths are of the host and absolute.
    pub image: Image,
    /// Program inside the cell and its first arguments; empty: those of the image.
    pub command: Vec<String>,
    /// Further arguments; without `command` they replace those of the image.
    pub args: Vec<String>,
    /// Environment variables, on top of the image's.
    pub env: BTreeMap<String, String>,
    /// Working directory inside the cell; `None`: the image's, else `/`.
    pub cwd: Option<PathBuf>,
    /// User and group; `None`: those of a bundle or image, else 65534 (nobody).
    pub ids: Option<Ids>,
    /// Host name inside the cell; `None`: a bundle's, else the cell's name.
    pub hostname: Option<String>,
    /// Whether it may write to its root; its writes are kept in memory and lost with the cell.
    pub writable_root: bool,
    /// Files and directories of the host.
    pub binds: Vec<Bind>,
    /// Directories in memory.
    pub tmpfs: Vec<Tmpfs>,
    /// Devices of the host beyond those that every cell has.
    pub devices: Vec<Device>,
    /// Which network it sees.
    pub network: Network,
    /// The limits of its cgroups.
    pub limits: Limits,
    /// Whether its own groups lie in one around them, by which it is held from outside: nobody inside, no engine's `pause` and no
    /// [`AppCell::thaw`](super::AppCell::thaw) undoes that. The outer one is named `<id>` either way.
    #[serde(default)]
    pub is_enclosed: bool,
    /// The group at the top of cgroup v2 in which its own lies: a partition of cpus ([`host::isolate::Partitions`]); `None`: at the top
    /// itself, as in every other hierarchy.
    #[serde(default)]
    pub within: Option<String>,
    /// The rights of its processes.
    pub grants: Grants,
    /// How early it is killed when the machine's memory is short, 0 to 1000 (proc_pid_oom_score_adj(5)).
    #[serde(default)]
    pub oom_score_adj: u16,
    /// The most bytes of its output that are kept, in two files; ignored where the caller provides the streams.
    pub log_bytes: u64,
}

/// The group of an enclosed cell in the one around it.
pub(crate) const INNER: &str = "cell";

impl AppSpec {
    /// A cell with nothing but its image: no network, no writable files, no rights.
    pub fn new(id: &str, engine: EngineKind, image: Image, work_dir: &Path) -> AppSpec {
        AppSpec {
            id: id.to_owned(),
            engine,
            work_dir: work_dir.to_owned(),
            image,
            command: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            ids: None,
            hostname: None,
            writable_root: false,
            binds: Vec::new(),
            tmpfs: Vec::new(),
            devices: Vec::new(),
            network: Network::None,
            limits: Limits::default(),
            is_enclosed: false,
            within: None,
            grants: Grants::default(),
            oom_score_adj: 0,
            log_bytes: 1 << 20,
        }
    }

    /// The group around all that is made of it, from the root of the hierarchy of version 2.
    pub(crate) fn outer_group(&self) -> String {
        match &self.within {
            Some(within) => format!("/{within}/{}", self.id),
            None => format!("/{}", self.id),
        }
    }

    /// The group that its engine makes; podman makes one below the outer one by itself.
    pub(crate) fn own_group(&self) -> String {
        match self.is_enclosed {
            true => format!("{}/{INNER}", self.outer_group()),
            false => self.outer_group(),
        }
    }

    /// The same at this mount point.
    pub(crate) fn outer_group_at(&self, point: &Path) -> PathBuf {
        point.join(self.outer_group().trim_start_matches('/'))
    }
}

/// A file or directory of the host inside the cell; mounts below it are not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the cell.
    pub target: PathBuf,
    /// Whether the cell may write to it.
    pub writable: bool,
    /// Where the source leads, links followed, if that has been decided before: a source that now leads elsewhere is refused, since a user who may
    /// write to a directory on its path could have replaced a part of it with a link. `None`: wherever it leads.
    #[serde(default)]
    pub leads_to: Option<PathBuf>,
}

impl Bind {
    /// A mount of the source wherever it leads.
    pub fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>, writable: bool) -> Bind {
        Bind {
            source: source.into(),
            target: target.into(),
            writable,
            leads_to: None,
        }
    }
}

/// A directory in memory, empty at first and writable by all of the cell's users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tmpfs {
    /// Absolute path in the cell.
    pub target: PathBuf,
    /// The most bytes that it holds.
    pub size_bytes: u64,
}

/// The limits of a cell's cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The most memory in bytes, files in memory included and swap excluded; `None`: no limit of its own.
    pub memory_bytes: Option<u64>,
    /// The most processes and threads.
    pub pids: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory_bytes: None,
            pids: 1024,
        }
    }
}

impl Identity for AppSpec {
    fn id(&self) -> &str {
        &self.id
    }

    fn engine(&self) -> EngineKind {
        self.engine
    }

    fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    fn user(&self) -> Option<&User> {
        None
    }
}
