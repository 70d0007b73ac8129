//! How much cpu time a group has used, and notice when it has used more.
//!
//! The time is that of `cpu.stat`, in us: the scheduler's own account, the same as the clocks of the processes. It is
//! exact when read by a thread that has just taken the cpu from the group, because the group is at rest then. The perf
//! counters of a group are half as expensive to read, but begin to count only when the switch to the group is over: they
//! miss some 4 us at each switch, which is 4 % of a budget of 300 us every 1 ms. So perf only gives notice of use, where
//! being early or late by that much does not matter.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use host::map::Map;
use host::perf::{self, Event, Of};

/// A software event that counts the time in which a task runs (`include/uapi/linux/perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockEvent {
    /// `PERF_COUNT_SW_TASK_CLOCK`.
    Task,
    /// `PERF_COUNT_SW_CPU_CLOCK`.
    Cpu,
}

/// The tested notice of use for the groups of one cpu. See [`crate::proof`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Senses {
    /// The event whose notice of use arrives while the group still runs; `None`: the clock has to do.
    pub notice: Option<ClockEvent>,
    /// Why there is none; empty otherwise.
    pub reason: String,
}

impl Senses {
    /// The clock, which works everywhere.
    pub fn clock(reason: impl Into<String>) -> Senses {
        Senses {
            notice: None,
            reason: reason.into(),
        }
    }
}

impl std::fmt::Display for Senses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let notice = match self.notice {
            Some(ClockEvent::Task) => "usage noticed by perf task-clock, idle groups cost nothing",
            Some(ClockEvent::Cpu) => "usage noticed by perf cpu-clock, idle groups cost nothing",
            None => "usage polled, idle groups too",
        };
        write!(f, "{notice}")?;
        match self.reason.as_str() {
            "" => Ok(()),
            reason => write!(f, " ({reason})"),
        }
    }
}

/// Cpu time that a group has used: `usage_usec` of its `cpu.stat`.
#[derive(Debug)]
pub(crate) struct Counter(File);

impl Counter {
    /// By the file `cpu.stat` of the group.
    pub(crate) fn new(stat: File) -> Counter {
        Counter(stat)
    }

    /// ns since some instant in the past, in whole us.
    pub(crate) fn read_ns(&self) -> io::Result<i64> {
        let mut text = [0u8; 512];
        let length = self.0.read_at(&mut text, 0)?;
        usage_ns(&text[..length]).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// `usage_usec` of a `cpu.stat`, as ns.
fn usage_ns(text: &[u8]) -> Option<i64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let digits = lines.find_map(|line| line.strip_prefix(b"usage_usec "))?;
    let us: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    us.checked_mul(1000)
}

/// Notice, once, when a group has used a given time on one cpu: an event that overflows then and is off afterwards. Its
/// file becomes readable.
#[derive(Debug)]
pub(crate) struct UseNotice {
    file: File,
    ring: Ring,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has overflowed as often as it was to.
    Off,
    /// It will overflow once.
    On,
    /// It would, were it not switched off.
    Paused,
}

/// The shortest time that the kernel's timer of such an event takes, ns (`perf_swevent_start_hrtimer`).
const LEAST_SAMPLE_NS: i64 = 10_000;

impl UseNotice {
    pub(crate) fn open(dir: &File, cpu: u32, event: ClockEvent) -> io::Result<UseNotice> {
        let file = open_event(dir, cpu, event)?;
        let ring = Ring::of(&file)?;
        Ok(UseNotice {
            file,
            ring,
            state: State::Off,
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether notice will come.
    pub(crate) fn is_on(&self) -> bool {
        self.state == State::On
    }

    /// Asks for notice when the group has used `ns` more; an earlier request is forgotten.
    pub(crate) fn arm(&mut self, ns: i64) -> io::Result<()> {
        let period = ns.max(LEAST_SAMPLE_NS).unsigned_abs();
        self.take();
        // Setting the period also forgets the rest of the one before.
        self.control(PERIOD, (&raw const period).addr())?;
        match self.state {
            State::On => {}
            State::Paused => self.control(ENABLE, 0)?,
            // On until one overflow.
            State::Off => self.control(REFRESH, 1)?,
        }
        self.state = State::On;
        Ok(())
    }

    /// Wants no notice.
    pub(crate) fn disarm(&mut self) -> io::Result<()> {
        self.take();
        if self.state == State::On {
            self.control(DISABLE, 0)?;
            self.state = State::Paused;
        }
        Ok(())
    }

    /// Whether notice was given since it was asked for; stops asking.
    pub(crate) fn take(&mut self) -> bool {
        let given = self.ring.empty();
        if given {
            self.state = State::Off;
        }
        given
    }

    fn control(&self, request: libc::Ioctl, argument: usize) -> io::Result<()> {
        // SAFETY: PERIOD reads eight bytes at `argument`, which are the caller's; the others take numbers.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), request, argument) };
        match answer {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

const ENABLE: libc::Ioctl = 0x2400 as libc::Ioctl;
const DISABLE: libc::Ioctl = 0x2401 as libc::Ioctl;
const REFRESH: libc::Ioctl = 0x2402 as libc::Ioctl;
const PERIOD: libc::Ioctl = 0x4008_2404 as libc::Ioctl;

/// The first pages of an event's mapping: the kernel's head and our tail of its records (`struct perf_event_mmap_page`).
#[derive(Debug)]
struct Ring(Map);

const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

impl Ring {
    fn of(file: &File) -> io::Result<Ring> {
        // SAFETY: no memory is involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let length = 2 * usize::try_from(page).unwrap_or(4096);
        Map::bytes_of(file, length).map(Ring)
    }

    /// Empties it; whether there was something in it.
    fn empty(&self) -> bool {
        // SAFETY: both words lie in the first page, aligned, and the kernel uses them as such.
        let (head, tail) = unsafe {
            (
                &*self.0.as_ptr().add(DATA_HEAD).cast::<AtomicU64>(),
                &*self.0.as_ptr().add(DATA_TAIL).cast::<AtomicU64>(),
            )
        };
        let head = head.load(Ordering::Acquire);
        tail.swap(head, Ordering::Release) != head
    }
}

/// Opens an event of the group on `cpu`, off until it is armed.
fn open_event(dir: &File, cpu: u32, event: ClockEvent) -> io::Result<File> {
    const DISABLED: u64 = 1;
    let config = match event {
        ClockEvent::Cpu => 0,
        ClockEvent::Task => 1,
    };
    let mut event = Event::new(perf::SOFTWARE, config);
    event.flags = DISABLED;
    event.sample_period = LEAST_SAMPLE_NS.unsigned_abs();
    event.wakeup_events = 1;
    event.open(Of::Group(dir.as_raw_fd(), cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_in_any_order_of_lines() {
        assert_eq!(usage_ns(b"usage_usec 12\nuser_usec 7\n"), Some(12_000));
        assert_eq!(usage_ns(b"user_usec 7\nusage_usec 5\n"), Some(5_000));
        for bad in [
            &b""[..],
            b"usage_usec x\n",
            b"usage_usec 9223372036854775807\n",
            b"xusage_usec 5\n",
        ] {
            assert_eq!(usage_ns(bad), None);
        }
    }

    #[test]
    fn senses_say_what_they_are() {
        assert_eq!(
            Senses::clock("perf is off").to_string(),
            "usage polled, idle groups too (perf is off)"
        );
    }
}
