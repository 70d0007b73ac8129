//! The coordinator's side of the release barrier.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::control::{ABORT, GO, Slot, Stage, State};
use crate::map::ControlMap;
use crate::program::ending;
use crate::{clock, futex};

/// The release barrier of one trial.
///
/// Cells report to the shared page; the coordinator sleeps on one futex that every report, every death of a
/// cell and every signal wakes ([`Wake`]). Nothing polls.
pub struct Barrier {
    control: Arc<ControlMap>,
}

/// Wakes the coordinator, from another thread or from a signal handler.
#[derive(Clone)]
pub struct Wake {
    control: Arc<ControlMap>,
}

/// Why a wait ended without its condition.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarrierError {
    /// The deadline passed.
    #[error("after {waited_s} s only {reached} of {cells} cells were {what}")]
    TimedOut {
        /// The awaited state, an adjective.
        what: &'static str,
        /// Seconds waited.
        waited_s: i64,
        /// Cells that reached it.
        reached: usize,
        /// All cells.
        cells: usize,
    },
    /// The caller's `stop` returned true: a cell died or the user interrupted.
    #[error("called off")]
    Stopped,
}

impl Barrier {
    /// Makes the shared page at `path`, which must be on tmpfs and must not exist.
    ///
    /// # Errors
    /// When the file cannot be made or mapped.
    pub fn create(path: &Path, cells: usize) -> io::Result<Barrier> {
        Ok(Barrier {
            control: Arc::new(ControlMap::create(path, cells)?),
        })
    }

    /// A handle that wakes this barrier's coordinator.
    pub fn waker(&self) -> Wake {
        Wake {
            control: Arc::clone(&self.control),
        }
    }

    /// The slot of cell `index`.
    ///
    /// # Panics
    /// When the barrier was made for fewer cells.
    pub fn slot(&self, index: usize) -> &Slot {
        self.control.slot(index).expect("a slot for each cell")
    }

    /// The state of cell `index`.
    pub fn state(&self, index: usize) -> State {
        State::from_number(self.slot(index).state.load(Acquire))
    }

    /// Why cell `index` gave up, as a sentence; `None` if it did not.
    pub fn failure(&self, index: usize) -> Option<String> {
        let slot = self.slot(index);
        if self.state(index) != State::Failed {
            return None;
        }
        let errno = slot.errno.load(Acquire);
        let stage = slot.stage.load(Acquire);
        if let Some(told) = of_program(stage, errno) {
            return Some(told);
        }
        let cause = io::Error::from_raw_os_error(errno);
        let hint = match errno {
            _ if stage != Stage::Class as u32 => "",
            libc::EPERM => " (no CAP_SYS_NICE in the cell, or its rt cgroup has no budget)",
            libc::EBUSY => {
                " (with the deadline threads already there it would exceed what the kernel admits)"
            }
            _ => "",
        };
        Some(format!("{}: {cause}{hint}", Stage::doing(stage)))
    }

    /// Sleeps until cell `index` has reached `state` or failed.
    ///
    /// `stop` is asked after every event; `deadline_ns` is on CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// When the deadline passes or `stop` answers true.
    pub fn wait_cell(
        &self,
        index: usize,
        state: State,
        what: &'static str,
        deadline_ns: i64,
        stop: impl FnMut() -> bool,
    ) -> Result<(), BarrierError> {
        self.wait(index..index + 1, state, what, deadline_ns, stop)
    }

    /// Sleeps until every cell has reached `state` or failed; otherwise as [`Barrier::wait_cell`].
    ///
    /// # Errors
    /// When the deadline passes or `stop` answers true.
    pub fn wait_all(
        &self,
        state: State,
        what: &'static str,
        deadline_ns: i64,
        stop: impl FnMut() -> bool,
    ) -> Result<(), BarrierError> {
        let cells = self.control.slots().count();
        self.wait(0..cells, state, what, deadline_ns, stop)
    }

