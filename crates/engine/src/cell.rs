//! The operations of every engine and every cell.

use std::path::PathBuf;

use model::{EngineKind, Requirement, Size};
use serde::{Deserialize, Serialize};

use crate::{EngineError, Footprint, Machine};

/// The unprivileged user who runs a rootless cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Home directory.
    pub home: PathBuf,
}

/// Rights granted to a cell explicitly; it gets no others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rights {
    /// RLIMIT_RTPRIO and CAP_SYS_NICE, so that the cell may take a real-time class itself; 0: neither.
    pub rtprio: u8,
    /// RLIMIT_MEMLOCK in bytes (with CAP_IPC_LOCK where the engine is rootful).
    pub memlock_bytes: u64,
    /// Devices passed into the cell, read-write.
    pub devices: Vec<PathBuf>,
    /// Limits of cpu time and memory, of containers of engines that may make groups.
    #[serde(default)]
    pub limits: Size,
}

/// The program of a cell, and its rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSpec {
    /// Name, unique on the machine, such as `timecell-8123-4-1-podman`.
    pub id: String,
    /// The engine that makes the cell.
    pub engine: EngineKind,
    /// Directory that holds the static binary as `/timecell` and empty mount points, nothing else.
    pub rootfs: PathBuf,
    /// Arguments of `/timecell`.
    pub words: Vec<String>,
    /// Directory of the coordinator, seen inside the cell as `/cell`, read-write.
    pub shared: PathBuf,
    /// Private directory of this cell: bundle, state, log, and the note that [`crate::sweep`] reads.
    pub work_dir: PathBuf,
    /// The user of a rootless cell; `None` for rootful engines.
    pub user: Option<User>,
    /// The granted rights.
    pub rights: Rights,
    /// The virtual machine that it is; of engine `qemu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// An engine.
pub trait Engine: Send + Sync {
    /// Which one it is.
    fn kind(&self) -> EngineKind;

    /// Its requirements of this machine, met and unmet; if one is unmet, the engine cannot be measured here.
    fn requirements(&self) -> Vec<Requirement>;

    /// Program version, such as `crun 1.8.1`; `None` when it is not there.
    fn version(&self) -> Option<String>;

    /// Whether the cell may set its own class and affinity; otherwise the coordinator does so by pid.
    fn cell_sets_class(&self) -> bool;

    /// Resources of the machine that each of its cells takes while it waits.
    fn footprint(&self) -> Footprint;

    /// Creates the cell and starts its payload; returns as soon as the payload's pid is known.
    ///
    /// # Errors
    /// In the engine's own words; all that was made until then is removed.
    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError>;
}

/// A cell that was created.
pub trait Cell: Send {
    /// Pid of the payload, as the host sees it.
    fn pid(&self) -> i32;

    /// The threads that do the cell's work, which get its class and cpus, as the host sees them: the payload, or those that execute
    /// the virtual cpus of a machine that has booted.
    fn scheduled(&self) -> Vec<i32> {
        vec![self.pid()]
    }

    /// Processes that live beside the payload because of this cell: a runtime that waits for it, conmon and the like.
    /// A daemon that serves all cells is not one of them.
    fn processes(&self) -> Vec<CellProcess>;

    /// The last lines that cell and engine wrote, for error texts.
    fn log_tail(&self) -> String;

    /// Kills its live processes and removes container, cgroups, mounts and state. May be called again.
    ///
    /// # Errors
    /// Names the parts that could not be removed.
    fn remove(&mut self) -> Result<(), EngineError>;
}

/// A process that an engine keeps for a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellProcess {
    /// As the host sees it.
    pub pid: i32,
    /// Its name in the kernel, such as `conmon`.
    pub name: String,
}
