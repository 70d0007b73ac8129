//! Whether perf gives notice of a group's use here, and in time: tested, not assumed. On some kernels the counter of a
//! group stays at 0. On PREEMPT_RT the notice may come through a thread of low priority, behind the very cell that it
//! reports: Linux 6.1 behaves so, unless `irq_work/N` of the cpu has a priority above the cells (`chrt -f -p 99`). Where
//! nothing was ever written to `cgroup.subtree_control` of the root, the event is refused (ENOENT).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use host::sched::{self, Class};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::counter::{ClockEvent, Senses, UseNotice};
use crate::sys;

/// How long the spinner runs for one trial, ns: cells on that cpu wait for it once or twice.
const SPIN_NS: i64 = 1_000_000;
/// When its notice is asked for, ns.
const NOTICE_NS: i64 = 20_000;
/// How long it may take until the spinner has had its time, ns.
const PATIENCE_NS: i64 = 50_000_000;

/// Finds the event that gives notice of the use of groups on `cpu`, with a process in a group of its own below `parent` that
/// spins for a millisecond twice at most, of class FIFO just below `priority`. The group and the process are gone
/// afterwards.
///
/// An event that cannot be tried does not work, with the reason in the answer.
pub fn senses(parent: &Path, cpu: u32, priority: u8) -> Senses {
    // A thread of its own, whose class and cpu are nobody else's.
    let tried = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // The class first: a cell that spins there already would let nobody else onto that cpu.
            sched::set_class(0, &Class::Fifo { priority })?;
            sched::set_affinity(0, &[cpu])?;
            try_all(parent, cpu, priority - 1)
        });
        thread.join()
    });
    match tried {
        Ok(Ok(senses)) => senses,
        Ok(Err(error)) => Senses::clock(error.to_string()),
        Err(_) => Senses::clock("the test of perf panicked"),
    }
}

/// Notice that comes when the spinner already sleeps does not count.
const LATE: &str = "perf reports usage too late here; on PREEMPT_RT that cpu's kernel thread irq_work needs a priority above the cells";

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn try_all(parent: &Path, cpu: u32, priority: u8) -> Result<Senses, Failure> {
    let dir = parent.join(format!("timecell-proof-{}-{cpu}", std::process::id()));
    let group = Scratch::make(dir)?;
    let spinner = Spinner::start(&group.dir, priority)?;
    let mut reason = String::new();
    for event in [ClockEvent::Task, ClockEvent::Cpu] {
        reason = match attempt(&group, &spinner, cpu, event) {
            Ok(Some(used_ns)) if used_ns < SPIN_NS / 2 => {
                return Ok(Senses {
                    notice: Some(event),
                    reason: String::new(),
                });
            }
            Ok(_) => LATE.to_owned(),
            Err(error) => format!("perf: {error}"),
        }
    }
    Ok(Senses::clock(reason))
}

/// The spinner's use when notice of `event` came, ns; `None`: none came until it was done.
fn attempt(
    group: &Scratch,
    spinner: &Spinner,
    cpu: u32,
    event: ClockEvent,
) -> io::Result<Option<i64>> {
    let dir = File::open(&group.dir)?;
    let mut notice = UseNotice::open(&dir, cpu, event)?;
    let waiting = sys::Waiting::new()?;
    waiting.add(notice.file(), 0)?;
    let before_ns = spinner.used_ns();
    notice.arm(NOTICE_NS)?;
    spinner.go()?;
    let began_ns = sys::now_ns();
    // Nothing but notice wakes this thread while the spinner has the cpu.
    while !spinner.is_done() && sys::now_ns() - began_ns < PATIENCE_NS {
        let mut given = false;
        waiting.wait(SPIN_NS, |_| given = true)?;
        if given && notice.take() {
            return Ok(Some(spinner.used_ns() - before_ns));
        }
    }
    Ok(None)
}

/// A group that is removed when it is dropped.
struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    fn make(dir: PathBuf) -> io::Result<Scratch> {
        std::fs::create_dir(&dir)?;
        Ok(Scratch { dir })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Stays only if somebody put a process into it.
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// A process on the caller's cpu that spins for [`SPIN_NS`] of its cpu time whenever it is told to.
struct Spinner {
    pid: i32,
    orders: File,
    /// How many orders it has carried out, in eight bytes of a file in memory.
    done: File,
    given: std::cell::Cell<u64>,
}

impl Spinner {
    fn start(group: &Path, priority: u8) -> Result<Spinner, Failure> {
        let orders = sys::event_file_blocking()?;
        let done: File = memfd_create(c"timecell-proof", MemfdFlags::CLOEXEC)
            .map_err(io::Error::from)?
            .into();
        done.write_at(&0u64.to_ne_bytes(), 0)?;
        // SAFETY: the child makes system calls only, on descriptors that it has, until it is killed.
        let pid = unsafe { libc::fork() };
        match pid {
            0 => spin_when_told(&orders, &done),
            pid if pid > 0 => {}
            _ => return Err(io::Error::last_os_error().into()),
        }
        let spinner = Spinner {
            pid,
            orders,
            done,
            given: std::cell::Cell::new(0),
        };
        std::fs::write(group.join("cgroup.procs"), pid.to_string())?;
        sched::set_class(pid, &Class::Fifo { priority })?;
        Ok(spinner)
    }

    fn go(&self) -> io::Result<()> {
        self.given.set(self.given.get() + 1);
        io::Write::write_all(&mut &self.orders, &1u64.to_ne_bytes())
    }

    fn is_done(&self) -> bool {
        let mut count = [0u8; 8];
        let read = self.done.read_at(&mut count, 0);
        read.is_ok() && u64::from_ne_bytes(count) >= self.given.get()
    }

    fn used_ns(&self) -> i64 {
        sys::process_cpu_ns(self.pid).unwrap_or(0)
    }
}

fn spin_when_told(mut orders: &File, done: &File) -> ! {
    // SAFETY: no memory is involved; the spinner does not outlive the thread that started it.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut count = 0u64;
    loop {
        let mut order = [0u8; 8];
        if io::Read::read_exact(&mut orders, &mut order).is_err() {
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { libc::_exit(1) };
        }
        let until = sys::thread_cpu_ns() + SPIN_NS;
        while sys::thread_cpu_ns() < until {}
        count += 1;
        let _ = done.write_at(&count.to_ne_bytes(), 0);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet, so the number is still its.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}
