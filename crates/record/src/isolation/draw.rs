//! The task sets of an isolation study, and how they were drawn.

use serde::{Deserialize, Serialize};

use model::Enforcer;

use crate::summary::NotMeasured;

/// How the sets of one utilisation came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draws {
    /// Declared utilisation of both cells together, in thousandths of a cpu.
    pub utilisation_permille: u32,
    /// Sets that were drawn.
    pub drawn: u32,
    /// Sets among them that were refused, by each enforcer for which that was asked: (its name, number).
    pub refused: Vec<(String, u32)>,
    /// Enforcers that take no part at this utilisation, with the reason.
    pub without: Vec<NotMeasured>,
}

/// Two cells' tasks, and what they are granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnSet {
    /// Number, from 1.
    pub number: u32,
    /// Round in which it is run, from 1.
    pub round: u32,
    /// See [`Draws::utilisation_permille`].
    pub utilisation_permille: u32,
    /// Which one of the draws of this utilisation it was, from 0: with the seed it gives the same set again.
    pub draw: u64,
    /// The cell of higher priority, which overruns.
    pub attacker: DrawnCell,
    /// The cell whose deadlines count.
    pub victim: DrawnCell,
    /// Whether the victim is bound to miss a deadline at the worst, by response time analysis, when the attacker overruns
    /// and nothing holds it.
    pub late_without: bool,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnCell {
    /// Tasks, the most urgent first.
    pub tasks: Vec<DrawnTask>,
    /// Budget and period of its real-time group, ns; `None` where that enforcer takes no part.
    pub budget_ns: Option<(u64, u64)>,
    /// Budget and period of its group that is frozen and thawed, ns; `None` where that enforcer takes no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freezer_ns: Option<(u64, u64)>,
}

impl DrawnCell {
    /// Budget and period to which this enforcer holds the whole cell, ns; `None`: it takes no part, or holds thread by thread.
    pub fn budget_of(&self, enforcer: Enforcer) -> Option<(u64, u64)> {
        match enforcer {
            Enforcer::RtCgroup => self.budget_ns,
            Enforcer::Freezer => self.freezer_ns,
            Enforcer::Deadline | Enforcer::Hcbs | Enforcer::CpusetOnly => None,
        }
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnTask {
    /// Name, such as `victim-1`; its samples are `trials/<number>/<name>.samples`.
    pub name: String,
    /// Execution time that is declared, ns.
    pub wcet_ns: u64,
    /// Period and relative deadline, ns.
    pub period_ns: u64,
    /// Runtime of its thread of SCHED_DEADLINE, ns; `None` where that enforcer takes no part.
    pub runtime_ns: Option<u64>,
    /// SCHED_FIFO priority elsewhere.
    pub priority: u8,
}
