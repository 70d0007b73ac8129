//! Shared by the processes of one place: descriptors that each hands to those that it starts.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

use super::common::{ProcessError, WORD};
use crate::sys;

/// The lock that is held as long as a keeper or its watcher lives.
const LOCK: &str = "lock";
/// The socket for commands.
pub(super) const SOCKET: &str = "socket";

/// Open in keeper and watcher alike.
pub(super) struct Handed {
    pub(super) listener: UnixListener,
    /// Wakes the watcher.
    pub(super) bell: Arc<File>,
    /// Locked.
    pub(super) lock: File,
}

impl Handed {
    /// For the first keeper of a place, or one that comes after all are dead: under the lock, a new socket.
    pub(super) fn make(dir: &Path, lock: File) -> Result<Handed, ProcessError> {
        let path = dir.join(SOCKET);
        let _ = std::fs::remove_file(&path);
        let failed = || ProcessError::of(path.display().to_string());
        let listener = UnixListener::bind(&path).map_err(failed())?;
        listener.set_nonblocking(true).map_err(failed())?;
        let bell = sys::event_file().map_err(ProcessError::of("eventfd"))?;
        Ok(Handed {
            listener,
            bell: Arc::new(bell),
            lock,
        })
    }

    fn numbers(&self) -> [RawFd; 3] {
        [
            self.listener.as_raw_fd(),
            self.bell.as_raw_fd(),
            self.lock.as_raw_fd(),
        ]
    }

    /// Those that the caller was started with.
    pub(super) fn from_words(words: &[String]) -> Option<Handed> {
        let [listener, bell, lock] = words else {
            return None;
        };
        let number = |word: &String| word.parse::<RawFd>().ok().filter(|fd| is_open(*fd));
        let (listener, bell, lock) = (number(listener)?, number(bell)?, number(lock)?);
        for fd in [listener, bell, lock] {
            hand_down(fd, false).ok()?;
        }
        // SAFETY: open, and handed to this process for this; nobody else here has them.
        unsafe {
            Some(Handed {
                listener: UnixListener::from_raw_fd(listener),
                bell: Arc::new(File::from_raw_fd(bell)),
                lock: File::from_raw_fd(lock),
            })
        }
    }

    /// Starts the watcher, which has them too.
    pub(super) fn start_watcher(&self, dir: &Path) -> io::Result<Child> {
        let mut command = own_program("watcher", dir);
        command.args(self.numbers().map(|fd| fd.to_string()));
        // For this child only: an heir that had the lock would wait for itself.
        for fd in self.numbers() {
            hand_down(fd, true)?;
        }
        let child = command.spawn();
        for fd in self.numbers() {
            hand_down(fd, false)?;
        }
        child
    }
}

/// This program in another role, without streams.
pub(super) fn own_program(role: &str, dir: &Path) -> Command {
    // Even if the file was replaced or removed: the one that runs.
    let mut command = Command::new("/proc/self/exe");
    command
        .args([WORD, role])
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The place's lock, not locked.
pub(super) fn open_lock(dir: &Path) -> io::Result<File> {
    open(dir, LOCK)
}

/// The lock that the heir has, not locked.
pub(super) fn open_heirs_lock(dir: &Path) -> io::Result<File> {
    open(dir, "heir.lock")
}

fn open(dir: &Path, name: &str) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(dir.join(name))
}

/// Whether the lock was free, and is the caller's now.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether children that this process starts have a descriptor, too.
pub(super) fn hand_down(fd: RawFd, handed: bool) -> io::Result<()> {
    let flags = match handed {
        true => FdFlags::empty(),
        false => FdFlags::CLOEXEC,
    };
    // SAFETY: only borrowed for the call, which refuses a descriptor that is not open.
    Ok(fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, flags)?)
}

/// Whether a number is that of a descriptor, and none of the streams'.
pub(super) fn is_open(fd: RawFd) -> bool {
    // SAFETY: as above.
    fd > 2 && fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok()
}
