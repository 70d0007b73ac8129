//! Sleeping on a word of shared memory (futex(2), not private: the word is shared between processes).

use std::sync::atomic::AtomicU32;

/// Sleeps while `word` is `seen`, at most until the CLOCK_MONOTONIC instant `deadline_ns`.
///
/// Returns at once when the word differs already; may return early, so callers look again.
pub(crate) fn wait(word: &AtomicU32, seen: u32, deadline_ns: i64) {
    let deadline = libc::timespec {
        tv_sec: deadline_ns.max(0) / 1_000_000_000,
        tv_nsec: deadline_ns.max(0) % 1_000_000_000,
    };
    // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC deadline; FUTEX_WAIT would take a relative one.
    // SAFETY: the word outlives the call and the deadline is a valid timespec.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            seen,
            &raw const deadline,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes every sleeper on `word`. Async-signal-safe.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}
