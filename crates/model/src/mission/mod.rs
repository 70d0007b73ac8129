//! Missions: which cells are kept running, their needs, their rights, and the reactions to their failures. The types are here, next to reading,
//! checking and writing the TOML file and its JSON Schema. Whether the guarantees can be kept is decided by admission, and nothing here looks at a
//! machine: facts that depend on one are asked of [`Machine`].

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
mod partition;
mod restart;
mod rights;
mod supervisor;
mod task;
#[cfg(test)]
mod tests;
mod uids;

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
pub use partition::{
    ConsoleKind, Jailhouse, Load, MemoryKind, Partition, PartitionConsole, PartitionDevice,
    PartitionMemory,
};
pub use restart::{Restart, RestartPolicy};
pub use rights::{Access, Device, Mount, Network, Rights, Seccomp, Tmpfs, User};
pub use supervisor::{Supervisor, SupervisorClass};
pub use task::{Arrivals, Task};
pub use uids::Uids;

use std::path::PathBuf;

use crate::file::{Field, Kind, Node, Writer, names_of, table, tables};
use crate::{Duration, Enforcer};
use keys::{CELL_NAMES, CPUS};

/// Version of the mission file that this timecell reads and writes.
pub const SCHEMA: i64 = 1;

/// Bounds on the contents of a mission.
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

const WORDS: Kind = Kind::List {
    of: &Kind::Word,
    least: 1,
    most: 1_024,
    unique: false,
};

table! {
    /// The cells to keep running, and the settings of all of them.
    ///
    /// Every default is filled in.
    pub struct Mission: "mission", "the top level" {
        /// version of this format; newer ones are refused
        "schema" = Kind::Integer { least: 1, most: i64::MAX }, Required "1";
        /// name of the mission; part of the names of its cgroups and directories
        name: String = Kind::Name, Required "\"my-mission\"";
        /// its purpose
        description: String, Default "\"\"";
        /// mechanism that holds cells to their budgets; `auto`: the cheapest of those before `evl-quota` that the kernel has
        enforcer: Option<Enforcer> = Kind::Choice(&names_of!(["auto"], Enforcer::OF_MISSIONS)), Default "\"auto\"";
        /// cpus for the real-time cells
        cpus: Vec<u32> = CPUS, Without "chosen on the machine";
        /// How late the kernel may wake a task, as admission assumes; `None`: wake-up latency is ignored.
        latency: Option<Latency>, by latency;
        /// how late the kernel may wake a task; counted as blocking of every task
        "latency" = Duration::KIND, Without "none assumed";
        /// directory of a run whose measured wake-up latency is used for it; refused with `latency`
        "latency_run" = Kind::HostPath, Without "`latency`";
        /// directory of a run of `timecell bench supply`, which measured the real supply of this kernel's budgets
        supply_run: Option<PathBuf>, Without "a conservative model";
        /// absolute path and arguments of a program on the host; action `notify` starts it with the incident as JSON on its standard input
        notify: Vec<String> = WORDS, Without "only subscribers are notified";
        /// cells of criticality `lo` in the order in which they are shed; those not named follow, from the end of the file
        ///
        /// The whole order is [`Mission::shed_order`].
        shed: Vec<String> = CELL_NAMES, Without "from the end of the file";
        /// User ids for its cells.
        uids: Uids, by uids;
        /// user and group ids, of which each cell gets its own
        "uids" = Uids::KIND, Without "2,000,000,000 to 2,000,065,535";
        /// the supervisor's own reservation, so that it reacts even if the cells use everything granted to them
        supervisor: Supervisor, Without "1 ms every 20 ms";
        /// gives the mission a low and a high mode
        modes: Option<Modes>, Without "one mode";
        /// the hypervisor; required with cells of engine `jailhouse`
        jailhouse: Option<Jailhouse>, Without "none";
        /// the cells
        cells as "cell": Vec<Cell> = tables::<Cell>(Limits::CELLS), Required "at least one, with a name, an image, and tasks or a reservation";
    }
}

mod latency {
    use super::{Field, Latency, Mission, Node, Writer};

    pub(super) fn read(top: &Node<'_>) -> Option<Latency> {
        (top.time("latency").map(Latency::Allowance))
            .or_else(|| top.path("latency_run").map(Latency::Run))
    }

    pub(super) fn write(mission: &Mission, out: &mut Writer) {
        match &mission.latency {
            None => {}
            Some(Latency::Allowance(time)) => time.write("latency", out),
            Some(Latency::Run(run)) => run.write("latency_run", out),
        }
    }
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
    /// Writes the mission as a file that [`MissionFile::parse`] reads back to the same value. Defaults that depend on nothing
    /// are written out, so that the file names all settings in force, but for `enforcer = "auto"` and empty lists.
    pub fn to_toml(&self) -> String {
        format!("schema = {SCHEMA}\n{}", Writer::file(self))
    }

    /// The cell of this name.
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// The cpus of its partitions.
    pub fn partition_cpus(&self) -> Vec<u32> {
        let partitions = self.cells.iter().filter_map(|cell| cell.partition.as_ref());
        partitions
            .flat_map(|partition| partition.cpus.iter().copied())
            .collect()
    }

    /// The index of the cell of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.name == name)
    }
}
