//! The part of the page that belongs to one enforcing thread: its cpu, the event that counts time there, and by when it
//! will be back.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::counter::{ClockEvent, Senses};
use crate::sys;

/// No promise.
pub(crate) const NEVER: i64 = i64::MAX;

/// How long a promise may be broken before the thread that gave it is looked at, ns.
pub(crate) const PATIENCE_NS: i64 = 250_000;

/// A thread's report of itself, by which others see whether it lives.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Beat {
    /// Its thread's id; 0: it has not begun yet.
    pub tid: AtomicU64,
    /// It will have written here again by this instant, ns of CLOCK_MONOTONIC.
    pub promise_ns: AtomicI64,
}

/// The enforcing thread of one cpu.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lane {
    /// The cpu's number and one; 0: no lane.
    pub(super) cpu: AtomicU64,
    /// The event found to count cpu time there.
    senses: AtomicU64,
    pub beat: Beat,
    /// From when on a group may have used up its budget without a promise to look at it, because the kernel gives
    /// notice: one inside a period, and one outside. [`NEVER`]: there is none.
    pub unlooked_ns: [AtomicI64; 2],
}

impl Lane {
    /// Nobody's.
    #[cfg(test)]
    pub(crate) fn new() -> Lane {
        Lane {
            cpu: AtomicU64::new(0),
            senses: AtomicU64::new(0),
            beat: Beat {
                tid: AtomicU64::new(0),
                promise_ns: AtomicI64::new(NEVER),
            },
            unlooked_ns: [const { AtomicI64::new(NEVER) }; 2],
        }
    }

    pub(super) fn is_of(&self, cpu: u32) -> bool {
        self.cpu.load(Ordering::Acquire) == u64::from(cpu) + 1
    }

    /// No thread is at work there, and one will be by then.
    pub(crate) fn forget(&self, begun_ns: i64) {
        (self.unlooked_ns.iter()).for_each(|at| at.store(NEVER, Ordering::SeqCst));
        self.beat.forget(begun_ns);
    }

    /// The event found to count cpu time on this cpu; `None`: nobody has looked, or was killed before the lane was the cpu's.
    pub(crate) fn senses(&self, cpu: u32) -> Option<Senses> {
        if !self.is_of(cpu) {
            return None;
        }
        let of = |notice| Senses {
            notice: Some(notice),
            reason: String::new(),
        };
        match self.senses.load(Ordering::Acquire) {
            1 => Some(of(ClockEvent::Task)),
            2 => Some(of(ClockEvent::Cpu)),
            3 => Some(Senses::clock("found by the keeper before")),
            _ => None,
        }
    }

    /// It is this cpu's from now on, with the `senses` found there.
    pub(crate) fn settle(&self, cpu: u32, senses: &Senses) {
        let number = match senses.notice {
            Some(ClockEvent::Task) => 1,
            Some(ClockEvent::Cpu) => 2,
            None => 3,
        };
        self.senses.store(number, Ordering::Release);
        self.beat.promise_ns.store(NEVER, Ordering::Release);
        (self.unlooked_ns.iter()).for_each(|at| at.store(NEVER, Ordering::Release));
        self.cpu.store(u64::from(cpu) + 1, Ordering::Release);
    }
}

impl Beat {
    /// The calling thread is the one that beats here.
    pub(crate) fn begin(&self) {
        let tid = host::process::thread_id();
        self.tid.store(tid.unsigned_abs().into(), Ordering::Release);
    }

    pub(crate) fn promise(&self, at_ns: i64) {
        self.promise_ns.store(at_ns, Ordering::SeqCst);
    }

    /// Nobody beats here until somebody begins, which will be by then.
    pub(crate) fn forget(&self, begun_ns: i64) {
        // In this order: a promise that is broken is looked at with the thread that gave it.
        self.promise(NEVER);
        self.tid.store(0, Ordering::SeqCst);
        self.promise(begun_ns);
    }

    /// Whether its thread, one of process `pid`, is neither stopped nor traced nor at its end: nothing is to be expected of it then. For one
    /// that has not begun yet the first thread of the process stands.
    pub(crate) fn may_run(&self, pid: i32) -> bool {
        let tid = match self.tid.load(Ordering::Acquire) as i32 {
            0 => pid,
            tid => tid,
        };
        matches!(sys::thread_state(pid, tid), Some(b'R' | b'S' | b'D'))
    }

    pub(crate) fn promised_ns(&self) -> i64 {
        self.promise_ns.load(Ordering::SeqCst)
    }
}
