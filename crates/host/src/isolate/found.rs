//! The outcome of keeping cpus free: the moved work, the work left, and why it could not be done at all.

use serde::{Deserialize, Serialize};

/// Why cpus cannot be kept free. Each prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsolateError {
    /// All online cpus would be kept free.
    #[error("no cpu is left for other work: the machine has only {cpus}")]
    NothingLeft {
        /// The cpus, as a list.
        cpus: String,
    },
    /// The journal cannot be written; without it nothing is changed.
    #[error("{path}: the journal cannot be written ({reason}), so nothing more was changed")]
    Journal {
        /// The journal's path.
        path: String,
        /// The system's answer.
        reason: String,
    },
    /// The machine's cpus cannot be read.
    #[error("{0}")]
    Unreadable(#[from] crate::root::Unreadable),
}

/// The work moved off the cpus, and the work that could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolated {
    /// The cpus kept free.
    pub cpus: Vec<u32>,
    /// The cpus that take everything else.
    pub rest: Vec<u32>,
    /// Tasks (threads of processes, and kernel threads that let themselves be moved) taken off the cpus.
    pub tasks_moved: u32,
    /// Kernel threads that are bound to the cpus and stay.
    pub kernel_threads_left: u32,
    /// Names of those, each once.
    pub kernel_threads: Vec<String>,
    /// Other tasks that stay, each as `name (reason)`, each once.
    pub tasks_left: Vec<String>,
    /// Interrupts directed to other cpus.
    pub irqs_moved: u32,
    /// Interrupts that stay, each as `number name (reason)`.
    pub irqs_left: Vec<String>,
    /// Whether unbound kernel work is kept off the cpus; `None` where the kernel offers no switch.
    pub workqueues: Option<bool>,
    /// The state of load balancing over the cpus, one sentence.
    pub balancing: String,
    /// Cpus isolated at boot (`isolcpus=`) or by a cpuset partition before.
    pub isolcpus: Vec<u32>,
    /// Cpus without tick (`nohz_full=`).
    pub nohz_full: Vec<u32>,
}

/// `all` without `some`.
pub(super) fn others(all: &[u32], some: &[u32]) -> Vec<u32> {
    all.iter()
        .copied()
        .filter(|cpu| !some.contains(cpu))
        .collect()
}
