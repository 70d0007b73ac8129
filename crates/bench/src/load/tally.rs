//! The page on which a built-in load counts its work, shared with the coordinator. A lock on its file tells the load
//! that the coordinator lives: the kernel gives it up when the coordinator ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use host::map::Map;
use rustix::fs::{FlockOperation, flock};

/// Counters on a page.
pub(crate) const COUNTERS: usize = 8;
/// The last one is not a count: the time at which a load that works once per cycle was last done, CLOCK_MONOTONIC ns.
pub(crate) const WORKED: usize = COUNTERS - 1;
const BYTES: usize = 4096;

/// The page, mapped.
pub(crate) struct Tally {
    page: Map,
    file: File,
}

impl Tally {
    /// Makes the file and holds its lock: the coordinator's side.
    #[expect(
        clippy::disallowed_methods,
        reason = "in a directory that nobody else writes to"
    )]
    pub(crate) fn create(path: &Path) -> io::Result<Tally> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.set_len(BYTES as u64)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Tally::map(file)
    }

    /// Opens the file: the load's side.
    #[expect(
        clippy::disallowed_methods,
        reason = "in a directory that nobody else writes to"
    )]
    pub(crate) fn open(path: &Path) -> io::Result<Tally> {
        Tally::map(OpenOptions::new().read(true).write(true).open(path)?)
    }

    fn map(file: File) -> io::Result<Tally> {
        if file.metadata()?.len() < BYTES as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let page = Map::of(&file)?;
        Ok(Tally { page, file })
    }

    fn counter(&self, index: usize) -> &AtomicU64 {
        assert!(index < COUNTERS);
        // SAFETY: inside the page, aligned to it, alive as long as self.
        unsafe { &*self.page.as_ptr().cast::<AtomicU64>().add(index) }
    }

    /// Adds to one counter.
    pub(crate) fn add(&self, index: usize, count: u64) {
        self.counter(index).fetch_add(count, Ordering::Relaxed);
    }

    /// Notes that the work of a cycle is done; see [`WORKED`].
    pub(crate) fn worked(&self, now_ns: i64) {
        self.counter(WORKED)
            .store(now_ns.unsigned_abs(), Ordering::Relaxed);
    }

    /// All counters.
    pub(crate) fn read(&self) -> [u64; COUNTERS] {
        std::array::from_fn(|index| self.counter(index).load(Ordering::Relaxed))
    }

    /// Ends this process when the coordinator ends. Sleeps in the kernel until then.
    pub(crate) fn die_with_coordinator(&self) -> io::Result<()> {
        let fd = self.file.try_clone()?;
        std::thread::Builder::new()
            .name("coordinator".to_owned())
            .stack_size(64 << 10)
            .spawn(move || {
                loop {
                    if flock(&fd, FlockOperation::LockShared).is_ok() {
                        std::process::exit(0);
                    }
                }
            })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_the_same_counters() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let ours = Tally::create(&path).unwrap();
        let theirs = Tally::open(&path).unwrap();
        theirs.add(0, 3);
        theirs.add(7, 1);
        assert_eq!(ours.read(), [3, 0, 0, 0, 0, 0, 0, 1]);
        std::fs::write(&path, b"short").unwrap();
        assert!(Tally::open(&path).is_err());
    }
}
