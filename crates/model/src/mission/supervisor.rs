//! The reservation that a mission's supervisor makes for itself.

use super::keys::CPUS;
use crate::Duration;
use crate::file::{Field, Kind, table};

table! {
    /// The supervisor's own reservation: within its budget it runs before every cell of class FIFO, beyond it as an ordinary process.
    pub struct Supervisor: "supervisor", "`supervisor`" {
        /// `other`: reserves nothing and runs as an ordinary process
        class: SupervisorClass, Default "\"fifo\"";
        /// cpu time of all its threads in each period; counted on every cpu on which it may run
        ///
        /// At least [`Supervisor::LEAST_NS`].
        budget: Duration = OWN_TIME, Default "\"1ms\"";
        /// the period, from the budget to 1 s
        period: Duration = OWN_TIME, Default "\"20ms\"";
        /// cpus on which its threads run, of those on which timecell was started
        ///
        /// Empty: those on which timecell was started, or as many of them as the cells leave room on.
        cpus: Vec<u32> = CPUS, Without "those on which timecell was started, less those on which the cells leave it no room";
    }
}

const OWN_TIME: Kind = Kind::Time {
    least_ns: Supervisor::LEAST_NS,
};

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
        Supervisor::unread()
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
