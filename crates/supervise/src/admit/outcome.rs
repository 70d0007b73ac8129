//! The result of admission for a mission.

use std::fmt;

use analysis::{Ns, Witness};
use host::rt_threads::RtThread;
use host::sched::Class;
use model::Enforcer;
use model::mission::{Band, Place};
use serde::{Serialize, Serializer};
use text::units::exact;

use super::advice::Advice;
use super::partition;
use super::{
    Basis, Choice, CpuFrames, HeldCell, HeldMemory, MemoryShare, SupervisorGrant, Unaccounted,
};

/// The result of admission for a mission.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Admission {
    /// Name of the mission.
    pub mission: String,
    /// Each cell in the order of the file.
    pub cells: Vec<Outcome>,
    /// The supervisor's own grant.
    pub supervisor: SupervisorGrant,
    /// Load of the cells on each cpu that they may use.
    pub cpus: Vec<CpuLoad>,
    /// Cpus that the mission has for itself, as cpuset partitions: those on which its threads of SCHED_DEADLINE are kept to their cpus.
    pub partitions: Vec<Vec<u32>>,
    /// The frames of its cpus that have time partitions of EVL.
    pub frames: Vec<CpuFrames>,
    /// Their share of its memory; `None`: the kernel holds nobody to a limit.
    pub memory: Option<MemoryShare>,
    /// The choice of the enforcer for cells that leave it to timecell; `None`: no cell does.
    pub choice: Option<Choice>,
    /// Refusals of the mission as a whole, as sentences.
    pub refusals: Vec<String>,
    /// Notes for the reader, as sentences.
    pub notes: Vec<String>,
    /// Other holders on this machine, all of them counted, such as "mission `a`".
    pub beside: Vec<String>,
    /// Real-time threads on granted cpus that nobody accounts for.
    pub unaccounted: Vec<Unaccounted>,
    /// The kernel's own real-time threads.
    #[serde(skip)]
    pub kernel: Vec<RtThread>,
    /// How late the kernel may wake a task, as was assumed, ns.
    #[serde(skip)]
    pub latency_ns: Ns,
    /// The grants, as the machine's ledger keeps them.
    #[serde(skip)]
    pub held: Vec<HeldCell>,
    /// The cpus that leave Linux for its partitions.
    #[serde(skip)]
    pub partition_cpus: Vec<u32>,
}

impl Admission {
    /// Whether every guarantee can be kept.
    pub fn is_admitted(&self) -> bool {
        self.refusals.is_empty()
            && (self.cells.iter()).all(|cell| !matches!(cell, Outcome::Refused(_)))
    }

    /// Memory of the machine that the cells may use together.
    pub fn held_memory(&self) -> HeldMemory {
        (self.memory.as_ref()).map_or(HeldMemory::default(), |memory| HeldMemory {
            declared_bytes: memory.declared_bytes,
            limits_bytes: memory.limits_bytes,
        })
    }

    /// The enforcer of the cells that leave it to timecell; `None`: no cell does.
    pub fn usual(&self) -> Option<Enforcer> {
        self.choice.as_ref().map(|choice| choice.chosen)
    }

    /// The cpus of the best-effort cell of this name; `None`: it is none, or not of this mission.
    pub fn best_effort(&self, name: &str) -> Option<&[u32]> {
        self.cells.iter().find_map(|outcome| match outcome {
            Outcome::BestEffort { cell, cpus } if cell == name => Some(cpus.as_slice()),
            _ => None,
        })
    }

    /// The partition of the mission that has all of these cpus; `None`: none has.
    pub fn partition_of(&self, cpus: &[u32]) -> Option<&[u32]> {
        partition::of(&self.partitions, cpus)
    }

    /// The grant to the cell of this name.
    pub fn grant(&self, name: &str) -> Option<&Grant> {
        self.cells.iter().find_map(|cell| match cell {
            Outcome::Granted(grant) if grant.cell == name => Some(grant),
            _ => None,
        })
    }
}

/// The result of admission for a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// Its guarantee can be kept.
    Granted(Grant),
    /// It asks for none.
    BestEffort {
        /// Its name.
        cell: String,
        /// Cpus that it may use.
        cpus: Vec<u32>,
    },
    /// It cannot be kept, or not be shown to be.
    Refused(Refused),
}

impl Outcome {
    /// The name of a cell that is admitted only if nothing but its tasks runs in it, which the file does not say.
    pub fn assumed(&self) -> Option<&str> {
        match self {
            Outcome::Granted(grant) if grant.basis.is_assumed() => Some(&grant.cell),
            _ => None,
        }
    }
}

/// The grant to a cell, with its assumptions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grant {
    /// Its name.
    pub cell: String,
    /// Its enforcer.
    pub enforcer: Enforcer,
    /// Its cpus.
    pub cpus: Vec<u32>,
    /// The cpus of the partition in which it is; `None`: in none.
    pub partition: Option<Vec<u32>>,
    /// Budget on each of them in every period, ns; `None`: no budget is enforced.
    pub budget_ns: Option<Ns>,
    /// Period, ns.
    pub period_ns: Option<Ns>,
    /// Priorities of its threads, lowest and highest; `None` under SCHED_DEADLINE.
    #[serde(serialize_with = "band_ends")]
    pub band: Option<Band>,
    /// Whether they are of SCHED_RR rather than SCHED_FIFO.
    pub round_robin: bool,
    /// The basis of the supply.
    pub basis: Basis,
    /// Rate of the supply counted on, as a share of a cpu.
    pub rate: f64,
    /// Delay of the supply counted on, ns.
    pub delay_ns: Option<Ns>,
    /// By how much others above it on its cpu can postpone its budget, ns.
    pub postponed_ns: Ns,
    /// Its tasks in the order of the file.
    pub tasks: Vec<TaskBound>,
}

