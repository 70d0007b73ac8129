//! What is carried over from one mission file to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::cell::{Live, work_dir};
use super::desk::{Desk, Leaving, Wanted, when_shed};
use super::health::Incidents;
use super::keeper::Keeper;
use super::modes::Return;
use super::update::Updating;
use super::watch::CellWatch;
use super::work::Work;
use super::{Event, Plan, RunError, sources};
use crate::control::{CellUpdate, Change, Refusal, Say};
use crate::enforce::Mechanisms;
use crate::journal::Writer;
use crate::ledger::{LedgerError, Locked};
use crate::state::{Mode, Record, State};

/// All that goes on while the mission file becomes another one: what a [`Keeper`] has beside its mission, cells by their names.
pub(super) struct Carried {
    dir: PathBuf,
    desk: Desk,
    journal: Writer<Record>,
    state: State,
    last_sequence: u64,
    mechanisms: Mechanisms,
    same_boot: bool,
    live: BTreeMap<String, Live>,
    work: Work,
    due: BTreeMap<String, i64>,
    watches: BTreeMap<String, CellWatch>,
    incidents: Incidents,
    mode: Mode,
    back: Option<Return>,
    shed_by_mode: BTreeSet<String>,
}

impl<'a> Keeper<'a> {
    /// Lets go of the mission and of nothing else.
    pub(super) fn carried(self) -> Carried {
        let cells = &self.file.mission().cells;
        let name = |at: usize| cells[at].name.clone();
        Carried {
            dir: self.dir,
            desk: self.desk,
            journal: self.journal,
            state: self.state,
            last_sequence: self.last_sequence,
            mechanisms: self.mechanisms,
            work: self.work,
            live: (self.live.into_iter())
                .map(|(at, live)| (name(at), live))
                .collect(),
            due: (self.due.into_iter())
                .map(|(at, due)| (name(at), due))
                .collect(),
            watches: (self.watches.into_iter().enumerate())
                .map(|(at, watch)| (name(at), watch))
                .collect(),
            same_boot: self.same_boot,
            incidents: self.incidents.carried(),
            mode: self.mode,
            back: self.back,
            shed_by_mode: self.shed_by_mode.into_iter().map(name).collect(),
        }
    }

    /// Goes on under this plan.
    ///
    /// # Errors
    /// When a cell's health rules are not to be watched.
    pub(super) fn resume(
        plan: &'a Plan,
        mut carried: Carried,
        tell: &'a mut dyn FnMut(&Event),
    ) -> Result<Keeper<'a>, RunError> {
        let mission = plan.inputs.mission();
        let at = |name: &str| mission.position(name);
        let due = (carried.due.iter()).filter_map(|(name, due)| Some((at(name)?, *due)));
        let shed = carried.shed_by_mode.iter().filter_map(|name| at(name));
        let mut keeper = Keeper {
            file: &plan.inputs.file,
            admission: &plan.admission,
            due: due.collect(),
            pending: BTreeSet::new(),
            watches: Vec::new(),
            last_output: BTreeMap::new(),
            shed_by_mode: shed.collect(),
            incidents: carried.incidents,
            limits_looked_ns: 0,
            mode: carried.mode,
            back: carried.back,
            same_boot: carried.same_boot,
            live: (carried.live.into_iter())
                .filter_map(|(name, live)| Some((at(&name)?, live)))
                .collect(),
            dir: carried.dir,
            desk: carried.desk,
            journal: carried.journal,
            state: carried.state,
            last_sequence: carried.last_sequence,
            mechanisms: carried.mechanisms,
            work: carried.work,
            tell,
        };
        for cell in &mission.cells {
            let watch = match carried.watches.remove(&cell.name) {
                Some(watch) => watch,
                None => keeper.new_watch(cell, &[])?,
            };
            keeper.watches.push(watch);
        }
        Ok(keeper)
    }
}

/// What is decided of an update.
pub(super) struct Decided {
    pub(super) wanted: Wanted,
    /// Cells of the old mission that may run beside the new one.
    pub(super) stay: Vec<String>,
    /// Why the others may not, clauses by their names.
    pub(super) no_room: BTreeMap<String, String>,
    pub(super) changes: BTreeMap<String, Change>,
    pub(super) admission_ns: i64,
}

impl Carried {
    /// The first processes of the cells that run.
    pub(super) fn pids(&self) -> Vec<i32> {
        self.live.values().map(|live| live.inside.pid).collect()
    }

    pub(super) fn take_wanted(&mut self) -> Option<Wanted> {
        self.desk.wanted.take()
    }

    /// The ledger's lock, which the loop took before it ended.
    pub(super) fn take_locked(&mut self) -> Result<Locked, LedgerError> {
        let locked = self.desk.locked.take();
        locked.unwrap_or_else(|| self.desk.ledger.lock())
    }

    /// The limit of memory with which this cell runs, bytes.
    pub(super) fn memory_limit(&self, cell: &str) -> Option<u64> {
        self.live.get(cell)?.app.spec().limits.memory_bytes
    }

    pub(super) fn refuse(&mut self, client: u64, kind: Refusal, why: Vec<String>) {
        self.desk.say(client, Say::Refused { kind, why }, true);
    }

    /// Puts aside what the next plan changes or does not have, so that it can be ended or come back.
    pub(super) fn update(&mut self, before: &Plan, next: &Plan, decided: Decided) {
        let mut first = BTreeSet::new();
        for (name, change) in &decided.changes {
            if !matches!(change, Change::Changed | Change::Removed) {
                continue;
            }
            self.due.remove(name);
            let watch = self.watches.remove(name);
            let Some(live) = self.live.remove(name) else {
                continue;
            };
            if !decided.stay.contains(name) {
                first.insert(name.clone());
            }
            let beside = (self.state.cells.get(name)).is_some_and(crate::state::Cell::is_beside);
            let cell = before.inputs.mission().cell(name);
            let leaving = Leaving {
                live,
                watch,
                beside,
                stop_timeout_ns: cell.map_or(0, |cell| cell.stop_timeout.ns()),
                output: work_dir(&self.dir, name, beside),
                when_shed: when_shed(before.inputs.mission(), name),
                shed_by_mode: self.shed_by_mode.contains(name),
            };
            self.desk.leaving.insert(name.clone(), leaving);
        }
        let cells = decided.changes.iter().map(|(name, change)| CellUpdate {
            cell: name.clone(),
            change: *change,
            beside: self.desk.leaving.contains_key(name) && !first.contains(name),
            pid: None,
        });
        let holds = (self.state.cells.iter())
            .map(|(name, cell)| (name.clone(), cell.holds.clone()))
            .collect();
        let files = [&before.inputs.file, &next.inputs.file];
        let sources = sources::of(files, &self.state.sources);
        self.desk.updating = Some(Updating::new(
            self.state.updates + 1,
            &decided,
            (next.inputs.noted(), sources),
            cells.collect(),
            first,
            holds,
        ));
    }

    /// What was put aside is the mission again.
    pub(super) fn put_back(&mut self) {
        // Those of the new versions: what of the old ones is not put aside begins anew.
        for name in std::mem::take(&mut self.desk.taken_back) {
            self.watches.remove(&name);
            self.due.remove(&name);
        }
        let leaving = std::mem::take(&mut self.desk.leaving);
        for (name, leaving) in leaving {
            match leaving.watch {
                Some(watch) => self.watches.insert(name.clone(), watch),
                None => self.watches.remove(&name),
            };
            // A mission without the cell has forgotten it.
            if leaving.shed_by_mode {
                self.shed_by_mode.insert(name.clone());
            }
            self.live.insert(name, leaving.live);
        }
    }
}
