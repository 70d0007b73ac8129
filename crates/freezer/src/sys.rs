//! The system calls of the enforcing loop: clocks, waiting, scheduling classes by number. None of them allocates.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

const SECOND_NS: i64 = 1_000_000_000;
/// `SCHED_DEADLINE` of `include/uapi/linux/sched.h`.
pub(crate) const SCHED_DEADLINE: i32 = 6;
const FLAG_RESET_ON_FORK: u64 = 1;
const SCHED_RESET_ON_FORK: i32 = 0x4000_0000;

/// CLOCK_MONOTONIC, ns.
pub(crate) fn now_ns() -> i64 {
    clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Cpu time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> i64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// Cpu time of all threads of a process, ns; `None` once it has been waited for.
pub(crate) fn process_cpu_ns(pid: i32) -> Option<i64> {
    // The kernel's number of the clock of a process: its pid inverted, above CPUCLOCK_SCHED.
    clock((!pid << 3) | 2)
}

fn clock(id: libc::clockid_t) -> Option<i64> {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write.
    let answer = unsafe { libc::clock_gettime(id, &raw mut at) };
    (answer == 0).then(|| at.tv_sec * SECOND_NS + at.tv_nsec)
}

/// The file of a descriptor that a call has just returned, or what the call said.
pub(crate) fn owned(answer: i64) -> io::Result<File> {
    match RawFd::try_from(answer) {
        // SAFETY: a new descriptor, which nobody else has.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `Ok` for an answer that is not negative.
pub(crate) fn checked(answer: i64) -> io::Result<i64> {
    match answer {
        0.. => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A set of files to wait for, each known by a number.
#[derive(Debug)]
pub(crate) struct Waiting(File);

/// Files that are ready in one answer at most; the others are in the next.
const READY_AT_ONCE: usize = 16;

impl Waiting {
    pub(crate) fn new() -> io::Result<Waiting> {
        // SAFETY: no memory is involved.
        let answer = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        owned(i64::from(answer)).map(Waiting)
    }

    /// Waits for `file` to become readable too.
    pub(crate) fn add(&self, file: &File, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number,
        };
        // SAFETY: the kernel reads `event` only.
        let answer = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                file.as_raw_fd(),
                &raw mut event,
            )
        };
        checked(i64::from(answer)).map(drop)
    }

    /// Waits for it no longer.
    pub(crate) fn remove(&self, file: &File) -> io::Result<()> {
        // SAFETY: without an event to read.
        let answer = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                file.as_raw_fd(),
                std::ptr::null_mut(),
            )
        };
        checked(i64::from(answer)).map(drop)
    }

    /// Sleeps for `ns` at most or until a file is ready; calls `ready` with the number of each. A signal ends the sleep.
    ///
    /// The sleep is the kernel's sleeper for real-time threads, which PREEMPT_RT wakes from the interrupt itself; a
    /// timerfd would be served by a thread of low priority there, behind the very cells that are to be stopped.
    pub(crate) fn wait(&self, ns: i64, mut ready: impl FnMut(u64)) -> io::Result<()> {
        let ns = ns.max(0);
        let limit = libc::timespec {
            tv_sec: ns / SECOND_NS,
            tv_nsec: ns % SECOND_NS,
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; READY_AT_ONCE];
        // SAFETY: the kernel writes at most as many events as there are and reads `limit`; no signal mask is given.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                READY_AT_ONCE,
                &raw const limit,
                std::ptr::null::<libc::c_void>(),
                0usize,
            )
        };
        match checked(answer) {
            Ok(count) => {
                let count = usize::try_from(count).unwrap_or(0).min(READY_AT_ONCE);
                events[..count].iter().for_each(|event| ready(event.u64));
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// A descriptor of a process, ready for reading once all its threads have ended.
pub(crate) fn open_process(pid: i32) -> io::Result<File> {
    // SAFETY: no memory is involved.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0u32) })
}

/// Kills the process of a descriptor; fine if it has ended.
pub(crate) fn kill_process(process: &File) -> io::Result<()> {
    // SAFETY: no information goes with the signal.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::c_void>(),
            0u32,
        )
    };
    match checked(answer) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// The state of a thread as `/proc` has it: `b'T'` for a stopped one; `None` once it is gone. Without allocating.
pub(crate) fn thread_state(pid: i32, tid: i32) -> Option<u8> {
    let mut path = [0u8; 64];
    let mut room = &mut path[..63];
    io::Write::write_fmt(&mut room, format_args!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // SAFETY: a path that ends in NUL, as the last bytes were not written.
    let file = owned(i64::from(unsafe {
        libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC)
    }));
    let mut text = [0u8; 128];
    let length = io::Read::read(&mut file.ok()?, &mut text).ok()?;
    let end = text[..length].iter().rposition(|byte| *byte == b')')?;
    text.get(end + 2).copied()
}

/// A counter that can be waited for and wakes who waits.
pub(crate) fn event_file() -> io::Result<File> {
    // SAFETY: no memory is involved.
    owned(i64::from(unsafe {
        libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)
    }))
}

/// As [`event_file`], but reading waits.
pub(crate) fn event_file_blocking() -> io::Result<File> {
    // SAFETY: no memory is involved.
    owned(i64::from(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }))
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
        /// The kernel's `struct sched_attr`, first version.
        #[repr(C)]
        #[derive(Default)]
        struct Attr {
            size: u32,
            policy: u32,
            flags: u64,
            nice: i32,
            priority: u32,
            times: [u64; 3],
        }
        let mut attr = Attr::default();
        let size = size_of::<Attr>();
        // SAFETY: the kernel writes at most `size` bytes into `attr`, which has them.
        let answer =
            unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0u32) };
        (answer == 0).then(|| Policy {
            number: attr.policy.cast_signed(),
            priority: attr.priority.cast_signed(),
            reset_on_fork: attr.flags & FLAG_RESET_ON_FORK != 0,
        })
    }

    /// Gives it to thread `tid`; any but DEADLINE. The nice value stays.
    pub(crate) fn give(self, tid: i32) -> io::Result<()> {
        // The kernel's sched_param is one int.
        let priority = self.priority;
        let flag = if self.reset_on_fork {
            SCHED_RESET_ON_FORK
        } else {
            0
        };
        // SAFETY: the kernel reads the one int.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_sched_setscheduler,
                tid,
                self.number | flag,
                &raw const priority,
            )
        };
        checked(answer).map(drop)
    }

    pub(crate) fn is_fixed_priority(self) -> bool {
        matches!(self.number, libc::SCHED_FIFO | libc::SCHED_RR)
    }
}
