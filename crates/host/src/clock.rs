//! The kernel's clocks, in ns.

/// The time of a clock, ns; `None`: there is no such clock, or it is of a process that is gone. Neither allocates nor waits.
#[inline]
pub fn read(clock: libc::clockid_t) -> Option<i64> {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut at) };
    (answer == 0).then(|| at.tv_sec.saturating_mul(1_000_000_000) + at.tv_nsec)
}

/// The steps of a clock, ns; `None`: there is no such clock.
pub fn resolution(clock: libc::clockid_t) -> Option<u64> {
    let mut step = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `step` is valid for the write.
    let answer = unsafe { libc::clock_getres(clock, &raw mut step) };
    // Both fields have another width on 32-bit boards.
    let ns = i128::from(step.tv_sec) * 1_000_000_000 + i128::from(step.tv_nsec);
    (answer == 0).then(|| u64::try_from(ns).unwrap_or(u64::MAX))
}

/// CLOCK_MONOTONIC, ns.
#[inline]
pub fn now() -> i64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// The clock of the cpu time of all threads of a process, which can be read until it has been waited for.
pub const fn of_process(pid: i32) -> libc::clockid_t {
    // The kernel's number: the pid inverted, above CPUCLOCK_SCHED.
    (!pid << 3) | 2
}

/// The clock of the cpu time of a thread of this process.
pub const fn of_thread(tid: i32) -> libc::clockid_t {
    of_process(tid) | 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_is_used() {
        let (before, pid) = (now(), std::process::id().cast_signed());
        let clocks = [of_process(pid), of_thread(crate::process::thread_id())];
        let used = clocks.map(|clock| read(clock).unwrap());
        while clocks.map(|clock| read(clock).unwrap()) == used {}
        assert!(now() > before && used.iter().all(|ns| *ns > 0), "{used:?}");
        assert_eq!(read(of_process(i32::MAX >> 4)), None);
    }
}
