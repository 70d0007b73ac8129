//! The clock for all times in the page.

/// CLOCK_MONOTONIC in ns, the clock for all times in the page. Read through the vDSO: no system call on most machines.
#[inline]
pub fn now_ns() -> i64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut at) };
    #[allow(clippy::useless_conversion)]
    let (sec, nsec) = (i64::from(at.tv_sec), i64::from(at.tv_nsec));
    sec * 1_000_000_000 + nsec
}
