//! Arming: locks memory, touches pages, sets cpu and class, and reads the granted class back.

use host::sched::{self, Class, SchedError};

use crate::map::Map;

/// How much of the cell's memory is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Locked {
    /// Nothing: RLIMIT_MEMLOCK allows none.
    Nothing = 0,
    /// All of it, now and in future.
    Everything = 1,
    /// The samples and the stack, because the limit is below the size of the whole process.
    Essentials = 2,
}

/// Locks all memory, or else the memory that the loop writes to: its samples and its stack.
pub(crate) fn lock_memory(samples: Option<&Map>) -> Locked {
    // SAFETY: mlockall only changes how this process's pages are kept.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0 {
        return Locked::Everything;
    }
    let lock = |at: *const libc::c_void, length: usize| {
        // SAFETY: mlock changes no content; a range that is not mapped is refused.
        unsafe { libc::mlock(at, length) == 0 }
    };
    let on_stack = 0u8;
    let here = (&raw const on_stack).addr() & !(PAGE_BYTES - 1);
    let stack_locked = lock(
        std::ptr::without_provenance(here - STACK_BYTES),
        STACK_BYTES + PAGE_BYTES,
    );
    // The frames of the callers, up to the end of the stack, which may be near and is placed at random.
    let above = (1..=STACK_BYTES / PAGE_BYTES).map(|page| here + page * PAGE_BYTES);
    for page in above {
        if !lock(std::ptr::without_provenance(page), PAGE_BYTES) {
            break;
        }
    }
    let samples_locked = samples.is_none_or(|map| lock(map.as_ptr().cast(), map.len()));
    if stack_locked && samples_locked {
        Locked::Essentials
    } else {
        Locked::Nothing
    }
}

/// Stack that the loop may use, in bytes; a multiple of the page size.
const STACK_BYTES: usize = 32 * 1024;
/// The least page size of Linux; where pages are larger, the kernel rounds.
const PAGE_BYTES: usize = 4096;

/// Touches the stack that the loop may use.
#[inline(never)]
pub(crate) fn touch_stack() {
    let mut room = [0u8; STACK_BYTES];
    for page in room.chunks_mut(1024) {
        page[0] = 1;
    }
    std::hint::black_box(&mut room);
}

/// Asks the kernel not to delay timers of this thread by its default slack of 50 us, which applies to SCHED_OTHER.
pub(crate) fn least_timer_slack() {
    // SAFETY: changes a property of the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Pins the calling thread to `cpu`.
pub(crate) fn pin(cpu: u32) -> Result<(), SchedError> {
    sched::set_affinity(0, &[cpu])
}

/// Gives the calling thread `class`.
pub(crate) fn take_class(class: &Class) -> Result<(), SchedError> {
    sched::set_class(0, class)
}

/// Policy number and priority that the kernel reports for the calling thread.
pub(crate) fn class_got() -> (i32, i32) {
    let mut param = [0i32; 16];
    // SAFETY: direct system calls, since musl's wrappers refuse them; sched_param is one int, with room to spare.
    unsafe {
        let policy = libc::syscall(libc::SYS_sched_getscheduler, 0) as i32;
        libc::syscall(libc::SYS_sched_getparam, 0, param.as_mut_ptr());
        // SCHED_RESET_ON_FORK is a flag in the number, not a policy.
        (policy & !0x4000_0000, param[0])
    }
}

/// The cpu the thread stands on.
pub(crate) fn current_cpu() -> u32 {
    // SAFETY: no arguments; fails on no Linux in use.
    unsafe { libc::sched_getcpu() }.unsigned_abs()
}

/// Page faults and context switches of the calling thread so far.
pub(crate) struct Usage {
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

pub(crate) fn usage() -> Usage {
    // SAFETY: rusage is plain data and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    Usage {
        minor_faults: usage.ru_minflt.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        voluntary: usage.ru_nvcsw.unsigned_abs(),
        involuntary: usage.ru_nivcsw.unsigned_abs(),
    }
}
