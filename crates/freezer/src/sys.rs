//! The system calls of the enforcing loop: clocks, waiting, scheduling classes by number. None of them allocates.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use host::clock;
pub(crate) use host::clock::now as now_ns;
pub(crate) use host::sched::SCHED_DEADLINE;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

const SECOND_NS: i64 = 1_000_000_000;
const SCHED_RESET_ON_FORK: i32 = 0x4000_0000;

/// Cpu time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> i64 {
    clock::read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Cpu time of all threads of a process, ns; `None` once it has been waited for.
pub(crate) fn process_cpu_ns(pid: i32) -> Option<i64> {
    clock::read(clock::of_process(pid))
}

/// A set of files to wait for, each known by a number.
#[derive(Debug)]
pub(crate) struct Waiting(OwnedFd);

/// Files that are ready in one answer at most; the others are in the next.
const READY_AT_ONCE: usize = 16;

impl Waiting {
    pub(crate) fn new() -> io::Result<Waiting> {
        Ok(Waiting(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Waits for `file` to become readable too.
    pub(crate) fn add(&self, file: impl AsFd, number: u64) -> io::Result<()> {
        let number = epoll::EventData::new_u64(number);
        Ok(epoll::add(&self.0, file, number, epoll::EventFlags::IN)?)
    }

    /// Waits for it no longer.
    pub(crate) fn remove(&self, file: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.0, file)?)
    }

    /// Sleeps for `ns` at most or until a file is ready; calls `ready` with the number of each. A signal ends the sleep.
    ///
    /// The sleep is the kernel's sleeper for real-time threads, which PREEMPT_RT wakes from the interrupt itself; a
    /// timerfd would be served by a thread of low priority there, behind the very cells that are to be stopped.
    pub(crate) fn wait(&self, ns: i64, mut ready: impl FnMut(u64)) -> io::Result<()> {
        let ns = ns.max(0);
        let limit = Timespec {
            tv_sec: ns / SECOND_NS,
            tv_nsec: ns % SECOND_NS,
        };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); READY_AT_ONCE];
        match epoll::wait(&self.0, &mut events, Some(&limit)) {
            Ok((events, _)) => {
                events.iter().for_each(|event| ready(event.data.u64()));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(Errno::NOSYS) => self.wait_before_5_11(&limit, ready),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Waiting::wait`], on kernels whose `epoll_wait` has no limits finer than a millisecond: `ppoll` has, and sleeps in the same way.
    fn wait_before_5_11(&self, limit: &Timespec, ready: impl FnMut(u64)) -> io::Result<()> {
        let came = match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(limit)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => host::epoll::wait(&self.0, READY_AT_ONCE, 0)?,
            Err(error) => return Err(error.into()),
        };
        came.into_iter().map(|(number, _)| number).for_each(ready);
        Ok(())
    }
}

/// The state of a thread as `/proc` has it: `b'T'` for a stopped one; `None` once it is gone. Without allocating.
pub(crate) fn thread_state(pid: i32, tid: i32) -> Option<u8> {
    let mut path = [0u8; 64];
    let mut room = &mut path[..63];
    io::Write::write_fmt(&mut room, format_args!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let mut text = [0u8; 128];
    let length = rustix::io::read(file, &mut text).ok()?;
    let end = text[..length].iter().rposition(|byte| *byte == b')')?;
    text.get(end + 2).copied()
}

/// A counter that can be waited for and wakes its waiters.
pub(crate) fn event_file() -> io::Result<File> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    Ok(eventfd(0, flags)?.into())
}

/// As [`event_file`], but reading waits.
pub(crate) fn event_file_blocking() -> io::Result<File> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC)?.into())
}

/// A thread's policy, priority and whether its children start as OTHER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub number: i32,
    pub priority: i32,
    pub reset_on_fork: bool,
}

impl Policy {
    /// Of thread `tid`; `None` once it is gone.
    pub(crate) fn of(tid: i32) -> Option<Policy> {
        let attributes = host::sched::Attributes::of(tid).ok()?;
        Some(Policy {
            number: attributes.policy.cast_signed(),
            priority: attributes.priority.cast_signed(),
            reset_on_fork: attributes.resets_on_fork(),
        })
    }

    /// Gives it to thread `tid`; any but DEADLINE. The nice value stays.
    pub(crate) fn give(self, tid: i32) -> io::Result<()> {
        let flag = match self.reset_on_fork {
            true => SCHED_RESET_ON_FORK,
            false => 0,
        };
        host::sched::set_policy(tid, self.number | flag, self.priority)
    }

    pub(crate) fn is_fixed_priority(self) -> bool {
        matches!(self.number, libc::SCHED_FIFO | libc::SCHED_RR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_a_file_is_ready_and_at_its_limit_before_5_11_too() {
        let waiting = Waiting::new().unwrap();
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        waiting.add(&bell, 7).unwrap();
        let before_5_11 = |ns: i64| {
            let limit = Timespec {
                tv_sec: 0,
                tv_nsec: ns,
            };
            let mut numbers = Vec::new();
            let waited = waiting.wait_before_5_11(&limit, |number| numbers.push(number));
            waited.unwrap();
            numbers
        };
        let now = |ns: i64| {
            let mut numbers = Vec::new();
            waiting.wait(ns, |number| numbers.push(number)).unwrap();
            numbers
        };
        for wait in [&before_5_11 as &dyn Fn(i64) -> Vec<u64>, &now] {
            let began = now_ns();
            assert!(wait(1_500_001).is_empty());
            assert!(now_ns() - began >= 1_500_001);
        }
        rustix::io::write(&bell, &1u64.to_ne_bytes()).unwrap();
        assert_eq!(
            (before_5_11(900_000_000), now(900_000_001)),
            (vec![7], vec![7])
        );
    }
}
