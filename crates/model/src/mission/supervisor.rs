//! What the supervisor of a mission reserves for itself.

use crate::Duration;

/// The reservation of the supervisor: within its budget, its threads run before every cell of class FIFO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    /// Class of its threads while they have some of the budget left.
    pub class: SupervisorClass,
    /// Cpu time of all its threads together in each period, at least [`Supervisor::LEAST_NS`].
    pub budget: Duration,
    /// The period, at least the budget.
    pub period: Duration,
    /// Cpus on which its threads run; empty: those on which timecell was started, or as many of them as the cells leave room on.
    pub cpus: Vec<u32>,
}

impl Supervisor {
    /// The smallest budget, ns: below it, watching the budget would use up most of it.
    pub const LEAST_NS: i64 = 200_000;
    /// The longest period, ns: a supervisor that has used up its budget is an ordinary process until the period ends.
    pub const LONGEST_NS: i64 = 1_000_000_000;
    /// SCHED_FIFO priority of its threads.
    pub const PRIORITY: u8 = 98;
}

impl Default for Supervisor {
    /// 5 % of a cpu, in pieces that hardly disturb cells with deadlines of tens of ms.
    fn default() -> Supervisor {
        Supervisor {
            class: SupervisorClass::Fifo,
            budget: Duration::from_ns(1_000_000),
            period: Duration::from_ns(20_000_000),
            cpus: Vec::new(),
        }
    }
}

choice! {
    /// Class of a supervisor's threads.
    pub enum SupervisorClass {
        /// SCHED_FIFO within the budget, SCHED_OTHER beyond it.
        Fifo = "fifo",
        /// SCHED_OTHER always: nothing is reserved.
        Other = "other",
    }
}
