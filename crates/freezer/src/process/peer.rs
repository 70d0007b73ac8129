//! Another process that is watched: whether it has ended, is stopped, or does not do what it promised.

use std::fs::File;
use std::io;
use std::time::Duration;

use super::PATIENCE_NS;
use crate::page::Beat;
use crate::sys::{self, Waiting};

/// How long to wait until a killed process has ended, ns.
const DYING_NS: i64 = 10_000_000_000;
/// Between two looks at a thread that is late without being stopped, ns.
pub(super) const DOUBT_NS: i64 = 1_000_000;
/// A look that comes late by more says that the machine stood still, and nothing about the one that is looked at, ns.
const OWN_LATENESS_NS: i64 = 500_000;

/// The process.
pub(super) struct Peer {
    pub(super) pid: i32,
    pub(super) process: File,
}

impl Peer {
    pub(super) fn open(pid: i32) -> io::Result<Peer> {
        Ok(Peer {
            pid,
            process: sys::open_process(pid)?,
        })
    }

    /// Kills it and waits until none of its threads can do anything any more, not even within a system call.
    pub(super) fn kill(&self) -> io::Result<()> {
        sys::kill_process(&self.process)?;
        let waiting = Waiting::new()?;
        waiting.add(&self.process, 0)?;
        let until_ns = sys::now_ns() + DYING_NS;
        let mut ended = false;
        while !ended && sys::now_ns() < until_ns {
            waiting.wait(DYING_NS, |_| ended = true)?;
        }
        match ended {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// What a look at a promise says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is kept, or broken for too short a time to say anything.
    Fine,
    /// It is broken by a thread that could run: look again in [`DOUBT_NS`].
    Doubtful,
    /// Whoever gave it is stopped, or does not come back.
    Dead,
}

/// How long somebody is doubted.
#[derive(Debug)]
pub(super) struct Doubt {
    promised_ns: i64,
    looks: u32,
    most: u32,
}

impl Doubt {
    /// A thread that does not come back for `patience`, though it was looked at in time all along, is dead.
    pub(super) fn new(patience: Duration) -> Doubt {
        let most = patience.as_nanos() / u128::from(DOUBT_NS.unsigned_abs());
        Doubt {
            promised_ns: 0,
            looks: 0,
            most: u32::try_from(most).unwrap_or(u32::MAX),
        }
    }

    /// Looks at a thread's promise, at `now_ns`, at a look that was meant for `meant_ns`.
    pub(super) fn judge(&mut self, pid: i32, beat: &Beat, now_ns: i64, meant_ns: i64) -> Verdict {
        let promised_ns = beat.promised_ns();
        if promised_ns.saturating_add(PATIENCE_NS) > now_ns {
            return Verdict::Fine;
        }
        let tid = beat.tid.load(std::sync::atomic::Ordering::Acquire) as i32;
        // Stopped, traced, ended: nothing is to be expected from there. Otherwise its cpu may be somebody else's for a while.
        if !matches!(sys::thread_state(pid, tid), Some(b'R' | b'S' | b'D')) {
            return Verdict::Dead;
        }
        if promised_ns != self.promised_ns {
            (self.promised_ns, self.looks) = (promised_ns, 0);
        } else if now_ns - meant_ns > OWN_LATENESS_NS {
            self.looks = 0;
        } else {
            self.looks += 1;
        }
        match self.looks > self.most {
            true => Verdict::Dead,
            false => Verdict::Doubtful,
        }
    }
}
