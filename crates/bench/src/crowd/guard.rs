//! Guard rails around hundreds of cells: the coordinator runs above them, and a watchdog stops them all when ordinary work gets no cpu
//! time any more, or memory is about to run out.
//!
//! Cells are stopped by SIGSTOP and not by a freezer of cgroups: a cell's payload is one process with every engine, in any groups, and the
//! signal takes effect at the next instant that it leaves the kernel.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{Builder, JoinHandle};

use host::root::Root;
use host::{pidfd, sched};
use model::Bytes;
use probe::{Wake, clock};
use record::crowd::{GaveOut, Priorities, WatchdogRecord};

use super::headroom;

/// Between two looks, ns.
const LOOK_NS: i64 = 100_000_000;
/// How far above the cells the coordinator's priority lies.
const ABOVE: u8 = 10;

/// Priority of threads that must preempt the cells; 1 above class OTHER.
pub(super) fn above(cells: Option<u8>) -> u8 {
    cells.map_or(1, |priority| priority.saturating_add(ABOVE).min(99))
}

/// The SCHED_FIFO priority that the calling thread has, 1 to 99, as the kernel says; 0 in any other class, and where the kernel cannot be
/// asked: an unknown one must not be relied on.
pub(super) fn own_priority() -> u8 {
    match sched::get_class(0) {
        Ok(sched::Class::Fifo { priority }) => priority,
        _ => 0,
    }
}

/// Keeps the calling thread above the cells until dropped; its children stay in class OTHER.
pub(super) struct InFront {
    before: sched::Class,
}

impl InFront {
    /// `None` where that is not allowed.
    pub(super) fn of_cells(priority: u8) -> Option<InFront> {
        let before = sched::get_class(0).ok()?;
        sched::set_class_reset_on_fork(0, &sched::Class::Fifo { priority })
            .ok()
            .map(|()| InFront { before })
    }
}

impl Drop for InFront {
    fn drop(&mut self) {
        let _ = sched::set_class(0, &self.before);
    }
}

/// A watchdog's limits for the cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuardLimits {
    /// Longest time that a thread of class OTHER may be kept from running, ns. Throttled real-time work leaves it 50 ms of
    /// every second.
    pub(super) starvation_ns: i64,
    /// Memory that must stay free for everybody else, see [`model::Scale::memory_reserve`].
    pub(super) memory_reserve: Option<Bytes>,
}

/// The watchdog and its canary: two threads until dropped.
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    limits: GuardLimits,
    /// That it got.
    priority: u8,
}

struct Shared {
    /// When the canary, a thread of class OTHER, was last seen alive, CLOCK_MONOTONIC ns.
    canary_ns: AtomicI64,
    worst_ns: AtomicI64,
    froze: AtomicBool,
    /// The resource that fell below a crowd's reserve.
    short: OnceLock<GaveOut>,
    over: AtomicBool,
}

impl Watchdog {
    /// Watches with `priority` where that is allowed, from its return on; freezes `cells` and wakes the coordinator once the canary or the
    /// watchdog itself was kept from running for too long, or too little is left for everybody else.
    pub(super) fn start(
        cells: Vec<Arc<OwnedFd>>,
        priority: u8,
        limits: GuardLimits,
        wake: Wake,
    ) -> std::io::Result<Watchdog> {
        let shared = Arc::new(Shared {
            canary_ns: AtomicI64::new(clock::now()),
            worst_ns: AtomicI64::new(0),
            froze: AtomicBool::new(false),
            short: OnceLock::new(),
            over: AtomicBool::new(false),
        });
        let mut watchdog = Watchdog {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            limits,
            priority: 0,
        };
        let seen = Arc::clone(&shared);
        // The coordinator's class is not inherited.
        let canary = Builder::new()
            .name("canary".to_owned())
            .spawn(move || sing(&seen))?;
        watchdog.threads.push(canary);
        let (tell, told) = mpsc::channel();
        let dog = Builder::new().name("watchdog".to_owned()).spawn(move || {
            // Ask the kernel whether it was granted.
            let _ = sched::set_class(0, &sched::Class::Fifo { priority });
            let _ = tell.send(own_priority());
            look(&shared, &cells, limits, &wake);
        })?;
        watchdog.threads.push(dog);
        watchdog.priority = told.recv().map_err(std::io::Error::other)?;
        Ok(watchdog)
    }

    /// Whether it has stopped the cells.
    pub(super) fn froze(&self) -> bool {
        self.shared.froze.load(Acquire)
    }

    /// Why it has stopped the cells, and the shortage; `None` where it has not.
    pub(super) fn stopped(&self) -> Option<(String, GaveOut)> {
        if !self.froze() {
            return None;
        }
        if let Some(short) = self.shared.short.get() {
            return Some((ran_short(short), short.clone()));
        }
        let seconds = self.limits.starvation_ns as f64 / 1e9;
        let delay = self.shared.worst_ns.load(Acquire) as f64 / 1e9;
        let gave_out = GaveOut {
            what: "cpu time for ordinary work".to_owned(),
            limit: "how long a crowd may keep it from running".to_owned(),
            value: Some(format!("none for {delay:.1} s; the limit is {seconds} s")),
            fix: "use fewer or shorter jobs, or raise the limit (--set scale.starvation_limit=10s)"
                .to_owned(),
        };
        let why = format!("stopped: ordinary work did not run for more than {seconds} s");
        Some((why, gave_out))
    }

