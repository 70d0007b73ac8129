//! The mechanisms that hold the cells of a mission to their budgets.

use super::CellClass;
use crate::taskset;

/// The kernel mechanism that holds the cells of a mission to their budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Enforcer {
    /// Real-time groups of the cpu controller (cgroup v1, CONFIG_RT_GROUP_SCHED): a budget for the whole cell on each of its
    /// cpus.
    RtCgroup,
    /// SCHED_DEADLINE: a budget for each thread.
    Deadline,
    /// Cpus of their own and nothing else: no budget is enforced.
    CpusetOnly,
}

impl Enforcer {
    /// Every enforcer and its name in files and tables.
    pub const NAMES: [(&'static str, Enforcer); 3] = [
        ("rt-cgroup", Enforcer::RtCgroup),
        ("deadline", Enforcer::Deadline),
        ("cpuset-only", Enforcer::CpusetOnly),
    ];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Enforcer::RtCgroup => "rt-cgroup",
            Enforcer::Deadline => "deadline",
            Enforcer::CpusetOnly => "cpuset-only",
        }
    }

    /// The mechanism as the analysis knows it; `None`: it enforces no budget.
    pub const fn analysed(self) -> Option<taskset::Enforcer> {
        match self {
            Enforcer::RtCgroup => Some(taskset::Enforcer::RtCgroup),
            Enforcer::Deadline => Some(taskset::Enforcer::Deadline),
            Enforcer::CpusetOnly => None,
        }
    }

    /// Whether cells of this class can be held by it. A real-time group does not hold threads of SCHED_DEADLINE, and
    /// SCHED_DEADLINE none of SCHED_FIFO; best-effort cells are held by nothing, and need nothing.
    pub const fn holds(self, class: CellClass) -> bool {
        !matches!(
            (self, class),
            (Enforcer::RtCgroup, CellClass::Deadline) | (Enforcer::Deadline, CellClass::Fifo)
        )
    }
}
