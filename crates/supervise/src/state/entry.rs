//! The entries of a mission's journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::admit::Unaccounted;
use crate::cause::Cause;
use crate::end::End;
use crate::incident::Incident;
use crate::journal::{self, Durability};
use crate::process::Process;
use crate::stamp::Stamp;

use super::{Limit, State};

/// An entry and when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When.
    pub at: Stamp,
    /// The entry.
    pub entry: Entry,
}

/// An act of a supervisor, done or about to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A supervisor has taken over.
    SupervisorStarted(super::Supervisor),
    /// A mission was admitted: it, or its later form with a cell more or less, should run from now on.
    MissionAdmitted {
        /// Name of the mission.
        name: String,
        /// Its file.
        file: Text,
        /// Real-time threads on its cpus that nobody accounted for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unaccounted: Vec<Unaccounted>,
        /// Where the sources of its mounts lead, by their absolute paths.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        sources: BTreeMap<String, String>,
    },
    /// A cell is about to be made.
    CellStarting {
        /// Its name.
        cell: String,
        /// How often it has been started by then, from 1. Tells the instances of a cell apart.
        generation: u64,
        /// Whether it is in the second of the cell's two places, where a version that runs beside another one is made.
        #[serde(default)]
        beside: bool,
    },
    /// A cell runs.
    CellStarted {
        /// Its name.
        cell: String,
        /// See [`Entry::CellStarting`].
        generation: u64,
        /// Its first process, and its hold.
        started: Started,
    },
    /// A cell has ended.
    CellEnded {
        /// Its name.
        cell: String,
        /// See [`Entry::CellStarting`].
        generation: u64,
        /// How.
        end: End,
        /// Why, where its end alone does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// A cell has come up against one of its limits, for the first time in this life.
    LimitReached {
        /// Its name.
        cell: String,
        /// See [`Entry::CellStarting`].
        generation: u64,
        /// Which.
        limit: Limit,
    },
    /// A thread of a cell has taken a class beyond its grant, which stays.
    ClassTaken {
        /// Name of the cell.
        cell: String,
        /// The thread, its class and the grant, a clause.
        what: String,
    },
    /// The bound of a task does not count any more: something that its proof assumes is otherwise.
    BoundWithdrawn {
        /// Name of the cell.
        cell: String,
        /// Name of the task.
        task: String,
        /// The bound on its response time, ns.
        bound_ns: u64,
        /// The difference, a clause.
        why: String,
    },
    /// It counts again: for a second, all that its proof assumes and that is looked at has held.
    BoundInForce {
        /// Name of the cell.
        cell: String,
        /// Name of the task.
        task: String,
        /// The bound on its response time, ns.
        bound_ns: u64,
    },
    /// A cell is not to run from now on, for this reason beside others.
    CellHeld {
        /// Its name.
        cell: String,
        /// Why.
        why: Hold,
    },
    /// This reason is gone; if it was the last, the cell is to run again.
    CellReleased {
        /// Its name.
        cell: String,
        /// Which reason.
        why: Hold,
    },
    /// Something went wrong.
    Incident(Box<Incident>),
    /// The mission has changed its mode.
    ModeSwitched {
        /// To this one.
        to: Mode,
    },
    /// A new version is about to be started beside the old one.
    UpdateBegun {
        /// Number of the update, from 1.
        update: u64,
        /// The mission file as it shall be.
        file: Text,
        /// The cells that are recreated.
        cells: Vec<String>,
        /// Where the sources of both versions' mounts lead, by their absolute paths.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        sources: BTreeMap<String, String>,
    },
    /// The new version should run from now on.
    UpdateCommitted {
        /// Number of the update.
        update: u64,
    },
    /// The old version has stayed.
    UpdateRolledBack {
        /// Number of the update.
        update: u64,
        /// Why.
        reason: String,
    },
    /// All cells were ended because that was asked for; nothing should run.
    CleanDown,
    /// Everything so far; the first entry after a compaction.
    Snapshot(Box<State>),
}

/// A mission file as it was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// All of it.
    pub text: String,
    /// SHA-256 of it in hexadecimal, as `sha256sum` prints it.
    pub sha256: String,
    /// Absolute path of the file, from whose directory relative paths in it count; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Text {
    /// The file with this text.
    pub fn new(text: impl Into<String>) -> Text {
        let text = text.into();
        let digest = Sha256::digest(text.as_bytes());
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Text {
            text,
            sha256,
            path: None,
        }
    }

    /// The same, of the file at this path.
    #[must_use]
    pub fn at(self, path: impl Into<String>) -> Text {
        Text {
            path: Some(path.into()),
            ..self
        }
    }

    /// Whether the digest is that of the text.
    pub fn is_intact(&self) -> bool {
        Text::new(self.text.as_str()).sha256 == self.sha256
    }
}

/// The known data of a running cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its first process.
    pub process: Process,
    /// Name of the mechanism that holds it to its budget, such as `rt-cgroup`; `None`: it has no budget.
    pub enforcer: Option<String>,
    /// Its budget.
    pub reservation: Option<Enforced>,
    /// Its cpus.
    pub cpus: Vec<u32>,
}

/// A budget as the kernel enforces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// Cpu time in each period on each cpu, in ns.
    pub budget_ns: i64,
    /// In ns.
    pub period_ns: i64,
}

model::choice! {
    /// Why a cell of the mission is not to run.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Hold: because {
        /// It was stopped by hand.
        ByHand = "it was stopped by hand",
        /// A health rule has stopped it.
        ByRule = "a health rule stopped it",
        /// It has been restarted too often.
        RestartLimit = "it reached its restart limit",
        /// It was shed in favour of others.
        Shed = "it was shed in favour of others",
        /// A cell that it needs does not run.
        Needs = "a cell that it needs is not running",
        /// Its program has ended and is not to be restarted.
        Ended = "its program ended and is not restarted",
    }
}

model::choice! {
    /// Mode of a mission.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Mode {
        /// Every cell runs.
        #[default]
        Low = "low",
        /// Cells of low criticality are shed, those of high criticality have their larger budgets.
        High = "high",
    }
}

impl journal::Entry for Record {
    const KIND: &'static str = "mission";
    const VERSION: u32 = 1;

    fn durability(&self) -> Durability {
        match self.entry {
            Entry::SupervisorStarted { .. }
            | Entry::CellStarting { .. }
            | Entry::CellStarted { .. }
            | Entry::CellEnded { .. }
            | Entry::LimitReached { .. }
            | Entry::ClassTaken { .. }
            | Entry::BoundWithdrawn { .. }
            | Entry::BoundInForce { .. }
            // The mode starts afresh with the cells.
            | Entry::ModeSwitched { .. } => Durability::Process,
            Entry::MissionAdmitted { .. }
            | Entry::CellHeld { .. }
            | Entry::CellReleased { .. }
            | Entry::Incident(_)
            | Entry::UpdateBegun { .. }
            | Entry::UpdateCommitted { .. }
            | Entry::UpdateRolledBack { .. }
            | Entry::CleanDown
            | Entry::Snapshot(_) => Durability::Durable,
        }
    }
}
