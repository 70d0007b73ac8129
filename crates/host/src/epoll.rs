//! Waiting for the events of an epoll instance, in whole milliseconds: rustix waits in nanoseconds, for which kernels before 5.11,
//! which boards still run, have no system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::event::epoll::EventFlags;

/// The pending events, at most `most` of them, each as the data that it was added with and its flags. Waits for the first for at most `timeout_ms`: 0
/// does not wait, and -1 waits forever.
///
/// # Errors
/// Errors of `epoll_wait`, including `EINTR`.
pub fn wait(epoll: impl AsFd, most: usize, timeout_ms: i32) -> io::Result<Vec<(u64, EventFlags)>> {
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most];
    let room = i32::try_from(most).unwrap_or(i32::MAX);
    // SAFETY: room for as many events as are said; the descriptor is borrowed for the call.
    let came = unsafe {
        libc::epoll_wait(
            epoll.as_fd().as_raw_fd(),
            events.as_mut_ptr(),
            room,
            timeout_ms,
        )
    };
    let came = usize::try_from(came).map_err(|_| io::Error::last_os_error())?;
    let events = events.into_iter().take(came);
    Ok(events
        .map(|event| (event.u64, EventFlags::from_bits_retain(event.events)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll::{self, CreateFlags, EventData};

    #[test]
    fn what_is_ready_is_told_with_its_data_and_nothing_else() {
        let ready = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let (reads, writes) = rustix::pipe::pipe().unwrap();
        epoll::add(&ready, &reads, EventData::new_u64(7), EventFlags::IN).unwrap();
        assert_eq!(wait(&ready, 4, 0).unwrap(), []);
        rustix::io::write(&writes, b"x").unwrap();
        assert_eq!(wait(&ready, 4, -1).unwrap(), [(7, EventFlags::IN)]);
    }
}
