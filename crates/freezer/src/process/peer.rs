//! Another process that is watched: whether it has ended, is stopped, or breaks its promise.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use host::pidfd;

use crate::page::{Beat, PATIENCE_NS};
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
    pub(super) process: OwnedFd,
}

impl Peer {
    pub(super) fn open(pid: i32) -> io::Result<Peer> {
        Ok(Peer {
            pid,
            process: pidfd::open(pid)?,
        })
    }

    /// Kills it and waits until none of its threads can do anything any more, not even within a system call.
    pub(super) fn kill(&self) -> io::Result<()> {
        pidfd::kill(&self.process)?;
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

/// The result of a look at a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is kept, or broken for too short a time to say anything.
    Fine,
    /// It is broken by a thread that could run: look again in [`DOUBT_NS`].
    Doubtful,
    /// Its giver is stopped, or does not come back.
    Dead,
}

/// How long a process is doubted.
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
        // Otherwise its cpu may be busy with something else for a while.
        if !beat.may_run(pid) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;
    use std::sync::atomic::AtomicU64;

    const MS: i64 = 1_000_000;

    fn beat(tid: i32, promised_ns: i64) -> Beat {
        Beat {
            tid: AtomicU64::new(tid.unsigned_abs().into()),
            promise_ns: AtomicI64::new(promised_ns),
        }
    }

    fn own() -> (i32, i32) {
        let pid = std::process::id().cast_signed();
        (pid, host::process::thread_id())
    }

    #[test]
    fn whoever_could_run_is_doubted_for_a_while() {
        let (pid, tid) = own();
        let mut doubt = Doubt::new(Duration::from_millis(3));
        let late = beat(tid, MS);
        // Not long enough to say anything.
        assert_eq!(doubt.judge(pid, &late, MS + 1, MS), Verdict::Fine);
        let mut looks = |at: i64, meant: i64| doubt.judge(pid, &late, at, meant);
        for at in 2..=5 {
            assert_eq!(looks(at * MS, at * MS), Verdict::Doubtful, "{at}");
        }
        // The machine stood still: a look that late says nothing.
        assert_eq!(looks(50 * MS, 6 * MS), Verdict::Doubtful);
        for at in 51..=53 {
            assert_eq!(looks(at * MS, at * MS), Verdict::Doubtful, "{at}");
        }
        assert_eq!(looks(54 * MS, 54 * MS), Verdict::Dead);
        // It came back.
        late.promise(60 * MS);
        assert_eq!(doubt.judge(pid, &late, 55 * MS, 55 * MS), Verdict::Fine);
        assert_eq!(doubt.judge(pid, &late, 61 * MS, 61 * MS), Verdict::Doubtful);
    }

    #[test]
    fn whoever_has_not_begun_is_doubted_and_not_dead() {
        let (pid, _) = own();
        let mut doubt = Doubt::new(Duration::from_millis(1));
        let late = beat(0, MS);
        let mut looks = |at: i64| doubt.judge(pid, &late, at * MS, at * MS);
        assert_eq!((looks(2), looks(3)), (Verdict::Doubtful, Verdict::Doubtful));
        // It should have by now.
        assert_eq!(looks(4), Verdict::Dead);
    }

    #[test]
    fn whoever_is_stopped_or_gone_is_dead() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let peer = Peer::open(pid).unwrap();
        let late = beat(pid, 0);
        let mut doubt = Doubt::new(Duration::from_secs(1));
        assert_eq!(doubt.judge(pid, &late, MS, MS), Verdict::Doubtful);
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        while sys::thread_state(pid, pid) != Some(b'T') {
            std::thread::yield_now();
        }
        assert_eq!(doubt.judge(pid, &late, 2 * MS, 2 * MS), Verdict::Dead);
        // A promise that is kept is not looked behind.
        late.promise(3 * MS);
        assert_eq!(doubt.judge(pid, &late, 2 * MS, 2 * MS), Verdict::Fine);
        peer.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(doubt.judge(pid, &late, 4 * MS, 4 * MS), Verdict::Dead);
    }
}
