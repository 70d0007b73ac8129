//! Loads: deliberate interference beside the cells of a trial.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::file::{names_of, unknown};
use crate::{Duration, EngineKind};

/// The word for no load at all.
pub const IDLE: &str = "idle";

choice! {
    /// The kind of disturbance that a load makes.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum LoadKind {
        /// Keeps every cpu busy with computing.
        Cpu = "cpu",
        /// Groups of processes that send each other messages.
        Ipc = "ipc",
        /// Thrashes caches and memory bandwidth.
        Memory = "memory",
        /// Commits 1 MB blocks to a disk, and reads and writes random data.
        Disk = "disk",
        /// Echo requests of the largest size.
        NetIcmp = "net-icmp",
        /// Receives and stores 1 MB every second over TCP.
        NetTcp = "net-tcp",
        /// Asks the network devices for their settings, over and over.
        NetDev = "net-dev",
        /// Decodes video in software.
        Video = "video",
        /// Any command.
        Custom = "custom",
    }
}

impl LoadKind {
    /// The names in files, including the one for no load.
    pub(crate) const WITH_IDLE: &[&str] = &names_of!([IDLE], LoadKind::ALL);
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LoadKind {
    type Err = String;

    /// Reads a name; the error is a sentence that lists the names, nearest first.
    fn from_str(text: &str) -> Result<LoadKind, String> {
        LoadKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| {
                let all = "the loads are";
                let (what, fix) = unknown("load", text, all, LoadKind::WITH_IDLE);
                format!("{what}; {fix}")
            })
    }
}

choice! {
    /// The two implementations of a load.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum LoadForm {
        /// Our own binary, as a separate process.
        BuiltIn = "built-in",
        /// The standard program, such as stress-ng.
        Program = "program",
    }
}

/// One load of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadPlan {
    /// Name in tables; the kind's name unless given.
    pub name: String,
    /// Its kind.
    pub kind: LoadKind,
    /// Requested implementation; `None`: the program if it is installed and the load runs on the host, else built in.
    pub form: Option<LoadForm>,
    /// Program and arguments of a custom load; empty for every other kind.
    pub command: Vec<String>,
    /// Cpus that it may use; empty: all that this process may use, including those of the cells.
    pub cpus: Vec<u32>,
    /// The engine of the cell it runs in; `None`: on the host.
    pub cell: Option<EngineKind>,
    /// Budget and period to which SCHED_DEADLINE holds it, which then has one thread; `None`: it is of class OTHER.
    pub reservation: Option<(Duration, Duration)>,
}

impl LoadPlan {
    /// A load with every default: on the host, on all cpus, in whichever form is available.
    pub fn new(kind: LoadKind) -> LoadPlan {
        LoadPlan {
            name: kind.name().to_owned(),
            kind,
            form: None,
            command: Vec::new(),
            cpus: Vec::new(),
            cell: None,
            reservation: None,
        }
    }
}

/// Loads that run together in one word, such as `cpu+disk`; `idle` for none.
pub(crate) fn names(loads: &[LoadPlan]) -> String {
    if loads.is_empty() {
        return IDLE.to_owned();
    }
    let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
    names.join("+")
}
