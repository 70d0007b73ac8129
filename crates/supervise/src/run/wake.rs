//! Signals that ask the supervisor to end the mission.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use super::RunError;

/// Signals that ask the supervisor to end the mission, as something that can be waited for.
#[derive(Debug)]
pub struct Signals {
    stream: UnixStream,
    /// The one that came last; 0: none.
    last: Arc<AtomicUsize>,
    hands_on: bool,
}

/// The process that other signals are handed on to; 0: none.
static TO: AtomicI32 = AtomicI32::new(0);
/// Those that came while there was nobody, a bit for each number.
static WAITING: AtomicU64 = AtomicU64::new(0);
/// Those that are handed on as they are. None of them asks for the end but SIGQUIT, which a program may take for it.
const OTHERS: [i32; 4] = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH, libc::SIGQUIT];

impl Signals {
    /// Takes SIGINT, SIGTERM and SIGHUP for the whole process from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take() -> Result<Signals, RunError> {
        Signals::take_for(false)
    }

    /// The same for a supervisor of one program (`timecell run`): cells are asked to end by the signal that came, and
    /// SIGUSR1, SIGUSR2, SIGWINCH and SIGQUIT are handed on to the process of [`Signals::hand_on_to`].
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take_for_one() -> Result<Signals, RunError> {
        Signals::take_for(true)
    }

    fn take_for(hands_on: bool) -> Result<Signals, RunError> {
        let failed = RunError::system("take the signals that end it");
        let taken = || {
            let (stream, end) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            let last = Arc::new(AtomicUsize::new(0));
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                // Before it wakes anybody.
                let number = usize::try_from(signal).unwrap_or(0);
                signal_hook::flag::register_usize(signal, Arc::clone(&last), number)?;
                signal_hook::low_level::pipe::register(signal, end.try_clone()?)?;
            }
            for signal in OTHERS.into_iter().filter(|_| hands_on) {
                // SAFETY: an atomic and one system call, which may be made in a handler.
                unsafe { signal_hook::low_level::register(signal, move || hand_on(signal)) }?;
            }
            Ok(Signals {
                stream,
                last,
                hands_on,
            })
        };
        taken().map_err(failed)
    }

    /// From now on signals that are handed on go to this process, also those that came before; 0: they wait. To be set before it can be
    /// another one's number.
    pub fn hand_on_to(pid: i32) {
        TO.store(pid, Ordering::SeqCst);
        deliver();
    }

    /// The signal that came last.
    pub fn last(&self) -> Option<i32> {
        let number = self.last.load(Ordering::SeqCst);
        i32::try_from(number).ok().filter(|signal| *signal != 0)
    }

    /// By which signal cells are asked to end.
    pub(super) fn ends_by(&self) -> i32 {
        self.last()
            .filter(|_| self.hands_on)
            .unwrap_or(libc::SIGTERM)
    }

    /// Whether one came since the last time.
    pub fn came(&self) -> bool {
        use std::io::Read;
        let mut bytes = [0; 16];
        (&self.stream).read(&mut bytes).is_ok_and(|read| read > 0)
    }
}

fn hand_on(signal: i32) {
    WAITING.fetch_or(1 << signal, Ordering::SeqCst);
    deliver();
}

/// Hands on pending signals, if there is a process. The thread that takes one out of the pending ones delivers it, and
/// no other does.
fn deliver() {
    let pid = TO.load(Ordering::SeqCst);
    if pid > 1 {
        let waiting = WAITING.swap(0, Ordering::SeqCst);
        for signal in OTHERS
            .into_iter()
            .filter(|signal| waiting & (1 << signal) != 0)
        {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(pid, signal) };
        }
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
