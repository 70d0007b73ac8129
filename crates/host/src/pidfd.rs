//! Processes held by descriptor: their end wakes a waiter, and a signal never hits a stranger.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A descriptor of the process that has this pid now.
///
/// # Errors
/// The kernel's error: there is no such process, or it is a thread (EINVAL).
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    let pid = (pid > 0).then(|| Pid::from_raw(pid)).flatten();
    Ok(pidfd_open(pid.ok_or(Errno::INVAL)?, PidfdFlags::empty())?)
}

/// Sends a signal that has a name, such as SIGTERM.
///
/// # Errors
/// The kernel's error: the process has ended (ESRCH), or is not to be signalled by this one; EINVAL for real-time signals and 0.
pub fn send(process: impl AsFd, signal: i32) -> io::Result<()> {
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    Ok(pidfd_send_signal(process, signal)?)
}

/// Sends SIGKILL; fine if the process has ended.
///
/// # Errors
/// Other errors of the kernel.
pub fn kill(process: impl AsFd) -> io::Result<()> {
    match pidfd_send_signal(process, Signal::KILL) {
        Err(error) if error != Errno::SRCH => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether the process ends within this time.
pub fn ended_within(process: impl AsFd, patience: Duration) -> bool {
    ready_within(process, patience)
}

/// Whether there is something to be read of any descriptor within this time: its end counts too.
pub fn ready_within(file: impl AsFd, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).ok();
        let mut asked = [PollFd::new(&file, PollFlags::IN)];
        match poll(&mut asked, limit.as_ref()) {
            Ok(1..) => return true,
            _ if left.is_zero() => return false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_seen_and_a_signal_reaches_one_that_lives() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = open(child.id().cast_signed()).unwrap();
        assert!(!ended_within(&process, Duration::ZERO));
        assert!(!ended_within(&process, Duration::from_millis(2)));
        send(&process, libc::SIGTERM).unwrap();
        assert!(ended_within(&process, Duration::from_secs(60)));
        child.wait().unwrap();
        kill(&process).unwrap();
        let gone = send(&process, libc::SIGTERM).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
        for nobody in [0, -1, i32::MAX] {
            assert!(open(nobody).is_err(), "{nobody}");
        }
    }
}
