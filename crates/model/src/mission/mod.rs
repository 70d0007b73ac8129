//! Missions: which cells are kept running, what each of them needs, what it may do, and what happens when it fails. The
//! types are here, next to reading, checking and writing the TOML file and its JSON Schema. Whether the guarantees can be
//! kept is decided by admission, and nothing here looks at a machine: whatever depends on one is asked of [`Machine`].

mod band;
mod bounds;
mod capability;
mod cell;
mod check;
mod class;
mod file;
mod health;
mod image;
mod keys;
mod machine;
mod modes;
mod order;
mod read;
mod restart;
mod rights;
mod supervisor;
mod task;
#[cfg(test)]
mod tests;
mod uids;
mod write;

pub use crate::file::Place;
pub use band::Band;
pub use bounds::KernelBounds;
pub use cell::{Cell, Criticality, Ready, WhenShed};
pub use class::CellClass;
#[cfg(test)]
pub(crate) use file::FORMAT;
pub use file::{MissionFile, schema};
pub use health::{Action, Escalation, ExitStatus, Observed, Rule};
pub use image::{Image, ImageKind};
pub use machine::{Machine, PathKind, Way};
pub use modes::{ModePolicy, Modes};
pub use restart::{Restart, RestartPolicy};
pub use rights::{Access, Device, Mount, Network, Rights, Seccomp, Tmpfs, User};
pub use supervisor::{Supervisor, SupervisorClass};
pub use task::{Arrivals, Task};
pub use uids::Uids;

use std::path::PathBuf;

use crate::{Duration, Enforcer};

/// Version of the mission file that this timecell reads and writes.
pub const SCHEMA: i64 = 1;

/// Bounds on what a mission may hold.
pub struct Limits;

impl Limits {
    /// Bytes of a mission file.
    pub const FILE_BYTES: usize = 4 << 20;
    /// Cells of a mission.
    pub const CELLS: usize = 4_096;
    /// Tasks of one cell.
    pub const TASKS: usize = 4_096;
    /// Maximum number of faults that are listed; of more, only the existence is reported.
    pub const FAULTS: usize = crate::file::Faults::MOST;
    /// SCHED_FIFO priorities that cells may have. 98 only if the supervisor has no reservation, see [`Supervisor::PRIORITY`]; 99
    /// is left to the kernel's own threads and to the thread that watches that reservation.
    pub const PRIORITY: std::ops::RangeInclusive<i64> = 1..=98;
    /// The highest cpu number plus one.
    pub const CPUS: i64 = *crate::taskset::Limits::CPUS.end();
    /// The longest time of a task or a reservation in ns: the range of exact analysis.
    pub const LONGEST_NS: i64 = crate::taskset::Limits::LONGEST_NS;
}

/// A mission, every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mission {
    /// Name; becomes part of cgroup and directory names. A letter or digit, then letters, digits, `-` and `_`; 64 at most.
    pub name: String,
    /// Its purpose, in the user's words.
    pub description: String,
    /// Enforcer that holds the cells to their budgets; `None`: the cheapest that the kernel has.
    pub enforcer: Option<Enforcer>,
    /// Cpus for the real-time cells, each once; empty: chosen on the machine.
    pub cpus: Vec<u32>,
    /// How late the kernel may wake a task, as admission assumes; `None`: wake-up latency is ignored.
    pub latency: Option<Latency>,
    /// Run of `timecell bench supply` that measured what this kernel's budgets really supply; `None`: a conservative model.
    pub supply_run: Option<PathBuf>,
    /// Program of the host and its arguments that [`Action::Notify`] starts; empty: only subscribers are told.
    pub notify: Vec<String>,
    /// Names of cells of low criticality in the order in which they are shed; the rest is in [`Mission::shed_order`].
    pub shed: Vec<String>,
    /// User ids for its cells.
    pub uids: Uids,
    /// What its supervisor reserves for itself.
    pub supervisor: Supervisor,
    /// The two modes of a mixed-criticality mission; `None`: there is one.
    pub modes: Option<Modes>,
    /// The cells, in the order of the file; at least one.
    pub cells: Vec<Cell>,
}

/// The wake-up latency that admission assumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Latency {
    /// At most this long.
    Allowance(Duration),
    /// As measured by this run.
    Run(PathBuf),
}

impl Mission {
    /// The cell of this name.
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// The index of the cell of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.name == name)
    }
}
