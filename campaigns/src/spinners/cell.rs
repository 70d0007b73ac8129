//! A cell of a campaign: a process in a group, whose real-time threads behave in one of several ways.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

use clap::ValueEnum;
use host::sched::{self, Class};

use super::{Failure, contender};

/// Class of the cells' threads.
const CELL: Class = Class::Fifo { priority: 80 };
/// Memory that the long system calls are about.
const BYTES: usize = 64 << 20;

/// The behaviour of a cell's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Behaviour {
    /// Spin in user mode.
    Spin,
    /// Read 64 MB of /dev/zero at a time.
    Read,
    /// Map, fill and unmap 64 MB at a time.
    Populate,
    /// Fork with 64 MB mapped, over and over.
    Fork,
    /// Map 64 MB, touch every page, unmap.
    Fault,
    /// Hold a mutex with priority inheritance that a FIFO 90 thread outside waits for, and spin.
    Pi,
    /// Sleep.
    Sleep,
}

/// State shared by a cell and its maker.
pub struct Shared {
    go: AtomicU32,
    /// When one of the cell's threads read the clock last.
    last_ns: AtomicI64,
    longest_gap_ns: AtomicI64,
    /// A futex with priority inheritance.
    pub mutex: AtomicU32,
}

/// A page that stays shared with children, and is never given back.
pub fn shared() -> Result<&'static Shared, Failure> {
    // SAFETY: atomics only.
    unsafe { crate::shared::page() }
}

/// Forks; the child runs `work` and ends, at the latest with its parent.
pub fn child(work: impl FnOnce()) -> Result<i32, Failure> {
    // SAFETY: this process has one thread when cells are made.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: no memory is involved.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::signal(libc::SIGINT, libc::SIG_IGN);
            }
            work();
            // SAFETY: ends the process without the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        pid if pid > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error().into()),
    }
}

/// Waits for children that have ended.
pub fn reap() {
    // SAFETY: no status is asked for.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Cpu time of a process with all its threads, and of its children that it has waited for, ns; 0 once it is gone.
pub fn cpu_ns(pid: i32) -> i64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write; the number is the clock of the process.
    match unsafe { libc::clock_gettime((!pid << 3) | 2, &raw mut at) } {
        0 => at.tv_sec * 1_000_000_000 + at.tv_nsec,
        _ => 0,
    }
}

pub struct Cell {
    shared: &'static Shared,
    group: std::path::PathBuf,
    pid: i32,
    counts_children: bool,
}

impl Cell {
    pub fn start(
        group: &Path,
        cpu: u32,
        behaviour: Behaviour,
        threads: usize,
    ) -> Result<Cell, Failure> {
        let shared = shared()?;
        if behaviour == Behaviour::Pi {
            contender::wait_for_mutex(cpu, shared)?;
        }
        let pid = child(|| work(shared, cpu, behaviour, threads))?;
        std::fs::write(group.join("cgroup.procs"), pid.to_string())?;
        Ok(Cell {
            shared,
            group: group.to_owned(),
            pid,
            counts_children: behaviour == Behaviour::Fork,
        })
    }

    pub fn go(&self) {
        self.shared.go.store(1, Relaxed);
    }

    /// Of the processes, not of the group: another witness than the one that the enforcer hears. Children count too where
    /// there are any, for which only the group can tell.
    pub fn used_ns(&self) -> i64 {
        match self.counts_children {
            false => cpu_ns(self.pid),
            true => {
                let text = std::fs::read_to_string(self.group.join("cpu.stat"));
                let text = text.unwrap_or_default();
                let us = text
                    .lines()
                    .find_map(|line| line.strip_prefix("usage_usec "));
                us.and_then(|us| us.parse::<i64>().ok()).unwrap_or(0) * 1000
            }
        }
    }

    pub fn forget_gaps(&self) {
        self.shared.longest_gap_ns.store(0, Relaxed);
    }

    pub fn longest_gap_ns(&self) -> i64 {
        self.shared.longest_gap_ns.load(Relaxed)
    }
}

fn work(shared: &'static Shared, cpu: u32, behaviour: Behaviour, threads: usize) {
    if matches!(behaviour, Behaviour::Spin | Behaviour::Pi) {
        // A gap is to be the enforcer's, not that of a page which has to be read again.
        // SAFETY: only how this process's pages are kept changes.
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    }
    while shared.go.load(Relaxed) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let all: Vec<_> = (0..threads)
        .map(|_| {
            std::thread::spawn(move || {
                let got = sched::set_affinity(0, &[cpu]).and_then(|()| sched::set_class(0, &CELL));
                if let Err(error) = got {
                    eprintln!("cell: {error}");
                    return;
                }
                behave(shared, behaviour);
            })
        })
        .collect();
    for thread in all {
        let _ = thread.join();
    }
}

fn behave(shared: &Shared, behaviour: Behaviour) {
    match behaviour {
        Behaviour::Sleep => std::thread::sleep(std::time::Duration::from_secs(100_000)),
        Behaviour::Spin => spin(shared),
        Behaviour::Pi => {
            contender::lock(&shared.mutex);
            spin(shared);
        }
        Behaviour::Read => {
            let mut room = vec![0u8; BYTES];
            while let Ok(mut file) = std::fs::File::open("/dev/zero") {
                let _ = io::Read::read(&mut file, &mut room);
            }
        }
        Behaviour::Populate => loop {
            map(libc::MAP_POPULATE, false);
        },
        Behaviour::Fault => loop {
            map(0, true);
        },
        Behaviour::Fork => {
            let room = vec![1u8; BYTES];
            std::hint::black_box(&room);
            // Fault every page in before forking.
            loop {
                // SAFETY: the child ends at once.
                match unsafe { libc::fork() } {
                    // SAFETY: as above.
                    0 => unsafe { libc::_exit(0) },
                    pid => {
                        // SAFETY: no status is asked for.
                        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                    }
                }
            }
        }
    }
}

fn map(flags: i32, touch: bool) {
    // SAFETY: a new mapping of its own, touched within its bounds and given back.
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        );
        if page == libc::MAP_FAILED {
            return;
        }
        if touch {
            libc::madvise(page, BYTES, libc::MADV_NOHUGEPAGE);
            for at in (0..BYTES).step_by(4096) {
                page.cast::<u8>().add(at).write_volatile(1);
            }
        }
        libc::munmap(page, BYTES);
    }
}

/// Spins for ever and notes the longest time between two readings of the clock by any of the cell's threads.
fn spin(shared: &Shared) {
    loop {
        let now_ns = now_ns();
        let before_ns = shared.last_ns.swap(now_ns, Relaxed);
        if before_ns > 0 && now_ns - before_ns > shared.longest_gap_ns.load(Relaxed) {
            shared.longest_gap_ns.store(now_ns - before_ns, Relaxed);
        }
    }
}

fn now_ns() -> i64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is valid for the write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut at) };
    at.tv_sec * 1_000_000_000 + at.tv_nsec
}
