//! A cell of a mission.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Band, CellClass, Image, Restart, Rights, Rule, Task};
use crate::taskset::{Order, Policy, Reservation, TaskCell};
use crate::{Duration, EngineKind};

/// A cell of a mission: an isolated place in which one application runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Name; unique in the mission. A letter or digit, then letters, digits, `-` and `_`; 64 at most.
    pub name: String,
    /// What it does, in the user's words.
    pub description: String,
    /// What it is made from.
    pub image: Image,
    /// Program inside the cell and its first arguments; empty: the image's.
    pub command: Vec<String>,
    /// Further arguments; without `command` they replace those of the image.
    pub args: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Working directory of the program inside the cell; `None`: the image's, else `/`.
    pub workdir: Option<PathBuf>,
    /// What makes the cell.
    pub engine: EngineKind,
    /// Scheduling class of its threads; `None`: the one that the enforcer needs.
    pub class: Option<CellClass>,
    /// Whether it may be shed.
    pub criticality: Criticality,
    /// What shedding does to it; always the default for a cell of high criticality, which is not shed.
    pub when_shed: WhenShed,
    /// Its cpus, each once; empty: it is placed on one of the mission's.
    pub cpus: Vec<u32>,
    /// Priorities that its threads may have, where the file says it; see [`Cell::band`].
    pub priorities: Option<Band>,
    /// The cpu time that it is guaranteed; for a cell on several cpus, the budget is the sum over them. `None`: the least
    /// that its tasks need, or nothing for a best-effort cell.
    pub reservation: Option<Reservation>,
    /// The reservation's budget in high mode, at least that in low mode; `None`: the same.
    pub budget_high: Option<Duration>,
    /// Whether it runs nothing but its tasks, so that a budget that they cannot use up is never enforced.
    pub only_tasks: bool,
    /// Its tasks, in the order of the file; may be empty if there is a reservation, and is empty for a best-effort cell.
    pub tasks: Vec<Task>,
    /// Cells that are started before it, if they are started at all.
    pub after: Vec<String>,
    /// Cells without which it cannot run: they are started before it, and when one of them stops, so does this cell.
    pub needs: Vec<String>,
    /// When the cells that wait for it may start.
    pub ready: Ready,
    /// How long it may take to become ready, from 1 ms; beyond that its start has failed.
    pub start_timeout: Duration,
    /// How long it may take to end after SIGTERM, before it is killed.
    pub stop_timeout: Duration,
    /// What happens when its program ends.
    pub restart: Restart,
    /// Its health rules, in the order of the file.
    pub health: Vec<Rule>,
    /// What it may use of the machine.
    pub rights: Rights,
}

choice! {
    /// How much depends on a cell.
    pub enum Criticality {
        /// It may be shed in favour of others.
        Low = "lo",
        /// It is never shed.
        High = "hi",
    }
}

choice! {
    /// What shedding does to a cell.
    pub enum WhenShed {
        /// It is frozen, keeps its memory and continues later.
        Freeze = "freeze",
        /// It is stopped, and started again later.
        Stop = "stop",
        /// It continues in SCHED_OTHER with whatever cpu time is left.
        BestEffort = "best-effort",
    }
}

choice! {
    /// When a cell is ready, so that the cells that wait for it may start.
    pub enum Ready {
        /// As soon as its program runs.
        Started = "started",
        /// When its application has reported the end of a job.
        FirstJob = "first-job",
    }
}

impl Cell {
    /// Default of how long it may take to end.
    pub const STOP_TIMEOUT: Duration = Duration::from_ns(1_000_000_000);

    /// Whether it has a guarantee, that is, is not best effort.
    pub fn is_real_time(&self) -> bool {
        self.class != Some(CellClass::Other)
    }

    /// Whether it is of high criticality.
    pub fn is_high(&self) -> bool {
        self.criticality == Criticality::High
    }

    /// Program and arguments, as far as the mission sets them.
    pub fn argv(&self) -> impl Iterator<Item = &str> {
        self.command.iter().chain(&self.args).map(String::as_str)
    }

    /// The priorities that its threads have by themselves: those of the file, else from the lowest to the highest of its tasks. `None`:
    /// the file has none, or its class. Admission gives the cell these if it says `priorities`, else where they are free.
    pub fn band(&self) -> Option<Band> {
        if let (Some(CellClass::Deadline | CellClass::Other), _) | (_, Some(_)) =
            (self.class, self.priorities)
        {
            return self.priorities;
        }
        let of_tasks = || self.tasks.iter().map(|task| task.timing.priority);
        let all: Option<Vec<u8>> = of_tasks()
            .map(|priority| u8::try_from(priority?).ok())
            .collect();
        let all = all?;
        Some(Band {
            lowest: *all.iter().min()?,
            highest: *all.iter().max()?,
        })
    }

    /// The number of cpus that it runs on; one, if it is yet to be placed.
    pub fn cpu_count(&self) -> u32 {
        u32::try_from(self.cpus.len().max(1)).unwrap_or(u32::MAX)
    }

    /// Its tasks and reservation as a cell of the analysis under this class; the order of fixed priorities is that of the
    /// tasks' priorities if they have some, else that of their deadlines.
    pub fn analysed(&self, class: CellClass) -> TaskCell {
        let given = self.tasks.iter().any(|task| task.timing.priority.is_some());
        TaskCell {
            name: self.name.clone(),
            policy: match class {
                CellClass::Deadline => Policy::Edf,
                _ if given => Policy::Fixed(Order::Priority),
                _ => Policy::Fixed(Order::Deadline),
            },
            reservation: self.reservation,
            server: None,
            tasks: self.tasks.iter().map(|task| task.timing.clone()).collect(),
        }
    }
}
