//! Events of perf_event_open(2): the one call, shared by the counters of tasks and the watch on a group's cpu time.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// The first version of the kernel's `struct perf_event_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    kind: u32,
    size: u32,
    config: u64,
    /// It overflows after so much; 0: never.
    pub sample_period: u64,
    sample_type: u64,
    /// The fields read of it.
    pub read_format: u64,
    /// The bits of the structure, the first (`disabled`) the lowest.
    pub flags: u64,
    /// Overflows after which a waiter is woken.
    pub wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

/// Kind of events that need a PMU.
pub const HARDWARE: u32 = 0;
/// Kind of events that the kernel counts by itself.
pub const SOFTWARE: u32 = 1;

/// The target of the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A thread (0: the calling one) on any cpu, in the group of events of this leader (-1: in none).
    Thread(i32, i32),
    /// The cgroup whose open directory this is, on one cpu.
    Group(i32, u32),
}

impl Event {
    /// Which one of a kind, as `include/uapi/linux/perf_event.h` numbers them.
    pub const fn new(kind: u32, config: u64) -> Event {
        Event {
            kind,
            size: size_of::<Event>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: 0,
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
        }
    }

    /// Opens it; closed on exec.
    ///
    /// # Errors
    /// The kernel's error, such as ENOENT where there is no such hardware, or EACCES.
    pub fn open(&self, of: Of) -> io::Result<File> {
        const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
        const PID_CGROUP: libc::c_ulong = 1 << 2;
        let (id, cpu, leader, flags) = match of {
            Of::Thread(tid, leader) => (tid, -1, leader, CLOSE_ON_EXEC),
            Of::Group(dir, cpu) => (dir, cpu.cast_signed(), -1, PID_CGROUP | CLOSE_ON_EXEC),
        };
        // SAFETY: the kernel only reads the event, which says its own size and outlives the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(self),
                id,
                cpu,
                leader,
                flags,
            )
        };
        match i32::try_from(fd) {
            // SAFETY: a descriptor that the kernel has just given to us alone.
            Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
