//! Reserved disk space for creating a cell when the disk is full: a file that occupies it, and gives it up for a start.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::ground;

/// The room held, bytes: the files of several cells.
const BYTES: libc::off_t = 1 << 20;
/// A step in which room is taken: less than all may be free.
const STEP: libc::off_t = 64 << 10;

/// Room that is held.
#[derive(Debug, Clone)]
pub(super) struct Ballast {
    /// `None`: the file cannot be made, and nothing is held.
    file: Option<Arc<File>>,
    /// The journal has no room: the free room is for it.
    yields: Arc<AtomicBool>,
}

impl Ballast {
    /// Holds room in a mission's directory, as much of it as there is.
    pub(super) fn take(dir: &Path) -> Ballast {
        let file = ground::create(&dir.join("room")).ok().map(Arc::new);
        let ballast = Ballast {
            file,
            yields: Arc::default(),
        };
        ballast.hold();
        ballast
    }

    /// Gives up the room to the process that needs it now.
    pub(super) fn release(&self) {
        if let Some(file) = &self.file {
            // Room that is not released is missing at the start, which then says so.
            let _ = file.set_len(0);
        }
    }

    /// Whether the room is left to the journal, which has none: the reserved part stays so, but no more is taken.
    pub(super) fn yields(&self, to_the_journal: bool) {
        self.yields.store(to_the_journal, Ordering::Relaxed);
    }

    /// Takes room again.
    pub(super) fn hold(&self) {
        let Some(file) = &self.file else {
            return;
        };
        if self.yields.load(Ordering::Relaxed) {
            return;
        }
        for from in (0..BYTES).step_by(STEP as usize) {
            // SAFETY: an open descriptor, no memory.
            let answer = unsafe { libc::fallocate(file.as_raw_fd(), 0, from, STEP) };
            // A file system without it, or one that is full.
            if answer != 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn room_is_held_and_given() {
        let dir = tempfile::tempdir().unwrap();
        let held = || dir.path().join("room").metadata().unwrap().blocks() * 512;
        let ballast = Ballast::take(dir.path());
        let all = held();
        ballast.release();
        assert_eq!(held(), 0);
        ballast.yields(true);
        ballast.hold();
        assert_eq!(held(), 0, "the journal needs it");
        ballast.yields(false);
        ballast.hold();
        assert_eq!(held(), all);
    }
}
