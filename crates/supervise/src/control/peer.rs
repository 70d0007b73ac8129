//! The user at the other end of a connection.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Process and user that have opened the other end (`SO_PEERCRED`, unix(7)); the process is 0 where it has no number here.
pub(super) fn of(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a socket, and a buffer of the length given.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    match answer {
        0 => Ok(peer),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The user of this process.
pub(super) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this user may be at the other end, as supervisor or as client: root or the same user.
pub(super) fn may(user: u32, own: u32) -> bool {
    user == 0 || user == own
}