    fn wait(
        &self,
        which: std::ops::Range<usize>,
        state: State,
        what: &'static str,
        deadline_ns: i64,
        mut stop: impl FnMut() -> bool,
    ) -> Result<(), BarrierError> {
        let began = clock::now();
        let events = &self.control.head().events;
        loop {
            let seen = events.load(Acquire);
            let reached = which
                .clone()
                .filter(|index| self.state(*index) >= state)
                .count();
            if reached == which.len() {
                return Ok(());
            }
            if stop() {
                return Err(BarrierError::Stopped);
            }
            if clock::now() >= deadline_ns {
                return Err(BarrierError::TimedOut {
                    what,
                    waited_s: (clock::now() - began) / 1_000_000_000,
                    reached,
                    cells: which.len(),
                });
            }
            futex::wait(events, seen, deadline_ns);
        }
    }

    /// Lets cell `index` go on from its presence to arming.
    pub fn permit(&self, index: usize) {
        let slot = self.slot(index);
        slot.permit.store(1, Release);
        futex::wake_all(&slot.permit);
    }

    /// Gives up cell `index`: its process has ended, or will.
    pub fn give_up(&self, index: usize) {
        let slot = self.slot(index);
        slot.state.store(State::Failed as u32, Release);
    }

    /// Publishes the instant `lead_ns` from now and wakes the armed cells; returns it.
    pub fn open(&self, lead_ns: i64) -> i64 {
        let go_ns = clock::now() + lead_ns;
        self.open_at(go_ns);
        go_ns
    }

    /// Publishes this instant, CLOCK_MONOTONIC ns, and wakes the armed cells.
    pub(crate) fn open_at(&self, go_ns: i64) {
        let head = self.control.head();
        head.go_ns.store(go_ns, Release);
        head.go.store(GO, Release);
        futex::wake_all(&head.go);
    }

    /// Calls the trial off: all waiters give up.
    pub fn abort(&self) {
        let head = self.control.head();
        if head.go.load(Acquire) != GO {
            head.go.store(ABORT, Release);
            futex::wake_all(&head.go);
        }
        for slot in self.control.slots() {
            slot.permit.store(1, Release);
            futex::wake_all(&slot.permit);
        }
        self.leave();
    }

    /// Lets the cells that are done exit.
    pub fn leave(&self) {
        let head = self.control.head();
        head.leave.store(1, Release);
        futex::wake_all(&head.leave);
    }

    /// Lead time that lets `cells` waiters wake and fall asleep again before the instant, ns.
    ///
    /// A wake-up and a new sleep take some 10 us on one cpu; the factor leaves room for a loaded machine.
    pub fn lead_ns(cells: usize) -> i64 {
        20_000_000 + cells as i64 * 100_000
    }
}

impl Wake {
    /// Wakes the coordinator. Async-signal-safe.
    pub fn wake(&self) {
        let events = &self.control.head().events;
        events.fetch_add(1, Release);
        futex::wake_all(events);
    }
}

