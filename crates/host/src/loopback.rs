//! The loopback device of a process's network namespace, which is down in a new namespace.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Brings it up in the network namespace of the process of this pidfd (setns(2) takes one from Linux 5.8).
///
/// # Errors
/// The kernel's error: the process has ended, or this one lacks CAP_SYS_ADMIN or CAP_NET_ADMIN there.
pub fn up(process: BorrowedFd) -> io::Result<()> {
    std::thread::scope(|scope| {
        // A namespace is a thread's: one that ends here takes it along.
        let thread = std::thread::Builder::new().name("loopback".to_owned());
        let done = thread.spawn_scoped(scope, || {
            move_into_link_name_space(process, Some(LinkNameSpaceType::Network))?;
            up_here()
        })?;
        done.join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that brings it up has ended")))
    })
}

/// Brings it up in the namespace of this thread.
fn up_here() -> io::Result<()> {
    let kind = SocketType::DGRAM;
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    // SAFETY: a structure of plain numbers, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the request is as long as the kernel expects, and the name ends in NUL.
    if unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &raw mut request,
        )
    } != 0
    {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: as above.
    if unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    } != 0
    {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
