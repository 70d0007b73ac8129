//! The cells of one trial, of any payload, with their enforcers and the loads beside them: created, placed, armed, verified, released
//! together, watched, removed. Callers decide on the payloads and the records.

mod ahead;
mod loads;
pub(crate) mod parallel;
mod place;
mod verify;
mod watch;

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Release;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::Cell;
use host::rtgroup::RtGroup;
use host::sched::{Class, bandwidth};
use probe::control::State;
use probe::{Barrier, BarrierError, clock};
use record::LoadRecord;

pub(crate) use ahead::Ahead;
pub(crate) use loads::{Ended, load_failure};
pub(crate) use place::{Placement, Vcpu};
pub(crate) use verify::{allowed, verify, verify_thread, verify_vcpus};
pub(crate) use watch::Watch;

use crate::BenchError;
use crate::error::failed;
use crate::held::{Held, Wanted, by};
use crate::load::{Running, Start, with_words};
use crate::session::Interrupt;
use loads::Loads;
use parallel::failures;

/// Longest time for one cell from the request to its first message, ns. Podman on a loaded board takes tens of seconds.
pub(crate) const CREATION_NS: i64 = 120_000_000_000;
/// Longest time from the permit to being armed, ns; waiting for bandwidth that is given back is part of it.
pub(crate) const ARMING_NS: i64 = 60_000_000_000;

pub(crate) use record::trial::INTERRUPTED;

/// The cells of one trial at their release barrier, identified by the slot of their first thread. Dropping this ends them.
pub(crate) struct Cells<'a> {
    pub(crate) barrier: Barrier,
    pub(crate) watch: Watch,
    interrupt: Option<&'a Interrupt>,
    made: Vec<Mutex<Option<Made>>>,
    holds: Mutex<Vec<(usize, Box<dyn Held>)>>,
    loads: Mutex<Loads>,
}

/// A cell that is there.
struct Made {
    cell: Box<dyn Cell>,
    slots: Range<usize>,
    /// The cell's own real-time group, which is removed with it.
    group: Option<RtGroup>,
}

/// A trial's remains.
#[derive(Default)]
pub(crate) struct End {
    /// Records of the loads, in the order in which they were started.
    pub loads: Vec<LoadRecord>,
    /// Failed removals, a sentence each.
    pub left: Vec<String>,
}

