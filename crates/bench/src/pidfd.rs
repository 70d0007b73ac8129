//! Processes held by descriptor: their end wakes a waiter, and a signal never hits a stranger.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A descriptor of the process that has this pid now.
pub(crate) fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the answer is checked, and a descriptor that is not negative is ours.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, pid, 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Waits until the process has ended, at most so many milliseconds; whether it has.
pub(crate) fn ended_within(process: &OwnedFd, millis: i32) -> bool {
    let mut wait = libc::pollfd {
        fd: process.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd on the stack.
    unsafe { libc::poll(&raw mut wait, 1, millis) > 0 }
}

/// Sends SIGKILL; fine if the process has ended.
pub(crate) fn kill(process: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain system call on an open descriptor.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    match io::Error::last_os_error() {
        error if answer != 0 && error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}
