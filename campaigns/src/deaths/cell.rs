//! A cell that always wants the cpu and records when it had it.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use host::sched::{self, Class};

use super::Failure;

/// Longer times between two readings of the clock were somebody else's.
const GAP_NS: i64 = 10_000;
/// Stretches that are remembered.
const MOST: usize = 1 << 17;

/// A stretch in which a cell ran, ns.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub from: i64,
    pub to: i64,
    /// Its cpu time at the end, which includes the time of interrupts and switches, as its budget does.
    pub used: i64,
}

/// From when until when a cell ran, and its cpu time at the end.
type Noted = [AtomicI64; 3];

/// State shared by a cell and its maker; the last stretch is the running one.
struct Shared {
    go: AtomicU32,
    count: AtomicU64,
    stretches: [Noted; MOST],
}

pub struct Cell(&'static Shared);

impl Cell {
    pub fn start(group: &Path, cpu: u32, priority: u8) -> Result<Cell, Failure> {
        // SAFETY: atomics only.
        let shared: &Shared = unsafe { crate::shared::page()? };
        // SAFETY: this process has one thread.
        let pid = match unsafe { libc::fork() } {
            0 => spin(shared, cpu, priority),
            pid if pid > 0 => pid,
            _ => return Err(io::Error::last_os_error().into()),
        };
        std::fs::write(group.join("cgroup.procs"), pid.to_string())?;
        Ok(Cell(shared))
    }

    pub fn go(&self) {
        self.0.go.store(1, Ordering::Release);
    }

    /// The stretches that ended after this instant, in order; ns.
    pub fn ran_since(&self, from_ns: i64) -> Vec<Stretch> {
        let count = self.0.count.load(Ordering::Acquire) as usize;
        let of = |at: usize| {
            let [from, to, used] = &self.0.stretches[at % MOST];
            Stretch {
                from: from.load(Ordering::Acquire),
                to: to.load(Ordering::Acquire),
                used: used.load(Ordering::Acquire),
            }
        };
        let mut ran: Vec<_> = (count.saturating_sub(MOST - 1)..count)
            .rev()
            .map(of)
            .take_while(|stretch| stretch.to > from_ns)
            .collect();
        ran.reverse();
        ran
    }
}

fn spin(shared: &Shared, cpu: u32, priority: u8) -> ! {
    // SAFETY: no memory is involved but how this process's pages are kept; it ends with its maker.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE);
    }
    while shared.go.load(Ordering::Acquire) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let got = sched::set_affinity(0, &[cpu])
        .and_then(|()| sched::set_class(0, &Class::Fifo { priority }));
    if let Err(error) = got {
        eprintln!("cell: {error}");
        // SAFETY: ends the process without the maker's exit handlers.
        unsafe { libc::_exit(1) };
    }
    let mut last_ns = i64::MIN / 2;
    let mut count = 0u64;
    loop {
        let now_ns = now_ns();
        if now_ns - last_ns > GAP_NS {
            let [from, to, _] = &shared.stretches[count as usize % MOST];
            from.store(now_ns, Ordering::Relaxed);
            to.store(now_ns, Ordering::Relaxed);
            count += 1;
            shared.count.store(count, Ordering::Release);
        }
        let [_, to, used] = &shared.stretches[(count - 1) as usize % MOST];
        used.store(clock(libc::CLOCK_THREAD_CPUTIME_ID), Ordering::Relaxed);
        to.store(now_ns, Ordering::Release);
        last_ns = now_ns;
    }
}

/// Waits for children that have ended.
pub fn reap() {
    // SAFETY: no status is asked for.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// CLOCK_MONOTONIC, ns.
pub fn now_ns() -> i64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Cpu time of a process with all its threads, ns; 0 once it is gone.
pub fn cpu_ns(pid: i32) -> i64 {
    // The kernel's number of the clock of a process.
    clock((!pid << 3) | 2)
}

fn clock(id: libc::clockid_t) -> i64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write.
    unsafe { libc::clock_gettime(id, &raw mut at) };
    at.tv_sec * 1_000_000_000 + at.tv_nsec
}
