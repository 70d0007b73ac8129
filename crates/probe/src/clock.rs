//! CLOCK_MONOTONIC in signed nanoseconds, and sleeping on it.

const NS: i64 = 1_000_000_000;

/// CLOCK_MONOTONIC in ns. A call through the vDSO, no system call on the usual machines.
#[inline(always)]
pub fn now() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Cpu time of the calling thread in ns.
pub fn thread_cpu_time() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Cpu time of all threads of this process in ns.
pub fn process_cpu_time() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Cpu time of all threads of another process in ns; 0 once it has ended.
pub(crate) fn process_cpu_time_of(pid: libc::pid_t) -> i64 {
    // The kernel's number of the clock of a process: its pid inverted, above CPUCLOCK_SCHED.
    read((!pid << 3) | 2)
}

#[inline(always)]
pub(crate) fn read(clock: libc::clockid_t) -> i64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write; the clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut at) };
    at.tv_sec * NS + at.tv_nsec
}

/// Sleeps until CLOCK_MONOTONIC reaches `instant_ns`; returns at once if it has passed.
#[inline(always)]
pub fn sleep_until(instant_ns: i64) {
    sleep(libc::TIMER_ABSTIME, instant_ns);
}

/// Sleeps for `ns` nanoseconds.
#[inline(always)]
pub fn sleep_for(ns: i64) {
    sleep(0, ns);
}

#[inline(always)]
fn sleep(flags: libc::c_int, ns: i64) {
    let time = libc::timespec {
        tv_sec: ns.max(0) / NS,
        tv_nsec: ns.max(0) % NS,
    };
    loop {
        // SAFETY: `time` is a valid timespec; no remainder is asked for.
        let answer = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                flags,
                &raw const time,
                std::ptr::null_mut(),
            )
        };
        if answer != libc::EINTR || flags == 0 {
            return;
        }
    }
}

/// Median cost of one clock reading in ns, from 1,001 pairs of readings.
pub fn reading_cost_ns() -> u64 {
    let mut costs = [0i64; 1001];
    for cost in &mut costs {
        let from = now();
        // Eight readings between the stamps, so that the clock's own resolution does not round the cost away.
        for _ in 0..7 {
            std::hint::black_box(now());
        }
        *cost = (now() - from) / 8;
    }
    costs.sort_unstable();
    costs[500].unsigned_abs()
}
