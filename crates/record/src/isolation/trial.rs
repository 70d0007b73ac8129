//! The trials of an isolation study.

use serde::{Deserialize, Serialize};

use super::Arm;
use crate::ground::{Budget, LoadRecord};

/// Which of the two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The cell of higher priority.
    Attacker,
    /// The cell whose deadlines count.
    Victim,
}

impl Role {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Attacker => "attacker",
            Role::Victim => "victim",
        }
    }
}

/// One contest: a set under one arm, beside one load or none.
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
    /// The load beside it by its name; `None`: idle.
    pub load: Option<LoadRecord>,
    /// Cpus that the threads might use.
    pub cpus: Vec<u32>,
    /// What became of load balancing over the cpu, where the trial needed a root domain of its own for it.
    pub root_domain: Option<String>,
    /// Activations that each task was to have, by its name.
    pub jobs: Vec<(String, u32)>,
    /// Time that the hypervisor says it took from these cpus meanwhile, ns, in steps of 10 ms mostly; `None` where
    /// the kernel does not tell.
    pub steal_ns: Option<u64>,
    /// Why nothing counts of this trial; `None` when it is good.
    pub failure: Option<String>,
}

/// One trial of received budgets: several cells that spin beside each other, each in a budget of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTrial {
    /// Number in the order of execution over contests and received budgets, from 1.
    pub number: u32,
    /// Round, from 1.
    pub round: u32,
    /// The cells, that of the highest priority first.
    pub cells: Vec<ReceivedCell>,
    /// Cpus that the threads might use.
    pub cpus: Vec<u32>,
    /// See [`ContestTrial::root_domain`].
    pub root_domain: Option<String>,
    /// See [`ContestTrial::steal_ns`].
    pub steal_ns: Option<u64>,
    /// Why nothing counts of this trial; `None` when it is good.
    pub failure: Option<String>,
}

/// A cell that spins; its gaps are `trials/<trial>/<place from 1>.gaps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedCell {
    /// What holds it.
    pub held: Budget,
    /// The class that it was given, such as `FIFO 80`.
    pub class: String,
}
