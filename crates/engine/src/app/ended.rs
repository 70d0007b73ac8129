//! How a cell's program ended, and the processes that learn it.
//!
//! The kernel tells a process's status to its parent. The parent of a cell's program is gone once the cell is made, so
//! the program becomes the child of the nearest process that has asked to be a *subreaper*: the supervisor. When the
//! supervisor is killed, the program goes to the machine's init, and a supervisor that adopts the cell is not its parent:
//! it learns of the end, but of the status only where the kernel tells it through a pidfd (Linux 6.15).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::process::{WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};
use serde::{Deserialize, Serialize};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// By itself, with this status, 0 to 255.
    Exited(i32),
    /// By a signal of this number.
    Killed(i32),
    /// Somehow: it was not a child of this process, and the kernel does not tell others.
    Unknown,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exited(status) => write!(f, "ended with status {status}"),
            Ended::Killed(signal) => write!(f, "was killed by signal {signal}"),
            Ended::Unknown => write!(f, "ended with unknown status"),
        }
    }
}

/// Makes this process the new parent of its cells' programs, so that it learns how they end. Other
/// orphans among its descendants are handed to it as well.
///
/// # Errors
/// In the kernel's words.
pub fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Reaps a child of ours and returns how it ended; `None` as long as it runs.
///
/// # Errors
/// ECHILD for a process that is not a child of this one.
pub(crate) fn reap(pidfd: &OwnedFd) -> io::Result<Option<Ended>> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::PidFd(pidfd.as_fd()), how)?;
    Ok(status.map(|status| {
        let signal = status.terminating_signal();
        match (status.exit_status(), signal) {
            (Some(status), _) => Ended::Exited(status),
            (None, signal) => Ended::Killed(signal.unwrap_or_default()),
        }
    }))
}

/// The kernel's word about the end of a process that is not our child.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// How it ended.
    Status(Ended),
    /// Not yet: its parent has not heard of it.
    NotYet,
    /// Never: the kernel is too old.
    Never,
}

/// Asks the kernel how an ended process ended (PIDFD_GET_INFO, Linux 6.13; the status, 6.15).
pub(crate) fn ask(pidfd: &OwnedFd) -> Told {
    /// `struct pidfd_info` in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup_id: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const EXIT: u64 = 1 << 3;
    // _IOWR(0xFF, 11, struct pidfd_info)
    const GET_INFO: u32 = 3 << 30 | (size_of::<Info>() as u32) << 16 | 0xff << 8 | 11;
    let mut info = Info {
        mask: EXIT,
        ..Info::default()
    };
    // SAFETY: a structure of the size that stands in the request.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    if answer != 0 {
        return Told::Never;
    }
    if info.mask & EXIT == 0 {
        return Told::NotYet;
    }
    let status = info.exit_code;
    Told::Status(if libc::WIFSIGNALED(status) {
        Ended::Killed(libc::WTERMSIG(status))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    })
}
