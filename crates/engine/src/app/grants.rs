//! Rights of a cell's processes beyond those of every process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Rights of a cell's processes beyond those of every process; none by default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// Cells of an earlier version are taken over, whose notes say less.
#[serde(default)]
pub struct Grants {
    /// The authority over classes, priorities and cpus of its threads.
    pub scheduling: Scheduling,
    /// Whether a thread that holds a mutex runs with the priority of one that waits for it (PTHREAD_PRIO_INHERIT). No
    /// budget holds a cell of several threads that has this: the kernel does not throttle a thread that inherits.
    #[serde(default)]
    pub priority_inheritance: bool,
    /// Capabilities by their full names, such as `CAP_NET_BIND_SERVICE`. With some of them a cell can escape despite all
    /// other refusals; CAP_SYS_NICE lifts no bounds of [`Scheduling::Granted`].
    pub capabilities: Vec<String>,
    /// RLIMIT_MEMLOCK in bytes; `None`: no limit.
    pub memlock_bytes: Option<u64>,
    /// RLIMIT_NOFILE.
    pub open_files: u64,
    /// RLIMIT_SIGPENDING: queued signals of its user; each POSIX timer takes one. The kernel runs timers that
    /// expire together in one interrupt, on nobody's account.
    pub pending_signals: u64,
    /// RLIMIT_MSGQUEUE: bytes of its user's POSIX message queues.
    pub message_queue_bytes: u64,
    /// RLIMIT_NPROC, which counts all processes of its user wherever they are; `None`: as this process has it.
    pub processes: Option<u64>,
    /// Which system calls are refused.
    pub seccomp: Seccomp,
}

/// The authority over classes, priorities and cpus of a cell's threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Only others outside the cell, by pid; its threads inherit their settings. RLIMIT_RTPRIO is 0.
    FromOutside,
    /// Its threads may ask: sched_setscheduler(2) and the like succeed, and set the grant, never the request. By the cell's agent where
    /// the engine can hand it the calls, else without any effect.
    Granted(Granted),
    /// Its threads, as far as its capabilities and limits allow: no budget holds such a cell.
    Any,
}

/// Grants to a cell's threads that ask for a class or for cpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// For a thread that asks for a real-time class, unless the supervisor has granted it one of its own.
    pub real_time: RealTime,
    /// The cell's cpus, among which a thread may choose.
    pub cpus: Vec<u32>,
    /// Where its threads are lowered while it has no budget: the directory of the freezer's page, and the held group.
    /// Nothing is set meanwhile.
    #[serde(default)]
    pub held_in: Option<(PathBuf, PathBuf)>,
}

/// The grant to a thread that asks for a real-time class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RealTime {
    /// EPERM.
    None,
    /// Success, and the class of its task as soon as it is known which that is.
    ByTask,
    /// The nearest priority of these, in the class that it asks for.
    Band {
        /// The lowest, from 1.
        lowest: u8,
        /// The highest, to 99.
        highest: u8,
        /// Whether one that asks for SCHED_DEADLINE gets SCHED_RR rather than SCHED_FIFO.
        round_robin: bool,
    },
}

/// Which system calls are refused with EPERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// Calls that break isolation, and others that container engines refuse: ptrace, kernel keyrings, io_uring and the like.
    Default,
    /// Only calls that break isolation.
    Cage,
    /// Nothing. For comparisons: only its missing capabilities confine such a cell.
    Off,
}

impl Default for Grants {
    fn default() -> Grants {
        Grants {
            scheduling: Scheduling::FromOutside,
            priority_inheritance: false,
            capabilities: Vec::new(),
            memlock_bytes: Some(0),
            open_files: 1024,
            pending_signals: 256,
            message_queue_bytes: 800 << 10,
            processes: None,
            seccomp: Seccomp::Default,
        }
    }
}

impl Grants {
    /// RLIMIT_RTPRIO.
    pub(crate) fn priority(&self) -> u8 {
        match &self.scheduling {
            Scheduling::FromOutside => 0,
            // Programs look at the limit before they ask; the filter has the calls that it bounds.
            Scheduling::Granted(granted) => match granted.real_time {
                RealTime::None => 0,
                RealTime::ByTask => 99,
                RealTime::Band { highest, .. } => highest,
            },
            Scheduling::Any => 99,
        }
    }
}
