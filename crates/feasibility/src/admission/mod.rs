//! Whether the kernel's own arithmetic would admit the reservations: SCHED_DEADLINE, rt-cgroups, HCBS, or for the freezer only
//! its limit. That differs from whether the deadlines hold, and the answer says where. The arithmetic itself is in crate
//! `analysis`; nothing here asks the kernel.

mod ask;
mod deadline;
mod freezer;
mod groups;
mod measured;
mod standing;
#[cfg(test)]
mod tests;
mod words;

use analysis::Ns;
use model::Enforcer;
use serde::Serialize;

pub(super) use ask::of_design;
pub use ask::{Known, ReactionText, RtLimit, admission};
pub(super) use deadline::admits;
pub use measured::means;
pub use standing::Standing;
pub use words::admission_text;

/// The kernel's answer about the reservations of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Admission {
    /// The mechanism.
    pub enforcer: Enforcer,
    /// `sched_rt_runtime_us`; none: no limit.
    pub limit_runtime_ns: Option<Ns>,
    /// `sched_rt_period_us`.
    pub limit_period_ns: Ns,
    /// Whether the file does not say how many cpus there are, so that the cells were assumed to be on one.
    pub cpus_assumed: bool,
    /// Each bound that the kernel checks.
    pub bounds: Vec<Bound>,
    /// The writes to the files of groups, in this order; empty for SCHED_DEADLINE.
    pub writes: Vec<Write>,
    /// Whether it admits them all.
    pub admitted: bool,
    /// Notes.
    pub notes: Vec<String>,
    /// The two answers together.
    pub standing: Standing,
}

/// A sum of ratios that the kernel compares with a bound, in 2^-20 of a cpu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// `cpu 0`, or the name of another bounded thing.
    pub of: String,
    /// The names of the cells that are counted.
    pub cells: Vec<String>,
    /// The sum of their ratios.
    pub asked: u64,
    /// The bound on the sum; none: there is no limit.
    pub available: Option<u64>,
    /// Why the kernel refuses, each with the cell that it would refuse.
    pub refusals: Vec<String>,
}

/// One write to a group's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// The file.
    pub file: String,
    /// The value to write, in us.
    pub value: String,
}
