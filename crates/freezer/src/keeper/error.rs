//! Why an enforcing thread does not hold a group.

use std::io;

use host::sched::SchedError;

use crate::group::GroupError;
use crate::stats::MOST_GROUPS;

/// Why groups cannot be held on a cpu.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The priority leaves no room.
    #[error("priority {0} for the enforcing thread; it must be 2 to 99, above all cells")]
    Priority(u8),
    /// It cannot get its cpu or class.
    #[error("the enforcing thread cannot get its cpu and class: {0}")]
    Class(#[from] SchedError),
    /// Its memory cannot be locked.
    #[error(
        "the enforcing thread's memory cannot be locked: {0}; run as root or with CAP_IPC_LOCK"
    )]
    Memory(io::Error),
    /// The kernel refuses the thread's means of waiting.
    #[error("the enforcing thread cannot wait: {0}")]
    Waiting(io::Error),
    /// A group cannot be opened, or not be frozen and thawed.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// No room.
    #[error("{MOST_GROUPS} groups are already held on this cpu")]
    Full,
    /// Not held here.
    #[error("no such group is held on this cpu")]
    NotHeld,
    /// The keeper is gone.
    #[error("the enforcing thread has ended")]
    Ended,
}

impl KeeperError {
    /// The system's error number; EIO where no call failed.
    pub(crate) fn errno(&self) -> i32 {
        let said = match self {
            KeeperError::Memory(reason) | KeeperError::Waiting(reason) => reason.raw_os_error(),
            KeeperError::Group(error) => error.reason.raw_os_error(),
            KeeperError::Class(error) => Some(error.errno()),
            _ => None,
        };
        said.unwrap_or(libc::EIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::sched::{self, Class};

    #[test]
    fn a_refusal_is_told_with_what_the_kernel_said() {
        // Above the highest pid that a kernel gives out, and above the highest priority.
        let refused = [(2_000_000_000, 1), (0, 100)].map(|(pid, priority)| {
            let error = sched::set_class(pid, &Class::Fifo { priority }).unwrap_err();
            KeeperError::from(error).errno()
        });
        assert_eq!(refused, [libc::ESRCH, libc::EINVAL]);
        // An offline cpu, or none of this machine.
        let elsewhere = sched::set_affinity(0, &[9_999]).unwrap_err();
        assert_eq!(KeeperError::from(elsewhere).errno(), libc::EINVAL);
        assert_eq!(KeeperError::Ended.errno(), libc::EIO, "nothing was asked");
    }
}
