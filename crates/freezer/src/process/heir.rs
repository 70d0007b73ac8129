//! The heir: waits until keeper and watcher are both dead, and starts a keeper.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::handed::{self, hand_down};
use super::{COMMANDER, ProcessError, setup};
use crate::page::Page;

/// Keepers that die at once are not started more often than this; groups stay frozen meanwhile.
const AGAIN: Duration = Duration::from_millis(100);

/// Waits, and does it again. Ends when nothing is held any more, or another heir waits.
pub(super) fn run(dir: &Path) -> Result<(), ProcessError> {
    let own = handed::open_heirs_lock(dir).map_err(ProcessError::of("lock"))?;
    if !handed::try_lock(&own).map_err(ProcessError::of("lock"))? {
        return Ok(());
    }
    setup::leave_starter();
    setup::set_priority(COMMANDER).map_err(crate::KeeperError::from)?;
    setup::lock_memory()?;
    let Some(page) = Page::open(dir)? else {
        return Ok(());
    };
    loop {
        let lock = handed::open_lock(dir).map_err(ProcessError::of("lock"))?;
        // The kernel wakes whoever waits for it when the last process that has it is gone.
        lock.lock().map_err(ProcessError::of("lock"))?;
        let began = Instant::now();
        if page.is_empty() {
            return Ok(());
        }
        page.freeze_all();
        page.count_takeover();
        let fd = lock.as_raw_fd();
        hand_down(fd, true).map_err(ProcessError::of("fcntl"))?;
        let started = handed::own_program("keeper", dir)
            .arg(fd.to_string())
            .spawn();
        // The lock is the keeper's now, and this process's only as long as it has it open.
        drop(lock);
        if started.is_err() || began.elapsed() < AGAIN {
            std::thread::sleep(AGAIN.saturating_sub(began.elapsed()));
        }
    }
}
