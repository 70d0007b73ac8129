//! Holders and their holdings.

use std::fmt;
use std::path::PathBuf;

use model::Enforcer;
use model::mission::Mission;
use record::supply::MeasuredSupply;
use serde::{Deserialize, Serialize};

use super::alive;
use crate::admit::{Admission, HELD, HeldCell, HeldMemory, Neighbour, mechanism_of};
use crate::process::Process;
use crate::stamp::Stamp;

/// A holder, by its kind. Another kind takes a variant here and a line in each function below.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Holder {
    /// A mission.
    Mission {
        /// Its name.
        name: String,
        /// Its directory.
        dir: PathBuf,
    },
    /// A measurement.
    Bench {
        /// The scenario or experiment.
        name: String,
        /// Its process.
        pid: i32,
    },
    /// A hold of something that already ran ([`crate::held`]).
    Held {
        /// Its name.
        name: String,
        /// The group that is held.
        group: PathBuf,
        /// The inode of that.
        inode: u64,
    },
}

impl Holder {
    /// A word for it in tables, before the name of a cell.
    pub fn short(&self) -> &str {
        match self {
            Holder::Mission { name, .. } | Holder::Bench { name, .. } => name,
            Holder::Held { .. } => HELD,
        }
    }
}

/// Such as "mission `a`".
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Mission { name, .. } => write!(f, "mission `{name}`"),
            Holder::Bench { name, .. } => write!(f, "`timecell bench {name}`"),
            Holder::Held { name, .. } => write!(f, "the hold of `{name}`"),
        }
    }
}

/// The holdings of one holder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The holder.
    pub holder: Holder,
    /// The process that has entered it; its cells may outlive it.
    pub process: Process,
    /// Since when, RFC 3339.
    pub since_utc: String,
    /// Real-time cells and their grants.
    #[serde(default)]
    pub cells: Vec<HeldCell>,
    /// Measured supplies on which these rest.
    #[serde(default)]
    pub supplies: Vec<MeasuredSupply>,
    /// Cpus that are measured on, and where nobody else may be.
    #[serde(default)]
    pub measured_cpus: Vec<u32>,
    /// Cpus that have left Linux, or will, for its partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_cpus: Vec<u32>,
    /// Since when others have changed the grants, so that nothing is guaranteed any more; `None`: it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Broken>,
    /// The share of the machine's memory that its cells may use; nothing in an entry of an earlier timecell.
    #[serde(default)]
    pub memory: HeldMemory,
}

/// A grant that others have changed, so that it is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Since when, RFC 3339.
    pub since_utc: String,
    /// The difference, a clause.
    pub why: String,
}

impl Entry {
    /// Of this process, with nothing yet.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn own(holder: Holder) -> Result<Entry, crate::process::ProcUnreadable> {
        let own = std::process::id().cast_signed();
        let process = Process::of(own)?.unwrap_or(Process {
            pid: own,
            start_ticks: 0,
            boot_id: crate::process::boot_id()?,
        });
        Ok(Entry {
            holder,
            process,
            since_utc: Stamp::now().utc(),
            cells: Vec::new(),
            supplies: Vec::new(),
            measured_cpus: Vec::new(),
            partition_cpus: Vec::new(),
            broken: None,
            memory: HeldMemory::default(),
        })
    }

    /// The same with the admitted holdings, which rest on `supplies`.
    #[must_use]
    pub fn holding(self, admission: &Admission, supplies: &[MeasuredSupply]) -> Entry {
        Entry {
            cells: admission.held.clone(),
            supplies: supplies.to_vec(),
            memory: admission.held_memory(),
            partition_cpus: admission.partition_cpus.clone(),
            ..self
        }
    }

    /// Whether its holder, or anything that it has started, still runs.
    pub(super) fn lives(&self) -> bool {
        self.process.still_runs().unwrap_or(true) || self.outlives()
    }

    /// Whether anything of it runs without its holder.
    pub(super) fn outlives(&self) -> bool {
        match &self.holder {
            Holder::Mission { name, dir } => alive::mission(name, dir),
            Holder::Bench { .. } => false,
            Holder::Held { group, inode, .. } => crate::held::is_populated(group, *inode),
        }
    }

    /// The holder, as named in sentences, such as "mission `a`".
    pub fn who(&self) -> String {
        let process = match &self.holder {
            Holder::Mission { .. } | Holder::Held { .. } => String::new(),
            Holder::Bench { .. } => format!(" (process {})", self.process.pid),
        };
        format!("{}{process}", self.holder)
    }

    /// The enforcer of a mission's running cells that leave it to timecell; `None`: none of them runs.
    pub fn usual(&self, mission: &Mission) -> Option<Enforcer> {
        let cells = self.cells.iter().filter(|cell| !cell.supervisor);
        let held = cells.map(|cell| (cell.cell.as_str(), cell.enforcer));
        self.outlives().then(|| mechanism_of(mission, held))?
    }

    /// As admission of others counts it, with the memory that its cells have taken at this instant.
    pub fn neighbour(&self) -> Neighbour {
        Neighbour {
            who: self.who(),
            short: self.holder.short().to_owned(),
            cells: self.cells.clone(),
            supplies: self.supplies.clone(),
            measured_cpus: self.measured_cpus.clone(),
            partition_cpus: self.partition_cpus.clone(),
            memory: self.memory,
            memory_taken_bytes: match &self.holder {
                Holder::Mission { name, .. } if self.memory.limits_bytes > 0 => {
                    engine::memory_taken(&crate::names::cells_of(name))
                }
                _ => 0,
            },
        }
    }

    /// Cpus on which it has something for its cells; its supervisor, which seldom runs, may be elsewhere too.
    pub fn cpus(&self) -> Vec<u32> {
        let cells = self.cells.iter().filter(|cell| !cell.supervisor);
        let granted = cells.flat_map(HeldCell::cpus);
        let all: std::collections::BTreeSet<u32> = (granted
            .chain(self.measured_cpus.iter().copied()))
        .chain(self.partition_cpus.iter().copied())
        .collect();
        all.into_iter().collect()
    }
}
