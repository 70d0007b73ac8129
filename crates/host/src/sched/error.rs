//! Why the kernel refused a request to the scheduler.

use super::class::Class;

/// Why the kernel refused a request to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedError {
    /// The caller lacks the privilege for a real-time class (EPERM).
    #[error("{class} was refused for process {pid}: {why}; {fix}")]
    NoPrivilege {
        /// The requested class.
        class: Class,
        /// The process; 0 is the calling one.
        pid: i32,
        /// Which privilege is missing.
        why: String,
        /// The remedy.
        fix: &'static str,
    },
    /// The rt cgroup of the process has no runtime (EPERM although the privilege is there).
    #[error(
        "{class} was refused for process {pid}: its group {group} has no real-time budget (cpu.rt_runtime_us is 0); give it one, or move the process to a group that has one"
    )]
    NoRtBudget {
        /// The requested class.
        class: Class,
        /// The process; 0 is the calling one.
        pid: i32,
        /// The directory of the group.
        group: String,
    },
    /// Both the privilege and the group's budget are missing (EPERM).
    #[error(
        "{class} was refused for process {pid} for two reasons: {why}, and its group {group} has no real-time budget (cpu.rt_runtime_us is 0)"
    )]
    NoPrivilegeNoBudget {
        /// The requested class.
        class: Class,
        /// The process; 0 is the calling one.
        pid: i32,
        /// Which privilege is missing.
        why: String,
        /// The directory of the group.
        group: String,
    },
    /// A privileged caller was refused DEADLINE because the process may not use every cpu of its
    /// root domain (EPERM).
    #[error(
        "{class} was refused for process {pid}: its affinity is narrower than its root domain; widen it, or give it an exclusive cpuset"
    )]
    AffinityTooNarrow {
        /// The requested class.
        class: Class,
        /// The process; 0 is the calling one.
        pid: i32,
    },
    /// The deadline tasks of these cpus would ask for more than the kernel admits (EBUSY).
    #[error(
        "{class} was refused for process {pid}: with the deadline tasks already there it would exceed what the kernel admits (95 % of these cpus unless changed)"
    )]
    OverBandwidth {
        /// The requested class.
        class: Class,
        /// The process; 0 is the calling one.
        pid: i32,
    },
    /// The parameters are not ones the kernel accepts (EINVAL).
    #[error("{class} was refused for process {pid}: {why}")]
    Invalid {
        /// The requested class.
        class: Class,
        /// The process; 0 is the calling one.
        pid: i32,
        /// Why it is invalid, a clause.
        why: String,
    },
    /// There is no such process (ESRCH).
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The process that was asked for.
        pid: i32,
    },
    /// None of the cpus can be used by the process (EINVAL), or the list is empty or too high.
    #[error(
        "process {pid} cannot be bound to cpus {cpus:?}: none of them is online and in its cpuset"
    )]
    NoUsableCpu {
        /// The process; 0 is the calling one.
        pid: i32,
        /// The list asked for, as in "0-3,5".
        cpus: String,
    },
    /// Anything else the kernel said.
    #[error("{call} failed for process {pid}: {reason}")]
    Other {
        /// The system call.
        call: &'static str,
        /// The process; 0 is the calling one.
        pid: i32,
        /// The kernel's reason.
        reason: String,
        /// The kernel's error number.
        errno: i32,
    },
}

impl SchedError {
    /// The kernel's error number; EINVAL for a useless list of cpus, which the kernel is not asked about.
    pub fn errno(&self) -> i32 {
        match self {
            SchedError::NoPrivilege { .. }
            | SchedError::NoRtBudget { .. }
            | SchedError::NoPrivilegeNoBudget { .. }
            | SchedError::AffinityTooNarrow { .. } => libc::EPERM,
            SchedError::OverBandwidth { .. } => libc::EBUSY,
            SchedError::Invalid { .. } | SchedError::NoUsableCpu { .. } => libc::EINVAL,
            SchedError::NoSuchProcess { .. } => libc::ESRCH,
            SchedError::Other { errno, .. } => *errno,
        }
    }
}