impl Grant {
    /// The same for a cell, or a second version of it, of this name.
    #[must_use]
    pub(crate) fn at(&self, cell: String) -> Grant {
        Grant {
            cell,
            ..self.clone()
        }
    }

    /// The class of a thread of this priority.
    pub fn class_at(&self, priority: u8) -> Class {
        match self.round_robin {
            true => Class::RoundRobin { priority },
            false => Class::Fifo { priority },
        }
    }

    /// Whether its threads may inherit priorities: not where the kernel holds them to a budget, from which those that inherit are
    /// exempt. The freezer stops all alike.
    pub fn lets_inherit(&self) -> bool {
        // Of a cell with tasks of SCHED_DEADLINE, each has a runtime of its own, and there is no budget of the cell.
        let by_task = self.tasks.iter().any(|task| task.runtime_ns.is_some());
        let has_budget = self.budget_ns.is_some() || by_task;
        !(has_budget && self.enforcer.is_of_the_kernel())
    }

    /// Which mutexes of real-time programs work in it, a clause.
    pub fn mutexes(&self) -> String {
        let enforcer = self.enforcer.name();
        let inheritance = match self.lets_inherit() {
            true => format!("PTHREAD_PRIO_INHERIT works under `{enforcer}`"),
            false => format!(
                "PTHREAD_PRIO_INHERIT is refused under `{enforcer}` (ENOTSUP); enforcer = \"freezer\" grants it"
            ),
        };
        let ceilings = match self.band {
            Some(band) if self.tasks.is_empty() => format!(
                "PTHREAD_PRIO_PROTECT works with ceilings from {}, and raises to {} at most",
                band.lowest, band.highest
            ),
            Some(_) => "PTHREAD_PRIO_PROTECT raises no task's thread".to_owned(),
            None => "PTHREAD_PRIO_PROTECT raises no thread, and may fail (EINVAL)".to_owned(),
        };
        format!("{inheritance}; {ceilings}")
    }

    /// Whether the kernel is told the same: mechanism, cpus and partition, budget and priorities.
    pub fn holds_as(&self, other: &Grant) -> bool {
        let held = |grant: &Grant| {
            let threads: Vec<_> = (grant.tasks.iter())
                .map(|task| (task.priority, task.runtime_ns))
                .collect();
            (
                (grant.enforcer, grant.cpus.clone()),
                (grant.band, grant.round_robin),
                grant.partition.clone(),
                (grant.budget_ns, grant.period_ns),
                threads,
            )
        };
        held(self) == held(other)
    }
}

/// The bound of a task's response time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskBound {
    /// Its name.
    pub task: String,
    /// Bound on the response time, ns, from the arrival.
    pub response_ns: Option<Ns>,
    /// Its deadline, ns.
    pub deadline_ns: Ns,
    /// SCHED_FIFO priority of its thread; `None` under SCHED_DEADLINE.
    pub priority: Option<u8>,
    /// Runtime of its thread under SCHED_DEADLINE, ns.
    pub runtime_ns: Option<Ns>,
}

/// Why a cell is refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refused {
    /// Its name.
    pub cell: String,
    /// Where in the file, as a JSON pointer.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// The fault, a clause.
    pub why: String,
    /// The task that is late and by how much, where one is.
    pub witness: Option<Late>,
    /// The user's remedy, a clause, where one was found to suffice ([`Admission::advise`]). All changes that suffice are
    /// found by [`super::find_fixes`].
    pub fix: Option<String>,
    /// Possible remedies, not yet tried.
    #[serde(skip)]
    pub(super) advice: Vec<Advice>,
}

/// A deadline that is not shown to hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Late {
    /// Name of the task.
    pub task: String,
    /// The instant by which too little is supplied, with the demand.
    pub witness: Witness,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let witness = &self.witness;
        let (task, instant, demand) = (&self.task, exact(witness.instant), exact(witness.demand));
        write!(
            f,
            "{task}: needs {demand} within {instant} of its arrival; "
        )?;
        match witness.supply {
            0 => write!(f, "none is guaranteed"),
            supply => write!(f, "{} is guaranteed", exact(supply)),
        }
    }
}

/// Load of the cells on a cpu.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuLoad {
    /// The cpu.
    pub cpu: u32,
    /// Names of its cells, those of the highest priorities first.
    pub cells: Vec<String>,
    /// Sum of their budgets by their periods.
    pub reserved: f64,
}

#[expect(clippy::ref_option, reason = "serde asks for it")]
fn band_ends<S: Serializer>(band: &Option<Band>, to: S) -> Result<S::Ok, S::Error> {
    band.map(|band| (band.lowest, band.highest)).serialize(to)
}

fn as_text<S: Serializer>(place: &Place, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(place)
}
