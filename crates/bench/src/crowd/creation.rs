//! Cells made in parallel, a bounded number at the same time. A cell that does not start is a fact on its record; when more fail than the
//! study allows, the rest is not tried.

use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use host::root::Root;
use host::rtgroup::RtGroup;
use model::{Bytes, Scale};
use probe::clock;
use probe::control::State;
use record::crowd::GaveOut;
use record::trial::CellRecord;

use super::guard::ran_short;
use super::{diagnosis, headroom};
use crate::cells::{CREATION_NS, Cells};
use crate::context::Trial;
use crate::payload::{placement, prepare, spec};

/// A cell of the crowd, or why it did not start.
pub(super) struct Seat {
    pub(super) record: CellRecord,
    /// Of its payload, if there is one.
    pid: Option<i32>,
    /// When the engine was asked for it, CLOCK_MONOTONIC ns.
    asked_ns: Option<i64>,
}

/// All that the makers share.
pub(super) struct Crowd<'a> {
    pub(super) trial: &'a Trial<'a>,
    pub(super) cells: Cells<'a>,
    shared: &'a Path,
    /// The plan of each cell.
    planned: &'a [CellRecord],
    pub(super) seats: Vec<Mutex<Seat>>,
    /// Cells that may fail.
    pub(super) allowed: usize,
    /// Memory that must stay free for everybody else.
    memory_reserve: Option<Bytes>,
    failed: AtomicUsize,
    /// The shortage when the first cell failed.
    gave_out: OnceLock<GaveOut>,
    /// Why the rest is not created, where that is not the failure of a cell.
    called_off: OnceLock<String>,
}

pub(super) fn lock(seat: &Mutex<Seat>) -> MutexGuard<'_, Seat> {
    seat.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Name of a group below the root of its hierarchy.
