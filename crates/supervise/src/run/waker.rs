//! Wakes the supervisor's loop.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Wakes the loop from another thread.
#[derive(Debug, Clone)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> io::Result<Waker> {
        // SAFETY: no memory is involved; a descriptor that is not negative is ours.
        unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                fd if fd >= 0 => Ok(Waker(Arc::new(OwnedFd::from_raw_fd(fd)))),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    pub(super) fn wake(&self) {
        let one = 1_u64;
        // A counter that is full wakes as well.
        // SAFETY: eight bytes on the stack.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Whether it was woken since the last time.
    pub(super) fn was_woken(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: eight bytes on the stack.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    /// Readable once woken.
    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_wakes_once() {
        let waker = Waker::new().unwrap();
        assert!(!waker.was_woken());
        waker.clone().wake();
        waker.wake();
        assert!(waker.was_woken());
        assert!(!waker.was_woken());
    }
}
