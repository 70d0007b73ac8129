//! Scheduling classes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `include/uapi/linux/sched.h`.
pub const SCHED_DEADLINE: i32 = 6;

/// How the kernel chooses when a thread runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// SCHED_OTHER: a fair share, no guarantee.
    Other,
    /// SCHED_FIFO: runs until it blocks or a higher priority wants the cpu.
    Fifo {
        /// 1 (lowest) to 99 (highest).
        priority: u8,
    },
    /// SCHED_RR: as FIFO, with time slices among equals.
    RoundRobin {
        /// 1 (lowest) to 99 (highest).
        priority: u8,
    },
    /// SCHED_DEADLINE: `runtime_ns` in every `period_ns`, before `deadline_ns`. The kernel wants
    /// 1024 <= runtime <= deadline <= period.
    Deadline {
        /// Processor time per period, in nanoseconds.
        runtime_ns: u64,
        /// Relative deadline, in nanoseconds.
        deadline_ns: u64,
        /// Period, in nanoseconds.
        period_ns: u64,
    },
    /// SCHED_BATCH: as OTHER, for work that does not interact.
    Batch,
    /// SCHED_IDLE: runs when nothing else wants to.
    Idle,
    /// A policy this program does not know, by the kernel's number.
    Unknown(i32),
}

impl Class {
    /// Whether the class is a real-time one (FIFO, RR or DEADLINE).
    pub fn is_real_time(&self) -> bool {
        matches!(
            self,
            Class::Fifo { .. } | Class::RoundRobin { .. } | Class::Deadline { .. }
        )
    }

    /// The priority, 1 to 99; `None`: only FIFO and RR have one.
    pub fn priority(&self) -> Option<u8> {
        match self {
            Class::Fifo { priority } | Class::RoundRobin { priority } => Some(*priority),
            _ => None,
        }
    }

    /// The class of a policy's number and a priority, which only FIFO and RR have; DEADLINE, whose times are no numbers of
    /// these, is [`Class::Unknown`].
    pub fn of_policy(policy: i32, priority: u8) -> Class {
        match policy {
            libc::SCHED_OTHER => Class::Other,
            libc::SCHED_FIFO => Class::Fifo { priority },
            libc::SCHED_RR => Class::RoundRobin { priority },
            libc::SCHED_BATCH => Class::Batch,
            libc::SCHED_IDLE => Class::Idle,
            policy => Class::Unknown(policy),
        }
    }

    /// Policy number and priority of the classes that `sched_setscheduler` can set.
    pub fn policy(&self) -> (i32, i32) {
        match self {
            Class::Other => (libc::SCHED_OTHER, 0),
            Class::Fifo { priority } => (libc::SCHED_FIFO, i32::from(*priority)),
            Class::RoundRobin { priority } => (libc::SCHED_RR, i32::from(*priority)),
            Class::Deadline { .. } => (SCHED_DEADLINE, 0),
            Class::Batch => (libc::SCHED_BATCH, 0),
            Class::Idle => (libc::SCHED_IDLE, 0),
            Class::Unknown(policy) => (*policy, 0),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Other => write!(f, "OTHER"),
            Class::Fifo { priority } => write!(f, "FIFO {priority}"),
            Class::RoundRobin { priority } => write!(f, "RR {priority}"),
            Class::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => write!(
                f,
                "DEADLINE {}/{}/{}",
                Nanoseconds(*runtime_ns),
                Nanoseconds(*deadline_ns),
                Nanoseconds(*period_ns)
            ),
            // Where its times are not known.
            Class::Unknown(SCHED_DEADLINE) => write!(f, "DEADLINE"),
            Class::Batch => write!(f, "BATCH"),
            Class::Idle => write!(f, "IDLE"),
            Class::Unknown(policy) => write!(f, "policy {policy}"),
        }
    }
}

/// A duration in the largest of s, ms, us and ns that shows it without loss.
struct Nanoseconds(u64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        if rest == 0 {
            return write!(f, "{whole} {unit}");
        }
        let width = scale.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        write!(f, "{whole}.{} {unit}", decimals.trim_end_matches('0'))
    }
}
