//! The kernel's answers to reservations that it refuses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Ns;

/// The kernel's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Errno {
    /// Invalid argument.
    Einval,
    /// Operation not permitted.
    Eperm,
    /// Device or resource busy.
    Ebusy,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Einval => "EINVAL",
            Errno::Eperm => "EPERM",
            Errno::Ebusy => "EBUSY",
        })
    }
}

/// Why the kernel refuses. Ratios are in 2^-20 of a cpu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// `sched_runtime` below 1024 ns.
    #[error("reservation {index}: a runtime of {runtime} ns is below the minimum of 1024 ns")]
    RuntimeTooShort {
        /// Index in the set.
        index: usize,
        /// Runtime, ns.
        runtime: Ns,
    },
    /// `sched_deadline` is 0.
    #[error("reservation {index}: the deadline is 0")]
    NoDeadline {
        /// Index in the set.
        index: usize,
    },
    /// Not runtime <= deadline <= period.
    #[error(
        "reservation {index}: runtime <= deadline <= period does not hold for {runtime}, {deadline} and {period} ns"
    )]
    OutOfOrder {
        /// Index in the set.
        index: usize,
        /// Runtime, ns.
        runtime: Ns,
        /// Relative deadline, ns.
        deadline: Ns,
        /// Period, ns.
        period: Ns,
    },
    /// The period is outside `sched_deadline_period_min_us` to `sched_deadline_period_max_us`.
    #[error("reservation {index}: a period of {period} ns is not within {least} to {most} ns")]
    PeriodOutOfRange {
        /// Index in the set.
        index: usize,
        /// Period, ns.
        period: Ns,
        /// Least period, ns.
        least: Ns,
        /// Longest period, ns.
        most: Ns,
    },
    /// The thread may not run on every cpu of its root domain.
    #[error(
        "reservation {index}: its affinity is narrower than its root domain; pin it by an exclusive cpuset instead"
    )]
    Affinity {
        /// Index in the set.
        index: usize,
    },
    /// `sched_rt_runtime_us` is 0: no bandwidth at all.
    #[error(
        "reservation {index}: sched_rt_runtime_us is 0, which leaves SCHED_DEADLINE no bandwidth"
    )]
    NoBandwidth {
        /// Index in the set.
        index: usize,
    },
    /// The root domain has no room left.
    #[error(
        "reservation {index}: the root domain would have to give {demanded} of 2^20 and may give {available}"
    )]
    DomainFull {
        /// Index of the first reservation that does not fit.
        index: usize,
        /// Sum of the ratios with this reservation.
        demanded: u64,
        /// The ratio that the root domain may give.
        available: u64,
    },
    /// A group that is not there, or a tree whose parents do not come first.
    #[error("there is no group {group}, or its parent does not come before it")]
    NoGroup {
        /// Index of the group.
        group: usize,
    },
    /// A time that is no whole number of microseconds, which the files are in.
    #[error("group {group}: {time} ns is not a whole number of microseconds")]
    NotMicroseconds {
        /// Index of the group.
        group: usize,
        /// The time, ns.
        time: Ns,
    },
    /// A period of 0, or a root group without runtime.
    #[error("group {group}: a period of 0 or a root group without runtime is refused")]
    Nothing {
        /// Index of the group.
        group: usize,
    },
    /// More runtime than period. Where both change, the period must be written before the runtime.
    #[error(
        "group {group}: a runtime of {runtime} ns is longer than the period of {period} ns; write the period first"
    )]
    LongerThanPeriod {
        /// Index of the group.
        group: usize,
        /// Runtime, ns.
        runtime: Ns,
        /// Period, ns.
        period: Ns,
    },
    /// The runtime would become 0 under real-time tasks.
    #[error("group {group}: it has real-time tasks, which a runtime of 0 would starve")]
    TasksWouldStarve {
        /// Index of the group.
        group: usize,
    },
    /// More than `sched_rt_runtime_us` allows.
    #[error("group {group}: {ratio} of 2^20 is more than the whole machine's {global}")]
    AboveGlobal {
        /// Index of the group.
        group: usize,
        /// Ratio of the group.
        ratio: u64,
        /// Ratio of the machine.
        global: u64,
    },
    /// The children of a group have more than the group.
    #[error(
        "group {group}: its children have {children} of 2^20 together and it has {own}; raise it first"
    )]
    ChildrenAboveParent {
        /// Index of the parent.
        group: usize,
        /// Sum of the children's ratios.
        children: u64,
        /// Ratio of the parent.
        own: u64,
    },
    /// A real-time task in a group without runtime.
    #[error("group {group}: it has no runtime, so no real-time task may enter it")]
    NoRuntime {
        /// Index of the group.
        group: usize,
    },
    /// HCBS: the root group does not fit beside the SCHED_DEADLINE bandwidth of a root domain.
    #[error(
        "root domain {domain}: the groups' {groups} and SCHED_DEADLINE's {others} of 2^20 exceed {available}"
    )]
    RootAboveDomain {
        /// Index of the root domain.
        domain: usize,
        /// The ratio that the root group reserves on all its cpus.
        groups: u64,
        /// The ratio of SCHED_DEADLINE threads and fair servers there.
        others: u64,
        /// The ratio that the root domain may give.
        available: u64,
    },
}

impl Refusal {
    /// The error number that the system call or the write returns.
    ///
    /// ```
    /// use timecell_analysis::linux::{Errno, Refusal};
    ///
    /// assert_eq!(Refusal::Affinity { index: 0 }.errno(), Errno::Eperm);
    /// ```
    pub const fn errno(&self) -> Errno {
        match self {
            Refusal::Affinity { .. } | Refusal::NoBandwidth { .. } => Errno::Eperm,
            Refusal::DomainFull { .. }
            | Refusal::RootAboveDomain { .. }
            | Refusal::TasksWouldStarve { .. } => Errno::Ebusy,
            _ => Errno::Einval,
        }
    }
}
