//! Room on the disk that a journal has before it needs it.

use std::fs::File;
use std::os::fd::AsRawFd as _;

/// How much room a journal keeps behind its end, bytes: some hundred entries.
pub const RESERVE_BYTES: u64 = 256 << 10;

/// What is reserved of a journal's file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reserve {
    /// Up to which byte there is room.
    to: u64,
}

impl Reserve {
    /// Keeps room behind the first `bytes` of the file, where the file system can; asked for anew when half of it is used.
    pub(super) fn keep(&mut self, file: &File, bytes: u64) {
        if self.to >= bytes + RESERVE_BYTES / 2 {
            return;
        }
        let to = bytes + RESERVE_BYTES;
        let Ok(length) = libc::off_t::try_from(to) else {
            return;
        };
        // SAFETY: an open descriptor, no memory.
        let answer =
            unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, length) };
        // One without it, or a disk that is full already, is written as far as it goes.
        if answer == 0 {
            self.to = to;
        }
    }
}
