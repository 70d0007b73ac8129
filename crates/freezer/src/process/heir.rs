//! The heir: waits until keeper and watcher are both dead, and starts a keeper. If both are stopped, they keep the lock
//! for which it waits, and nobody else would notice; so it checks now and then, and kills them.

use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use host::{bounded, pidfd};

use super::common::{COMMANDER, ProcessError, WORD};
use super::ended::MOST_BYTES;
use super::handed::{self, hand_down};
use super::setup;
use crate::page::{Beat, Page};
use crate::sys;

/// Keepers that die at once are not started more often than this; groups stay frozen meanwhile.
const AGAIN: Duration = Duration::from_millis(100);
/// Between two looks whether both are stopped.
const LOOK: Duration = Duration::from_millis(10);
/// A promise that has been overdue for this long should have been noticed by the watcher, ns.
const OVERLOOKED_NS: i64 = 5_000_000;
/// Stack of the thread that looks, bytes.
const STACK_BYTES: usize = 64 * 1024;
/// The same of the caller's thread.
const BESIDE_BYTES: usize = 256 * 1024;

/// Waits, and does it again. Ends when nothing is held any more, or another heir waits. Meanwhile `beside` runs on a thread of its own,
/// which is called with the class of this one.
pub(super) fn run(dir: &Path, beside: fn(&Path)) -> Result<(), ProcessError> {
    let own = handed::open_heirs_lock(dir).map_err(ProcessError::of("lock"))?;
    if !handed::try_lock(&own).map_err(ProcessError::of("lock"))? {
        return Ok(());
    }
    setup::leave_starter();
    setup::set_priority(COMMANDER).map_err(crate::KeeperError::from)?;
    setup::lock_memory(setup::Lock::All)?;
    let Some(page) = Page::open(dir)? else {
        return Ok(());
    };
    page.set_heir(std::process::id());
    let place = dir.to_owned();
    std::thread::Builder::new()
        .name("look".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || look_after(page, &place))
        .map_err(ProcessError::of("thread"))?;
    let place = dir.to_owned();
    std::thread::Builder::new()
        .name("beside".to_owned())
        .stack_size(BESIDE_BYTES)
        .spawn(move || beside(&place))
        .map_err(ProcessError::of("thread"))?;
    loop {
        let lock = handed::open_lock(dir).map_err(ProcessError::of("lock"))?;
        // The kernel wakes the waiter when the last process that holds it is gone.
        lock.lock().map_err(ProcessError::of("lock"))?;
        let began = Instant::now();
        // Anew: the one before may have been removed with its last group, and a keeper of others may have come sooner than this process.
        let Some(page) = Page::open(dir)?.filter(|page| !page.is_empty()) else {
            return Ok(());
        };
        page.freeze_all();
        page.count_takeover();
        let fd = lock.as_raw_fd();
        hand_down(fd, true).map_err(ProcessError::of("fcntl"))?;
        let started = handed::own_program("keeper", dir)
            .arg(fd.to_string())
            .spawn();
        // The lock is the keeper's now, and this process's only while it has it open.
        drop(lock);
        if started.is_err() || began.elapsed() < AGAIN {
            std::thread::sleep(AGAIN.saturating_sub(began.elapsed()));
        }
    }
}

/// Kills keeper and watcher when both are stopped.
fn look_after(mut page: Page, dir: &Path) {
    let mut seen = false;
    loop {
        std::thread::sleep(LOOK);
        if !page.is_at(dir)
            && let Ok(Some(next)) = Page::open(dir)
        {
            page = next;
            page.set_heir(std::process::id());
        }
        let promises = page.lanes().map(|lane| &lane.beat).map(Beat::promised_ns);
        let first = promises.min().unwrap_or(i64::MAX);
        if first.saturating_add(OVERLOOKED_NS) > sys::now_ns() {
            seen = false;
            continue;
        }
        let (keeper, watcher) = (page.keeper(), page.watcher());
        let is_stopped = |pid: i32| matches!(sys::thread_state(pid, pid), Some(b'T' | b't'));
        let nobody_watches = watcher == 0
            || !matches!(
                sys::thread_state(watcher, watcher),
                Some(b'R' | b'S' | b'D')
            );
        let both = is_stopped(keeper) && nobody_watches;
        // Twice: a watcher that is about to take over is none of the heir's business.
        if both && seen {
            page.freeze_all();
            // The watcher first: it is nobody's to become keeper.
            [watcher, keeper].into_iter().for_each(|pid| kill(pid, dir));
        }
        seen = both;
    }
}

/// Kills one of this place's processes, and no other that has got its number.
fn kill(pid: i32, dir: &Path) {
    let Ok(process) = pidfd::open(pid) else {
        return;
    };
    // Asked once the descriptor is there: its process cannot change any more.
    let line = bounded::read(format!("/proc/{pid}/cmdline"), MOST_BYTES).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1);
    let is_ours =
        words.next() == Some(WORD.as_bytes()) && words.nth(1) == Some(dir.as_os_str().as_bytes());
    if pid > 1 && is_ours {
        let _ = pidfd::kill(&process);
    }
}