    /// Its record, of a coordinator and cells with these SCHED_FIFO priorities, 0 for none.
    pub(super) fn record(&self, coordinator: u8, cells: u8) -> WatchdogRecord {
        WatchdogRecord {
            worst_delay_ns: self.shared.worst_ns.load(Acquire),
            limit_ns: self.limits.starvation_ns,
            froze: self.froze(),
            priorities: Some(Priorities {
                coordinator,
                watchdog: self.priority,
                cells,
            }),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.over.store(true, Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn sing(shared: &Shared) {
    while !shared.over.load(Acquire) {
        shared.canary_ns.store(clock::now(), Release);
        clock::sleep_for(LOOK_NS / 2);
    }
}

/// Why no more cells are created, or the cells were stopped, where so little is left.
pub(super) fn ran_short(short: &GaveOut) -> String {
    let value = short.value.as_deref().unwrap_or("none is left");
    format!("stopped before the {} ran out: {value}", short.what)
}

fn look(shared: &Shared, cells: &[Arc<OwnedFd>], limits: GuardLimits, wake: &Wake) {
    let root = Root::live();
    let mut due_ns = clock::now() + LOOK_NS;
    while !shared.over.load(Acquire) {
        clock::sleep_until(due_ns);
        let now = clock::now();
        let silent_ns = now - shared.canary_ns.load(Acquire) - LOOK_NS / 2;
        let delay_ns = (now - due_ns).max(silent_ns);
        shared.worst_ns.fetch_max(delay_ns, Relaxed);
        let short = headroom::short(&root, limits.memory_reserve);
        let stop = delay_ns > limits.starvation_ns || short.is_some();
        if let Some(short) = short {
            let _ = shared.short.set(short);
        }
        if stop {
            freeze(cells);
            shared.froze.store(true, Release);
            wake.wake();
            return;
        }
        due_ns = now + LOOK_NS;
    }
}

/// Stops the payloads, all of them before anything else.
pub(super) fn freeze(cells: &[Arc<OwnedFd>]) {
    for cell in cells {
        // One that has ended does not matter.
        let _ = pidfd::send(cell, libc::SIGSTOP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::Barrier;

    /// No memory is kept.
    fn limits(starvation_ns: i64) -> GuardLimits {
        GuardLimits {
            starvation_ns,
            memory_reserve: Some(Bytes::new(0)),
        }
    }

    fn state_of(pid: u32) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(')').unwrap();
        rest.split_whitespace().next().unwrap().to_owned()
    }

    #[test]
    fn cells_are_stopped_when_ordinary_work_gets_no_turn() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 1).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let cell = Arc::new(pidfd::open(child.id().cast_signed()).unwrap());
        // Nothing is ever on time to the nanosecond.
        let watchdog = Watchdog::start(
            vec![Arc::clone(&cell)],
            1,
            limits(-1_000_000_000),
            barrier.waker(),
        )
        .unwrap();
        let until = clock::now() + 20_000_000_000;
        while !(watchdog.froze() && state_of(child.id()) == "T") && clock::now() < until {
            clock::sleep_for(1_000_000);
        }
        assert!(watchdog.record(0, 0).froze);
        let (why, gave_out) = watchdog.stopped().unwrap();
        assert!(
            why.starts_with("stopped: ordinary work did not run"),
            "{why}"
        );
        assert_eq!(gave_out.what, "cpu time for ordinary work");
        assert_eq!(state_of(child.id()), "T");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn cells_run_on_while_all_is_well() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 1).unwrap();
        let watchdog = Watchdog::start(Vec::new(), 1, limits(i64::MAX), barrier.waker()).unwrap();
        clock::sleep_for(3 * LOOK_NS);
        let record = watchdog.record(7, 3);
        assert!(!record.froze && watchdog.stopped().is_none());
        assert!(record.worst_delay_ns > 0);
        let priorities = record.priorities.unwrap();
        assert_eq!((priorities.coordinator, priorities.cells), (7, 3));
    }

    #[test]
    fn the_priority_is_that_which_the_kernel_granted() {
        // In a separate thread, so that the other threads of this process are not disturbed.
        std::thread::spawn(|| {
            let granted = sched::set_class(0, &sched::Class::Fifo { priority: 3 }).is_ok();
            assert_eq!(own_priority(), if granted { 3 } else { 0 });
            let dir = tempfile::tempdir().unwrap();
            let barrier = Barrier::create(&dir.path().join("control"), 1).unwrap();
            // No kernel has a priority of 100.
            for (asked, got) in [(2, if granted { 2 } else { 0 }), (100, 0)] {
                let watchdog =
                    Watchdog::start(Vec::new(), asked, limits(i64::MAX), barrier.waker()).unwrap();
                // It inherits the class of its parent, if another is refused.
                let got = if got == 0 { own_priority() } else { got };
                let record = watchdog.record(0, 0);
                assert_eq!(
                    record.priorities.unwrap().watchdog,
                    got,
                    "asked for {asked}"
                );
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_coordinator_is_above_the_cells_and_never_above_99() {
        assert_eq!(above(Some(80)), 90);
        assert_eq!(above(Some(95)), 99);
        assert_eq!(above(None), 1);
    }
}
