//! The table of a group's lowered threads: which thread has to get which class back. It is on the page, so that the
//! successor of a killed keeper can restore them.
//!
//! Every change is one word, in an order that may stop anywhere: an entry is there before the count that includes it, and
//! both before the thread is lowered. An entry of a thread that was not lowered after all does nothing, because only
//! threads of class IDLE get anything back. At the end the classes are restored first, and the table is emptied
//! afterwards.
//!
//! Threads are known by their ids, without their start times, and those of the group run on in class IDLE: one may end
//! and its id be used again. An id means nothing by itself: only threads that the group lists when the classes are
//! restored get one back, and only those of class IDLE. So a stranger with such an id gets nothing, and neither does a new
//! thread of the group of another class. The remaining case is a child of a lowered thread that got the id of one that
//! ended, after all other ids of the machine were used up: it gets the class of a thread of its own cell, not the least
//! one. Between reading a list and acting on it, an id could come to a stranger only if all ids were used up within those
//! microseconds.
//!
//! That the group is down is recorded before the first thread is looked at and taken back after the last one has its class
//! again. A process that sets classes in a cell from outside waits meanwhile ([`super::Down`]): a class that is set while
//! threads are lowered would be an escape, and would be lost at the end.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::Policy;

/// Threads that are remembered.
pub(crate) const MOST_REMEMBERED: usize = 512;

/// Entries are packed: the thread's id above, its class below.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LowerTable {
    count: AtomicU64,
    /// 1 from before the first thread is lowered until all have their class back.
    down: AtomicU64,
    /// The class of children of lowered threads; 0: no thread is lowered.
    least: AtomicU64,
    /// 1 once every thread was looked at: those of class IDLE that appear later are children of lowered ones.
    complete: AtomicU64,
    entries: [AtomicU64; MOST_REMEMBERED],
}

const PRESENT: u64 = 1 << 31;
const RESET_ON_FORK: u64 = 1 << 30;

fn pack(policy: Policy) -> u64 {
    let number = u64::from(policy.number.unsigned_abs() & 0xff);
    let priority = u64::from(policy.priority.unsigned_abs() & 0xff);
    let reset = if policy.reset_on_fork {
        RESET_ON_FORK
    } else {
        0
    };
    PRESENT | reset | number << 8 | priority
}

fn unpack(word: u64) -> Option<Policy> {
    (word & PRESENT != 0).then_some(Policy {
        number: (word >> 8 & 0xff) as i32,
        priority: (word & 0xff) as i32,
        reset_on_fork: word & RESET_ON_FORK != 0,
    })
}

impl LowerTable {
    pub(crate) fn new() -> LowerTable {
        LowerTable {
            count: AtomicU64::new(0),
            down: AtomicU64::new(0),
            least: AtomicU64::new(0),
            complete: AtomicU64::new(0),
            entries: [const { AtomicU64::new(0) }; MOST_REMEMBERED],
        }
    }

    /// From now on threads are lowered.
    pub(crate) fn begin(&self) {
        self.down.store(1, Ordering::SeqCst);
    }

    /// Whether threads are lowered, or about to be.
    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst) != 0
    }

    fn entries(&self) -> impl Iterator<Item = (i32, Policy)> + '_ {
        let count = self.count.load(Ordering::Acquire) as usize;
        self.entries[..count.min(MOST_REMEMBERED)]
            .iter()
            .filter_map(|entry| {
                let word = entry.load(Ordering::Acquire);
                Some(((word >> 32) as i32, unpack(word)?))
            })
    }

    /// The former class of a thread.
    pub(crate) fn had(&self, tid: i32) -> Option<Policy> {
        self.entries()
            .find(|(known, _)| *known == tid)
            .map(|(_, had)| had)
    }

    /// Remembers a thread, if it is not known and there is room.
    pub(crate) fn remember(&self, tid: i32, had: Policy) {
        let count = self.count.load(Ordering::Relaxed);
        if (count as usize) < MOST_REMEMBERED && self.had(tid).is_none() {
            let word = u64::from(tid.unsigned_abs()) << 32 | pack(had);
            self.entries[count as usize].store(word, Ordering::Release);
            self.count.store(count + 1, Ordering::Release);
        }
    }

    /// The class of children of lowered threads; `None`: no thread is lowered.
    pub(crate) fn least(&self) -> Option<Policy> {
        unpack(self.least.load(Ordering::Acquire))
    }

    pub(crate) fn set_least(&self, least: Policy) {
        self.least.store(pack(least), Ordering::Release);
    }

    /// Whether every thread was looked at.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire) != 0
    }

    pub(crate) fn set_complete(&self) {
        self.complete.store(1, Ordering::Release);
    }

    /// Forgets all; classes were given back. That nobody is lowered comes first: without the entries, a thread that the group
    /// itself had put into class IDLE would pass for the child of a lowered one.
    pub(crate) fn clear(&self) {
        self.least.store(0, Ordering::Release);
        self.count.store(0, Ordering::Release);
        self.complete.store(0, Ordering::Release);
        self.down.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_had_is_found_again() {
        let table = LowerTable::new();
        let policy = |number, priority, reset_on_fork| Policy {
            number,
            priority,
            reset_on_fork,
        };
        assert_eq!((table.had(0), table.least()), (None, None));
        assert!(!table.is_down());
        table.begin();
        let given = [
            (1, policy(libc::SCHED_FIFO, 99, false)),
            (4_194_304, policy(libc::SCHED_RR, 1, true)),
            (7, policy(libc::SCHED_IDLE, 0, false)),
        ];
        given
            .iter()
            .for_each(|(tid, had)| table.remember(*tid, *had));
        // A class at a second time is not the former one.
        table.remember(1, policy(libc::SCHED_IDLE, 0, false));
        table.set_least(given[1].1);
        table.set_complete();
        for (tid, had) in given {
            assert_eq!(table.had(tid), Some(had));
        }
        assert_eq!(table.least(), Some(given[1].1));
        (100..2000).for_each(|tid| table.remember(tid, given[0].1));
        assert_eq!(table.entries().count(), MOST_REMEMBERED);
        assert!(table.is_complete() && table.is_down());
        table.clear();
        assert_eq!((table.had(1), table.least()), (None, None));
        assert!(!table.is_complete() && !table.is_down());
    }
}