fn group_name(group: &RtGroup) -> String {
    let name = group.path().file_name();
    name.map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

impl<'a> Crowd<'a> {
    pub(super) fn new(
        trial: &'a Trial<'a>,
        cells: Cells<'a>,
        shared: &'a Path,
        planned: &'a [CellRecord],
        scale: &Scale,
    ) -> Crowd<'a> {
        let seat = |record: &CellRecord| {
            Mutex::new(Seat {
                record: record.clone(),
                pid: None,
                asked_ns: None,
            })
        };
        Crowd {
            trial,
            cells,
            shared,
            planned,
            seats: planned.iter().map(seat).collect(),
            allowed: planned.len() * scale.failure_limit as usize / 1_000,
            memory_reserve: scale.memory_reserve,
            failed: AtomicUsize::new(0),
            gave_out: OnceLock::new(),
            called_off: OnceLock::new(),
        }
    }

    /// Whether no more cells are to be created.
    pub(super) fn over(&self) -> bool {
        self.trial.interrupt.came()
            || self.failed.load(Acquire) > self.allowed
            || self.called_off.get().is_some()
    }

    /// Why the rest was not created, where that is not the failure of a cell.
    pub(super) fn called_off(&self) -> Option<&str> {
        self.called_off.get().map(String::as_str)
    }

    /// Ends the trial before this has run out.
    pub(super) fn call_off(&self, why: String, what: GaveOut) {
        let _ = self.called_off.set(why);
        let _ = self.gave_out.set(what);
    }

    /// Cells that have failed.
    pub(super) fn failed(&self) -> usize {
        self.failed.load(Acquire)
    }

    /// The shortage when the first cell failed.
    pub(super) fn gave_out(&self) -> Option<GaveOut> {
        self.gave_out.get().cloned()
    }

    /// Notes why a cell failed; the first time, also the machine's shortage.
    pub(super) fn fail(&self, seat: &mut Seat, why: String) {
        if seat.record.failure.is_none() {
            self.gave_out.get_or_init(|| diagnosis::of(&why));
            seat.record.failure = Some(why);
            self.failed.fetch_add(1, Relaxed);
        }
    }

    /// Makes cell `index` and lets it arm itself.
    pub(super) fn make(&self, index: usize) {
        let mut seat = lock(&self.seats[index]);
        if self.over() {
            // Not a failure of the cell: it was never requested.
            return;
        }
        if let Some(short) = headroom::short(&Root::live(), self.memory_reserve) {
            self.call_off(ran_short(&short), short);
            return;
        }
        if let Err(why) = self.try_make(index, &mut seat) {
            if self.over() && self.cells.barrier.state(index) < State::Present {
                seat.record.failure = Some("abandoned: creation was called off".to_owned());
            } else {
                self.fail(&mut seat, why);
            }
        }
    }

    fn try_make(&self, index: usize, seat: &mut Seat) -> Result<(), String> {
        let (trial, cells) = (self.trial, &self.cells);
        let spec = prepare(trial, self.shared, index, &seat.record)
            .and_then(|()| spec(trial, self.shared, index, self.planned))
            .map_err(|error| error.to_string())?;
        let asked_ns = clock::now();
        seat.asked_ns = Some(asked_ns);
        let cell =
            (trial.plan.engines[&spec.engine].create(&spec)).map_err(|error| error.to_string())?;
        let pid = cells.add(index..index + 1, cell);
        seat.pid = Some(pid);
        let stop = || self.over() || cells.watch.is_dead(index);
        let patience = asked_ns + CREATION_NS;
        let present = (cells.barrier).wait_cell(index, State::Present, "present", patience, stop);
        if let Some(why) = cells.failure(index) {
            return Err(why);
        }
        present.map_err(|error| error.to_string())?;
        seat.record.create_ns = self.present_ns(index).map(|at| at - asked_ns);
        cells.place(index, &placement(trial, index, &seat.record))?;
        if let (Some(held), Some(all)) = (trial.reserved, trial.rt_group) {
            let name = format!("{}/{}", group_name(all), seat.record.id);
            let group = RtGroup::create(&name, held.runtime_us, held.period_us)
                .map_err(|error| error.to_string())?;
            cells.give_group(index, group)?;
        }
        cells.barrier.permit(index);
        Ok(())
    }

    fn present_ns(&self, index: usize) -> Option<i64> {
        Some(self.cells.barrier.slot(index).present_ns.load(Acquire)).filter(|ns| *ns != 0)
    }

    /// Cells whose payload has spoken.
    pub(super) fn present(&self) -> usize {
        (0..self.seats.len())
            .filter(|index| self.present_ns(*index).is_some())
            .count()
    }

    /// From the first request until the last payload spoke, ns; 0 if none did.
    pub(super) fn creation_ns(&self) -> i64 {
        let first = (self.seats.iter())
            .filter_map(|seat| lock(seat).asked_ns)
            .min();
        let last = (0..self.seats.len())
            .filter_map(|index| self.present_ns(index))
            .max();
        match (first, last) {
            (Some(first), Some(last)) => (last - first).max(0),
            _ => 0,
        }
    }

    /// The records of all cells as they stand.
    pub(super) fn records(&self) -> Vec<CellRecord> {
        (self.seats.iter())
            .map(|seat| lock(seat).record.clone())
            .collect()
    }

    /// Cells that are there and have not failed.
    pub(super) fn alive(&self) -> Vec<(usize, i32)> {
        let alive = |(index, seat): (usize, &Mutex<Seat>)| {
            let seat = lock(seat);
            let good = seat.record.failure.is_none();
            seat.pid.filter(|_| good).map(|pid| (index, pid))
        };
        self.seats.iter().enumerate().filter_map(alive).collect()
    }

    /// Waits until every living cell has reached `state` or has ended; those that ended, and those that did not get there in time, have
    /// failed. `false`: `stop` said so first.
    pub(super) fn settle(
        &self,
        state: State,
        what: &'static str,
        deadline_ns: i64,
        stop: &mut dyn FnMut() -> bool,
    ) -> bool {
        let alive = self.alive();
        let mut pending: Vec<usize> = alive.iter().map(|(index, _)| *index).collect();
        let mut stopped = false;
        let waited = (self.cells.barrier).wait_all(state, what, deadline_ns, || {
            stopped = stop();
            let dead = self.cells.watch.dead();
            pending
                .retain(|index| self.cells.barrier.state(*index) < state && !dead.contains(index));
            stopped || pending.is_empty()
        });
        if stopped {
            return false;
        }
        for (index, _) in alive {
            let mut seat = lock(&self.seats[index]);
            if let Some(why) = self.cells.failure(index) {
                self.fail(&mut seat, why);
            } else if self.cells.barrier.state(index) < state {
                let late = waited.as_ref().err().map(ToString::to_string);
                self.fail(&mut seat, late.unwrap_or_else(|| format!("was not {what}")));
            }
        }
        true
    }
}
