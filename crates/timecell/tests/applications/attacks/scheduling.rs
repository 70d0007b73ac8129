//! Attempts to get another scheduling than the cell may have: classes, priorities, cpus, inherited priority.

use libc::syscall;

use super::{answered, call, errno};

/// struct sched_attr of sched_setattr(2), in its first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// SCHED_DEADLINE is admitted even where the cell's real-time group has no budget.
pub fn deadline() -> i64 {
    deadline_of(0)
}

/// A parent may set the class of its child.
pub fn deadline_of_child() -> i64 {
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(100));
        }
    }
    let answer = deadline_of(child);
    let error = errno();
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    answered(answer, error)
}

fn deadline_of(thread: i32) -> i64 {
    let wanted = SchedAttr {
        size: 48,
        policy: 6,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 1_000_000,
        deadline: 100_000_000,
        period: 100_000_000,
    };
    call(unsafe { syscall(libc::SYS_sched_setattr, thread, &raw const wanted, 0) })
}

/// By the system call alone: explaining a refusal means reading files, and a thread that is starved while the kernel holds a lock
/// for it blocks everybody.
pub fn set_class(policy: i32, priority: i32) -> i64 {
    call(unsafe { syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) })
}

pub fn set_parameter() -> i64 {
    let priority = 0_i32;
    call(unsafe { syscall(libc::SYS_sched_setparam, 0, &raw const priority) })
}

pub fn set_affinity() -> i64 {
    let first_cpu = 1_u64;
    call(unsafe { syscall(libc::SYS_sched_setaffinity, 0, 8, &raw const first_cpu) })
}

pub fn set_niceness() -> i64 {
    call(unsafe { syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, -5) })
}

pub fn set_io_priority() -> i64 {
    const REAL_TIME: i32 = 1 << 13;
    call(unsafe { syscall(libc::SYS_ioprio_set, 1, 0, REAL_TIME) })
}

pub fn core_scheduling() -> i64 {
    const PR_SCHED_CORE: i32 = 62;
    const CREATE: i32 = 1;
    call(unsafe { syscall(libc::SYS_prctl, PR_SCHED_CORE, CREATE, 0, 0, 0) })
}

/// Takes a futex whose owner inherits priorities; nobody waits for it.
pub fn inherit(operation: i32) -> i64 {
    let word = std::sync::atomic::AtomicU32::new(0);
    call(unsafe { syscall(libc::SYS_futex, word.as_ptr(), operation, 0, 0, 0, 0) })
}
