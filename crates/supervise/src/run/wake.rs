//! Signals that ask the supervisor to end the mission.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use super::RunError;

/// Signals that ask the supervisor to end the mission, as something that can be waited for.
#[derive(Debug)]
pub struct Signals {
    stream: UnixStream,
}

impl Signals {
    /// Takes SIGINT, SIGTERM and SIGHUP for the whole process from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take() -> Result<Signals, RunError> {
        let failed = RunError::system("take the signals that end it");
        let taken = || {
            let (stream, end) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                signal_hook::low_level::pipe::register(signal, end.try_clone()?)?;
            }
            Ok(Signals { stream })
        };
        taken().map_err(failed)
    }

    /// Whether one came since the last time.
    pub fn came(&self) -> bool {
        use std::io::Read;
        let mut bytes = [0; 16];
        (&self.stream).read(&mut bytes).is_ok_and(|read| read > 0)
    }
}

/// Sleeps until one of the descriptors is readable, the kernel has changed one of the files of `alarms` (POLLPRI), a signal
/// came, or the instant `until_ns` (CLOCK_MONOTONIC) is there. Returns whether a file of `alarms` was changed.
pub(super) fn sleep(
    ends: &[RawFd],
    alarms: &[RawFd],
    signals: &Signals,
    until_ns: Option<i64>,
) -> Result<bool, RunError> {
    let watch_for = |fd: i32, events| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let watch = |fd: i32| watch_for(fd, libc::POLLIN);
    let mut watched: Vec<libc::pollfd> = ends.iter().map(|end| watch(*end)).collect();
    watched.push(watch(signals.stream.as_raw_fd()));
    let before_alarms = watched.len();
    watched.extend(alarms.iter().map(|fd| watch_for(*fd, libc::POLLPRI)));
    let wait = until_ns.map(|until| {
        let left = (until - timecell_client::now_ns()).max(0);
        libc::timespec {
            tv_sec: left / 1_000_000_000,
            tv_nsec: left % 1_000_000_000,
        }
    });
    let wait = wait.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: an array of the length given, and a time on the stack or none.
    let answer = unsafe {
        libc::ppoll(
            watched.as_mut_ptr(),
            watched.len() as libc::nfds_t,
            wait,
            std::ptr::null(),
        )
    };
    let error = std::io::Error::last_os_error();
    if answer < 0 && error.kind() != std::io::ErrorKind::Interrupted {
        return Err(RunError::system("wait")(error));
    }
    let mut alarms = watched[before_alarms..].iter();
    Ok(answer > 0 && alarms.any(|alarm| alarm.revents != 0))
}
