//! Keeps the output of cells, on a separate thread: a disk may be slow, and a cell may write without end. Every log gets
//! its turn of bounded size, and none more than one turn in a bounded time, however little it brought; a cell that writes
//! more waits in its pipe.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use engine::app::Log;

use super::waker::Waker;

/// Time between two turns of a log, ns: a cell's output costs no more than 25 MB/s, and no more than 6,400 reads a second.
const TURN_NS: i64 = 10_000_000;

/// The logs of all cells.
#[derive(Debug, Clone)]
pub(super) struct Output {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    slots: Mutex<Slots>,
    /// A log is back from its turn.
    back: Condvar,
    /// There are other logs than before.
    changed: Waker,
    /// Wakes the loop when there is something to tell.
    waker: Waker,
}

#[derive(Debug, Default)]
struct Slots {
    logs: Vec<Slot>,
    /// Cells and the losses of their output, not told yet.
    told: Vec<(String, String)>,
    over: bool,
}

#[derive(Debug)]
struct Slot {
    cell: String,
    generation: u64,
    /// `None`: it has its turn.
    log: Option<Log>,
    /// When it may have its next turn, CLOCK_MONOTONIC ns.
    next_ns: i64,
    /// Whether it was told that its output is lost.
    complained: bool,
}

impl Slot {
    fn is(&self, cell: &str, generation: u64) -> bool {
        self.cell == cell && self.generation == generation
    }
}

impl Output {
    /// Begins to keep output; there are no logs yet.
    pub(super) fn start(waker: Waker) -> io::Result<Output> {
        let shared = Arc::new(Shared {
            slots: Mutex::default(),
            back: Condvar::new(),
            changed: Waker::new()?,
            waker,
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("timecell-output".to_owned());
        thread.spawn(move || keep(&theirs))?;
        Ok(Output { shared })
    }

    /// From now on this log is drained.
    pub(super) fn give(&self, cell: &str, generation: u64, log: Log) {
        self.shared.slots().logs.push(Slot {
            cell: cell.to_owned(),
            generation,
            log: Some(log),
            next_ns: 0,
            complained: false,
        });
        self.shared.changed.wake();
    }

    /// The log of this cell, which is not drained any more; waits for the end of its turn.
    pub(super) fn take_back(&self, cell: &str, generation: u64) -> Option<Log> {
        let mut slots = self.shared.slots();
        loop {
            let at = (slots.logs.iter()).position(|slot| slot.is(cell, generation))?;
            if slots.logs[at].log.is_some() {
                return slots.logs.swap_remove(at).log;
            }
            slots = (self.shared.back.wait(slots)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The losses since the last time: cell and reason.
    pub(super) fn lost(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.shared.slots().told)
    }

    /// The thread ends after this turn.
    pub(super) fn stop(&self) {
        self.shared.slots().over = true;
        self.shared.changed.wake();
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, cell: &str, generation: u64) {
        let log = {
            let mut slots = self.slots();
            let slot = (slots.logs.iter_mut()).find(|slot| slot.is(cell, generation));
            slot.and_then(|slot| slot.log.take())
        };
        let Some(mut log) = log else {
            return;
        };
        // Without the lock: a disk may be slow.
        let moved = log.drain();
        let now_ns = timecell_client::now_ns();
        let mut slots = self.slots();
        let slots = &mut *slots;
        if let Some(slot) = (slots.logs.iter_mut()).find(|slot| slot.is(cell, generation)) {
            slot.log = Some(log);
            // Where nothing came, too: its program has ended, and the pipe tells so again and again.
            slot.next_ns = now_ns + TURN_NS;
            match moved {
                Ok(bytes) => slot.complained &= bytes == 0,
                Err(error) => {
                    if !slot.complained {
                        slot.complained = true;
                        slots.told.push((cell.to_owned(), error.to_string()));
                        self.waker.wake();
                    }
                }
            }
        }
        self.back.notify_all();
    }
}

fn keep(shared: &Shared) {
    loop {
        let now_ns = timecell_client::now_ns();
        let mut waits = vec![(shared.changed.fd(), None)];
        let mut next_ns: Option<i64> = None;
        {
            let slots = shared.slots();
            if slots.over {
                return;
            }
            for slot in &slots.logs {
                match &slot.log {
                    Some(log) if slot.next_ns <= now_ns => {
                        let who = (slot.cell.clone(), slot.generation);
                        waits.push((log.as_fd().as_raw_fd(), Some(who)));
                    }
                    Some(_) => {
                        let other = next_ns.unwrap_or(i64::MAX);
                        next_ns = Some(slot.next_ns.min(other));
                    }
                    None => {}
                }
            }
        }
        let mut watched: Vec<libc::pollfd> = (waits.iter())
            .map(|(fd, _)| libc::pollfd {
                fd: *fd,
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        let millis = match next_ns {
            Some(next) => i32::try_from((next - now_ns).max(0) / 1_000_000 + 1).unwrap_or(1_000),
            None => -1,
        };
        // SAFETY: an array of the length given. A log that is taken back meanwhile leaves a number that is another's by then,
        // which costs a look and nothing else.
        unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, millis) };
        if watched[0].revents != 0 {
            shared.changed.was_woken();
        }
        for ((_, who), polled) in waits.iter().zip(&watched) {
            if let Some((cell, generation)) = who
                && polled.revents != 0
            {
                shared.turn(cell, *generation);
            }
        }
    }
}
