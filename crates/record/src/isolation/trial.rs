//! The trials of an isolation study.

use serde::{Deserialize, Serialize};

use super::Arm;
use crate::ground::{Budget, LoadRecord};

model::choice! {
    /// Which of the two cells.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Role {
        /// The cell of higher priority.
        Attacker = "attacker",
        /// The cell whose deadlines count.
        Victim = "victim",
    }
}

/// One contest: a set under one arm, with one load or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContestTrial {
    /// Number in the order of execution over contests and received budgets, from 1.
    pub number: u32,
    /// Round, from 1.
    pub round: u32,
    /// The set, by its number.
    pub set: u32,
    /// The arm.
    pub arm: Arm,
    /// The load's name; `None`: idle.
    pub load: Option<LoadRecord>,
    /// Cpus that the threads were allowed to use.
    pub cpus: Vec<u32>,
    /// Change of load balancing over the cpu, if the trial needed its own root domain.
    pub root_domain: Option<String>,
    /// Planned activations of each task, by its name.
    pub jobs: Vec<(String, u32)>,
    /// Steal time of these cpus during the trial as reported by the hypervisor, ns, mostly in steps of 10 ms; `None` if the
    /// kernel does not report it.
    pub steal_ns: Option<u64>,
    /// Why the trial failed; `None` when it is good.
    pub failure: Option<String>,
}

/// One trial of received budgets: several cells that spin beside each other, each in its own budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTrial {
    /// Number in the order of execution over contests and received budgets, from 1.
    pub number: u32,
    /// Round, from 1.
    pub round: u32,
    /// The cells, that of the highest priority first.
    pub cells: Vec<ReceivedCell>,
    /// Cpus that the threads were allowed to use.
    pub cpus: Vec<u32>,
    /// See [`ContestTrial::root_domain`].
    pub root_domain: Option<String>,
    /// See [`ContestTrial::steal_ns`].
    pub steal_ns: Option<u64>,
    /// Why the trial failed; `None` when it is good.
    pub failure: Option<String>,
}

/// A cell that spins; its gaps are in `trials/<trial>/<place from 1>.gaps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedCell {
    /// The budget that holds it.
    pub held: Budget,
    /// The class that it was given, such as `FIFO 80`.
    pub class: String,
}