/// The program's failure that kept a cell from its jobs.
fn of_program(stage: u32, number: i32) -> Option<String> {
    Some(match stage {
        stage if stage == Stage::Exit as u32 => format!("its program {}", ending(number)),
        stage if stage == Stage::Behind as u32 => {
            "its program did not catch up with its skipped releases in too many of its turns (remove [turns], or raise `catch_up` there)".to_owned()
        }
        stage if stage == Stage::Ended as u32 => format!(
            "its program, declared endless, {}",
            ending(number)
        ),
        stage if stage == Stage::EndedEarly as u32 => format!(
            "its program ended after {number} jobs; let it run until it is told to end, or ask for fewer jobs"
        ),
        stage if stage == Stage::Silent as u32 => {
            "its program reported no job through timecell's client".to_owned()
        }
        stage if stage == Stage::Evl as u32 => evl::EvlError::from_number(number).to_string(),
        stage if stage == Stage::Machine as u32 => "its machine failed".to_owned(),
        stage if stage == Stage::Lost as u32 => {
            "its program reported jobs faster than they could be read, one priority below it: \
             check the period, and whether the programs on that cpu leave it any time"
                .to_owned()
        }
        stage if stage == Stage::Nonsense as u32 => {
            "its program reported a job that ends before it begins or is released".to_owned()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BarrierKind, ClassBy, ProbeArgs};
    use model::{Pacing, Work};

    fn args(dir: &Path, slot: usize) -> ProbeArgs {
        ProbeArgs {
            control: dir.join("control"),
            slot,
            samples: Some(dir.join(format!("{slot}.samples"))),
            ring: false,
            work: Work::Timer,
            pacing: Pacing::Periodic,
            period_ns: 1_000_000,
            jobs: 20,
            fifo: None,
            deadline: None,
            cpu: host::cpus::default_rt_cpu(),
            class_by: ClassBy::Coordinator,
            barrier: BarrierKind::Futex,
            ..ProbeArgs::default()
        }
    }

    fn soon() -> i64 {
        clock::now() + 20_000_000_000
    }

    #[test]
    fn cells_arm_start_together_and_leave() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 3).unwrap();
        let cells: Vec<_> = (0..3)
            .map(|slot| {
                let args = args(dir.path(), slot);
                crate::prepare_samples(args.samples.as_ref().unwrap(), 20).unwrap();
                std::thread::spawn(move || crate::run(&args))
            })
            .collect();
        barrier
            .wait_all(State::Present, "present", soon(), || false)
            .unwrap();
        assert!(
            (0..3).all(|i| barrier.state(i) == State::Present),
            "no one arms without a permit"
        );
        (0..3).for_each(|i| barrier.permit(i));
        barrier
            .wait_all(State::Armed, "armed", soon(), || false)
            .unwrap();
        let go_ns = barrier.open(Barrier::lead_ns(3));
        barrier
            .wait_all(State::Done, "done", soon(), || false)
            .unwrap();
        for i in 0..3 {
            assert!(barrier.slot(i).started_ns.load(Acquire) >= go_ns);
            let read = record::samples::read(&dir.path().join(format!("{i}.samples"))).unwrap();
            assert_eq!(read.header.count + read.header.skipped, 20);
            assert_eq!(read.header.go_ns, go_ns);
        }
        assert!(
            cells.iter().all(|cell| !cell.is_finished()),
            "the done wait to be let go"
        );
        barrier.leave();
        for cell in cells {
            assert_eq!(cell.join().unwrap(), 0);
        }
    }

    #[test]
    fn a_trial_called_off_ends_every_cell() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 1).unwrap();
        let args = args(dir.path(), 0);
        crate::prepare_samples(args.samples.as_ref().unwrap(), 20).unwrap();
        let cell = std::thread::spawn(move || crate::run(&args));
        barrier
            .wait_all(State::Present, "present", soon(), || false)
            .unwrap();
        barrier.abort();
        assert_eq!(cell.join().unwrap(), crate::EXIT_ABANDONED);
        assert!(barrier.failure(0).unwrap().contains("abandoned"));
    }

    #[test]
    fn a_cell_that_never_comes_is_a_sentence_and_a_wake_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 2).unwrap();
        let late = barrier.wait_all(State::Armed, "armed", clock::now() + 1_000_000, || false);
        assert_eq!(
            late.unwrap_err().to_string(),
            "after 0 s only 0 of 2 cells were armed"
        );
        let waker = barrier.waker();
        let stopped = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                stopped.store(true, Release);
                waker.wake();
            });
            let ended = barrier.wait_all(State::Armed, "armed", soon(), || stopped.load(Acquire));
            assert_eq!(ended, Err(BarrierError::Stopped));
        });
    }
}