impl End {
    /// The first thing that went wrong.
    pub(crate) fn result(&self) -> Result<(), String> {
        match self
            .left
            .first()
            .cloned()
            .or_else(|| load_failure(&self.loads))
        {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The failure of a cell whose threads are not known, which could have any class.
const NO_THREADS: &str = "the cell is gone, or its threads are not known";

/// The word for a cell that has reached this state.
fn said(state: State) -> &'static str {
    match state {
        State::Present => "present",
        State::Armed => "armed",
        _ => "done",
    }
}

impl<'a> Cells<'a> {
    /// Makes the control page in `shared` for so many threads, replacing the previous one. An interrupt wakes all waiters.
    pub(crate) fn new(
        shared: &Path,
        slots: usize,
        interrupt: Option<&'a Interrupt>,
    ) -> Result<Cells<'a>, BenchError> {
        // Watching a cell takes a descriptor.
        host::limits::raise();
        let control = shared.join("control");
        match std::fs::remove_file(&control) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed(&control, "remove the last control page")(error));
            }
            _ => {}
        }
        let barrier =
            Barrier::create(&control, slots).map_err(failed(&control, "make the control page"))?;
        let watch = Watch::start(barrier.waker())
            .map_err(|error| BenchError::Failed(format!("cannot watch the cells: {error}")))?;
        if let Some(interrupt) = interrupt {
            interrupt.wakes(Some(barrier.waker()));
        }
        Ok(Cells {
            barrier,
            watch,
            interrupt,
            made: (0..slots).map(|_| Mutex::new(None)).collect(),
            holds: Mutex::default(),
            loads: Mutex::default(),
        })
    }

    /// Whether the user wants an end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(Interrupt::came)
    }

    /// Makes the holder of the cell at `slot`; that may be its class alone.
    pub(crate) fn hold(&self, slot: usize, wanted: &Wanted) -> Result<(), String> {
        let enforcer = wanted.held.enforcer;
        let holder = by(enforcer)
            .ok_or_else(|| format!("timecell cannot hold cells by {} here", enforcer.name()))?;
        let made = holder.hold(&wanted.held, wanted.cpu, &wanted.names())?;
        lock(&self.holds).extend(made.map(|held| (slot, held)));
        Ok(())
    }

    /// What the program of the cell at `slot` is told by its holder.
    pub(crate) fn held_words(&self, slot: usize) -> Vec<String> {
        let holds = lock(&self.holds);
        let own = holds.iter().filter(|(held, _)| *held == slot);
        own.flat_map(|(_, held)| held.words()).collect()
    }

    /// Adds a cell whose threads have these slots and watches it from now on. Returns its pid.
    pub(crate) fn add(&self, slots: Range<usize>, cell: Box<dyn Cell>) -> i32 {
        let (first, pid) = (slots.start, cell.pid());
        self.barrier.slot(first).pid.store(pid, Release);
        *lock(&self.made[first]) = Some(Made {
            cell,
            slots,
            group: None,
        });
        self.watch.add(first, pid);
        pid
    }

    /// Gives the cell at `slot` a real-time group of its own and puts its process there.
    pub(crate) fn give_group(&self, slot: usize, group: RtGroup) -> Result<(), String> {
        let mut made = lock(&self.made[slot]);
        let made = made.as_mut().ok_or("the cell is gone")?;
        let added = group.add(made.cell.pid());
        made.group = Some(group);
        added.map_err(|error| error.to_string())
    }

    /// Calls `at` with the cell at `slot`; `None` if there is none.
    pub(crate) fn look<T>(&self, slot: usize, at: impl FnOnce(&dyn Cell) -> T) -> Option<T> {
        lock(&self.made[slot])
            .as_ref()
            .map(|made| at(made.cell.as_ref()))
    }

    /// The pid of the cell at `slot`, if one is there.
    pub(crate) fn pid(&self, slot: usize) -> Option<i32> {
        self.look(slot, |cell| cell.pid())
    }

    /// The threads of the cell at `slot` that do its work, if one is there; never none.
    pub(crate) fn scheduled(&self, slot: usize) -> Option<Vec<i32>> {
        self.look(slot, |cell| cell.scheduled())
            .filter(|threads| !threads.is_empty())
    }

    /// Those of all cells that are there.
    pub(crate) fn threads(&self) -> Vec<i32> {
        let all = (0..self.made.len()).filter_map(|slot| self.scheduled(slot));
        all.flatten().collect()
    }

    /// Waits for a cell, puts it where it belongs and lets it take its class.
    pub(crate) fn seat(
        &self,
        slots: Range<usize>,
        placement: &Placement<'_>,
    ) -> Result<(), String> {
        self.reach(slots.clone(), State::Present, CREATION_NS)?;
        self.place(slots.start, placement)?;
        slots.for_each(|slot| self.barrier.permit(slot));
        Ok(())
    }

    /// Waits at most so long until the threads of these slots have reached `state`. The error is one sentence.
    pub(crate) fn reach(
        &self,
        slots: Range<usize>,
        state: State,
        patience_ns: i64,
    ) -> Result<(), String> {
        let until = clock::now() + patience_ns;
        let waited = slots.clone().try_for_each(|slot| {
            (self.barrier).wait_cell(slot, state, said(state), until, || self.is_over())
        });
        let failure = |mut slots: Range<usize>| slots.find_map(|slot| self.failure(slot));
        if let Some(why) = failure(slots) {
            return Err(why);
        }
        waited.map_err(|error| match error {
            BarrierError::Stopped if self.interrupted() => INTERRUPTED.to_owned(),
            BarrierError::Stopped => failure(0..self.made.len())
                .or_else(|| self.load_failure())
                .unwrap_or_else(|| error.to_string()),
            BarrierError::TimedOut { .. } => error.to_string(),
        })
    }

    /// Whether there is nothing to wait for: the user wants an end, or something ended before its time.
    pub(crate) fn is_over(&self) -> bool {
        let mut dead = self.watch.dead().into_iter();
        self.interrupted() || dead.any(|place| self.was_early(place))
    }

    /// Whether the process that ended here had work left. After the cells come the loads, whose work is never done.
    fn was_early(&self, place: usize) -> bool {
        let Some(made) = self.made.get(place) else {
            return true;
        };
        let slots = lock(made).as_ref().map(|made| made.slots.clone());
        (slots.unwrap_or(place..place + 1)).any(|slot| self.barrier.state(slot) < State::Done)
    }

    /// Why the thread of this slot will not go on, a sentence with the last output of its cell; `None`: it may.
    pub(crate) fn failure(&self, slot: usize) -> Option<String> {
        let why = match self.barrier.failure(slot) {
            Some(why) => why,
            None if self.watch.is_dead(slot) && self.was_early(slot) => {
                "its process ended before its jobs were done".to_owned()
            }
            None => return None,
        };
        let said = self.look(slot, |cell| cell.log_tail());
        Some(with_words(&why, said.unwrap_or_default().trim()))
    }

    /// Puts the cell at `slot` where it belongs, and into its holder.
    pub(crate) fn place(&self, slot: usize, placement: &Placement<'_>) -> Result<(), String> {
        let threads = self.scheduled(slot).ok_or(NO_THREADS)?;
        threads.into_iter().try_for_each(|pid| {
            placement.take(pid, || {
                let holds = lock(&self.holds);
                let own = holds.iter().find(|(of, _)| *of == slot);
                own.map_or(Ok(()), |(_, held)| held.join(pid))
            })
        })
    }

    /// Gives each virtual cpu of the machine at `slot` its cpus and class, and puts it into its holder.
    pub(crate) fn place_vcpus(&self, slot: usize, vcpus: &[Vcpu<'_>]) -> Result<(), String> {
        let threads = self.scheduled(slot).ok_or(NO_THREADS)?;
        if threads.len() != vcpus.len() {
            let (threads, vcpus) = (threads.len(), vcpus.len());
            return Err(format!(
                "QEMU names {threads} threads of virtual cpus, of {vcpus}"
            ));
        }
        threads.into_iter().zip(vcpus).try_for_each(|(pid, vcpu)| {
            let placement = Placement {
                class: Some((vcpu.cpus, vcpu.class.clone())),
                ..Placement::default()
            };
            placement.take(pid, || {
                let holds = lock(&self.holds);
                let own = holds.iter().find(|(of, _)| *of == vcpu.slot);
                own.map_or(Ok(()), |(_, held)| held.join_thread(pid))
            })
        })
    }

    /// Checks that the threads from this slot on have these classes, by their reports.
    pub(crate) fn verify(&self, first: usize, wanted: &[Class]) -> Result<(), String> {
        verify::threads(&self.barrier, first, wanted)
    }

    /// Starts a load and waits until it is seen at work, or there is nothing to wait for.
    pub(crate) fn start_load(&self, start: &Start<'_>) -> Result<(), Ended> {
        let mut stop = || self.interrupted() || !self.watch.dead().is_empty();
        lock(&self.loads).start(start, &mut stop, |place, pid| {
            self.watch.add(self.made.len() + place, pid);
        })?;
        self.load_failure()
            .map_or(Ok(()), |why| Err(Ended::Failed(why)))
    }

    /// The first load that failed or has ended, and why.
    pub(crate) fn load_failure(&self) -> Option<String> {
        let is_dead = |place| self.watch.is_dead(self.made.len() + place);
        lock(&self.loads).failure(is_dead)
    }

    /// Looks at the loads before the cells are released.
    pub(crate) fn open_windows(&self) {
        lock(&self.loads).each(Running::open_window);
    }

    /// Looks at the loads after the last cell is done.
    pub(crate) fn close_windows(&self) {
        lock(&self.loads).each(Running::close_window);
    }

    /// Every cell is armed: their budgets are held from now on at the latest.
    pub(crate) fn begin_holds(&self) -> Result<(), String> {
        lock(&self.holds)
            .iter()
            .try_for_each(|(_, held)| held.begin())
    }

    /// How exactly the cells at these slots have been held. Ask before the cells end: tearing a process down does not count.
    pub(crate) fn reacted(&self) -> Result<Vec<(usize, Option<record::Reacted>)>, String> {
        let holds = lock(&self.holds);
        (holds.iter())
            .map(|(slot, held)| Ok((*slot, held.reacted()?)))
            .collect()
    }

    /// Takes deadline threads out of their class before they end: the kernel may lose count of one that ends in it.
    pub(crate) fn release_bandwidth(&self) {
        for pid in self.threads() {
            // For a thread that cannot be verified, its end will do.
            let _ = bandwidth::release(pid);
        }
    }

    /// Removes the cell at `slot`, if one is there. One that cannot be removed stays, to be tried again.
    pub(crate) fn remove_one(&self, slot: usize) -> Result<(), String> {
        let mut made = lock(&self.made[slot]);
        let Some(there) = made.as_mut() else {
            return Ok(());
        };
        there.cell.remove().map_err(|error| error.to_string())?;
        let group = made.take().and_then(|made| made.group);
        group
            .map_or(Ok(()), RtGroup::remove)
            .map_err(|error| error.to_string())
    }

    /// Removes every cell, so many at the same time. Failed removals, a sentence each, are left to `timecell clean`.
    pub(crate) fn remove(&self, threads: usize) -> Vec<String> {
        let once = || failures(threads, self.made.len(), |slot| self.remove_one(slot));
        let mut left = once();
        if !left.is_empty() {
            // Retry: slow cells have had more time by now.
            left = once();
        }
        self.forget();
        left
    }

    fn forget(&self) {
        self.made.iter().for_each(|made| drop(lock(made).take()));
    }

    /// Releases everything and removes it: loads, cells, and then their holders.
    pub(crate) fn end(&self) -> End {
        self.barrier.abort();
        if let Some(interrupt) = self.interrupt {
            interrupt.wakes(None);
        }
        let mut end = End::default();
        let loads = std::mem::take(&mut *lock(&self.loads));
        (end.loads, end.left) = loads.stop();
        end.left
            .extend((0..self.made.len()).filter_map(|slot| self.remove_one(slot).err()));
        self.forget();
        let holds = std::mem::take(&mut *lock(&self.holds));
        end.left
            .extend(holds.into_iter().filter_map(|(_, held)| held.end().err()));
        end
    }
}

impl Drop for Cells<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
