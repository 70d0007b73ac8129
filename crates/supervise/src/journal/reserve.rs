//! Disk space that a journal reserves before it needs it.

use std::fs::File;
use std::os::fd::AsRawFd as _;

/// How much room a journal keeps beyond its end, bytes: some hundred entries.
pub const RESERVE_BYTES: u64 = 256 << 10;

/// The reserved part of a journal's file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reserve {
    /// Up to which byte there is room.
    to: u64,
}

impl Reserve {
    /// Keeps room beyond the first `bytes` of the file, where the file system can; renewed when half of it is used.
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
        // Without it, or on a full disk, the journal is written as far as it goes.
        if answer == 0 {
            self.to = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    /// Room in whole blocks of the file system, renewed once half of it is used.
    #[test]
    fn a_journal_has_room_before_it_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = File::create(dir.path().join("journal")).unwrap();
        let room = |file: &File| file.metadata().unwrap().blocks() * 512;
        let mut reserve = Reserve::default();
        reserve.keep(&file, 0);
        assert!(room(&file) >= RESERVE_BYTES, "{}", room(&file));
        assert_eq!(
            file.metadata().unwrap().len(),
            0,
            "it is not in the file yet"
        );
        let first = room(&file);
        let mut written = 0;
        while written < RESERVE_BYTES / 2 {
            file.write_all(&[b'x'; 4096]).unwrap();
            written += 4096;
            reserve.keep(&file, written);
        }
        assert_eq!(room(&file), first, "half of it is enough");
        file.write_all(&[b'x'; 4096]).unwrap();
        reserve.keep(&file, written + 4096);
        assert!(room(&file) >= written + 4096 + RESERVE_BYTES);
    }
}
