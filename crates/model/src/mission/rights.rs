//! What a cell may use of the machine besides cpu time.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// What a cell may use of the machine besides cpu time. Nothing by default: an empty network namespace, a read-only root, no
/// capability, no device beyond those that every container has, and a seccomp filter. Whatever is granted, a cell cannot
/// raise its class, leave its cgroup or exceed its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Which network it sees.
    pub network: Network,
    /// Whether it may write to its root; what it writes is lost with the cell.
    pub writable_root: bool,
    /// Capabilities beyond what its class needs, as capabilities(7) names them, each once; none that would let it escape.
    pub capabilities: Vec<String>,
    /// Which system calls are refused.
    pub seccomp: Seccomp,
    /// User and group of its program; `None`: those of the bundle or image, else an id of [`super::Mission::uids`] that is
    /// reserved for this cell.
    pub user: Option<User>,
    /// Devices of the host.
    pub devices: Vec<Device>,
    /// Files and directories of the host.
    pub mounts: Vec<Mount>,
    /// Directories in memory, empty at first.
    pub tmpfs: Vec<Tmpfs>,
    /// Maximum memory, tmpfs included; `None`: its share of what is free when it is admitted.
    pub memory: Option<Bytes>,
    /// Maximum number of processes and threads.
    pub pids: u32,
    /// RLIMIT_SIGPENDING: pending signals of its user, POSIX timers included.
    pub pending_signals: u32,
    /// RLIMIT_MSGQUEUE: bytes of its user's POSIX message queues.
    pub message_queues: Bytes,
    /// RLIMIT_NOFILE: descriptors of each of its processes.
    pub open_files: u32,
}

/// User and group of a cell's program, as the cell sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id; there are no supplementary groups.
    pub gid: u32,
}

impl User {
    /// The user who owns nothing.
    pub const NOBODY: User = User {
        uid: 65_534,
        gid: 65_534,
    };
}

/// Which network a cell sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Its own network namespace with only loopback.
    None,
    /// That of the host, with the abstract Unix sockets of every process in it.
    Host,
}

impl Network {
    /// All choices, with their names in files.
    pub const NAMES: [(&'static str, Network); 2] =
        [("none", Network::None), ("host", Network::Host)];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Host => "host",
        }
    }
}

/// Which system calls a cell is refused. There is no choice without any: the calls with which a cell could leave its class or
/// its cgroup are always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seccomp {
    /// Those that container engines refuse by default, and those with which a cell could escape.
    Default,
    /// Only those with which a cell could escape.
    Cage,
}

impl Seccomp {
    /// All choices, with their names in files.
    pub const NAMES: [(&'static str, Seccomp); 2] =
        [("default", Seccomp::Default), ("cage", Seccomp::Cage)];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Seccomp::Default => "default",
            Seccomp::Cage => "cage",
        }
    }
}

/// A device of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its path, below `/dev`, on the host and in the cell.
    pub path: PathBuf,
    /// What the cell may do with it.
    pub access: Access,
}

/// What a cell may do with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Read and write.
    ReadWrite,
}

impl Access {
    /// All choices, with their names in files, as the devices controller writes them.
    pub const NAMES: [(&'static str, Access); 3] = [
        ("r", Access::Read),
        ("w", Access::Write),
        ("rw", Access::ReadWrite),
    ];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "r",
            Access::Write => "w",
            Access::ReadWrite => "rw",
        }
    }
}

/// A file or directory of the host inside the cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Path on the host; a relative one starts at the directory of the mission file.
    pub source: PathBuf,
    /// Absolute path in the cell.
    pub target: PathBuf,
    /// Whether the cell may write to it.
    pub writable: bool,
}

/// A directory in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tmpfs {
    /// Absolute path in the cell.
    pub target: PathBuf,
    /// Maximum size.
    pub size: Bytes,
}
