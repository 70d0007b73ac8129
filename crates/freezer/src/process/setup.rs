//! Making a process fit to hold cells: separate from its starter, and never in the way of its own death.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::Mode;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{setsid, umask};
use rustix::thread::set_name;

use host::sched::{self, Class, SchedError};

use super::common::ProcessError;

/// Their name in lists of processes, and their mark after their end: at most 15 bytes.
pub(super) const NAME: &CStr = c"timecell-holder";

/// Leaves the starter: its session, its groups, and its place among the kernel's victims when memory is short. Before any thread.
pub(super) fn leave_starter() {
    // A process that leads a session already has one of its own.
    let _ = setsid();
    // Children that end are of no interest, but for the descriptors by which they are watched.
    // SAFETY: no memory is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    umask(Mode::RWXG | Mode::RWXO);
    let _ = set_name(NAME);
    let _ = std::env::set_current_dir("/");
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    leave_groups();
}

/// Goes to the top of every hierarchy: a service manager ends a service with all that is in its group, and a group's budget or
/// cpus would hold the keeper too. Where that is refused it stays.
fn leave_groups() {
    let own = host::file::text("/proc/self/cgroup").unwrap_or_default();
    // A move costs a grace period of the kernel.
    if own.lines().all(|line| line.ends_with(":/")) {
        return;
    }
    if let Ok(cgroups) = host::cgroup::detect() {
        for mount in cgroups.v1.iter().chain(&cgroups.v2) {
            let _ = fs::write(mount.point.join("cgroup.procs"), "0");
        }
    }
}

/// Gives the calling thread a class, on any cpu.
pub(super) fn set_priority(priority: u8) -> Result<(), SchedError> {
    sched::set_class(0, &Class::Fifo { priority })
}

/// The part of a process that is locked in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// All of it, the whole program included.
    All,
    /// Only what it touches, once it does. The kernel tears down a small process in half the time, during which nobody
    /// holds its groups. The rest of the program is in memory too, because the heir has locked it: touching it costs a
    /// microsecond and no disk access.
    Touched,
}

/// Locks the present and future memory of the process.
pub(super) fn lock_memory(what: Lock) -> Result<(), ProcessError> {
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    let flags = match what {
        Lock::All => all,
        Lock::Touched => all | MlockAllFlags::ONFAULT,
    };
    mlockall(flags).map_err(|error| ProcessError::of("mlockall")(error.into()))
}

/// Goes on as a child of nobody who would have to wait for it; the calling process ends. Before any thread.
pub(super) fn become_orphan() -> io::Result<()> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => Ok(()),
        // SAFETY: ends at once.
        pid if pid > 0 => unsafe { libc::_exit(0) },
        _ => Err(io::Error::last_os_error()),
    }
}

/// Says that it is at work, and nothing any more.
pub(super) fn say_ready() {
    super::common::say(&super::wire::READY);
    if let Ok(nothing) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for stream in 0..3 {
            // SAFETY: two open descriptors of this process's own.
            unsafe { libc::dup2(nothing.as_raw_fd(), stream) };
        }
    }
}
