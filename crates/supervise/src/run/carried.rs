//! State carried over from one mission file to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::assume::Assuming;
use super::desk::{Desk, Wanted};
use super::health::Incidents;
use super::keeper::Keeper;
use super::modes::Return;
use super::update::Updating;
use super::version::{Aside, Cell, when_shed};
use super::work::Work;
use super::{Event, Plan, RunError, sources};
use crate::control::{CellUpdate, Change, Refusal, Say, Total};
use crate::enforce::Mechanisms;
use crate::journal::Writer;
use crate::ledger::{LedgerError, Locked};
use crate::state::{Record, State};

/// Everything that survives an update of the mission file: the state of a [`Keeper`] besides its mission, cells by
/// their names.
pub(super) struct Carried {
    dir: PathBuf,
    desk: Desk,
    journal: Writer<Record>,
    state: State,
    last_sequence: u64,
    mechanisms: Mechanisms,
    work: Work,
    cells: BTreeMap<String, Cell>,
    put_aside: Vec<Cell>,
    earlier: BTreeMap<String, Total>,
    incidents: Incidents,
    back: Option<Return>,
    shed_by_mode: BTreeSet<String>,
}

impl<'a> Keeper<'a> {
    /// Lets go of the mission and of nothing else.
    pub(super) fn carried(mut self) -> Carried {
        let put_aside = self.cells.split_off(self.mission().cells.len());
        let names = (self.mission().cells.iter()).map(|cell| cell.name.clone());
        Carried {
            dir: self.dir,
            desk: self.desk,
            journal: self.journal,
            state: self.state,
            last_sequence: self.last_sequence,
            mechanisms: self.mechanisms,
            work: self.work,
            cells: names.zip(self.cells).collect(),
            put_aside,
            earlier: self.earlier,
            incidents: self.incidents.carried(),
            back: self.back,
            shed_by_mode: self.shed_by_mode,
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
        (carried.shed_by_mode).retain(|name| mission.position(name).is_some());
        let mut keeper = Keeper {
            file: &plan.inputs.file,
            admission: &plan.admission,
            cells: Vec::new(),
            earlier: carried.earlier,
            shed_by_mode: carried.shed_by_mode,
            incidents: carried.incidents,
            limits_looked_ns: 0,
            assuming: Assuming::of(&plan.admission, mission),
            back: carried.back,
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
            let cell = match carried.cells.remove(&cell.name) {
                Some(cell) => cell,
                None => Cell::new(keeper.new_watch(cell, &[])?),
            };
            keeper.cells.push(cell);
        }
        keeper.cells.append(&mut carried.put_aside);
        Ok(keeper)
    }
}

/// The decisions on an update.
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
        let live = self.cells.values().filter_map(|cell| cell.phase.live());
        live.map(|live| live.inside.pid).collect()
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
        let live = self.cells.get(cell)?.phase.live()?;
        live.app.spec().limits.memory_bytes
    }

    pub(super) fn refuse(&mut self, client: u64, kind: Refusal, why: Vec<String>) {
        self.desk.say(client, Say::Refused { kind, why }, true);
    }

    /// Puts aside cells that the next plan changes or does not have, so that they can be ended or come back.
    pub(super) fn update(&mut self, before: &Plan, next: &Plan, decided: Decided) {
        let (mut first, mut aside) = (BTreeSet::new(), BTreeSet::new());
        for (name, change) in &decided.changes {
            if !matches!(change, Change::Changed | Change::Removed) {
                continue;
            }
            let declared = before.inputs.mission().cell(name);
            let cell = self.cells.remove(name).filter(|cell| cell.phase.is_there());
            let (Some(mut cell), Some(declared)) = (cell, declared) else {
                continue;
            };
            if !decided.stay.contains(name) {
                first.insert(name.clone());
            }
            cell.aside = Some(Box::new(Aside {
                declared: declared.clone(),
                when_shed: when_shed(before.inputs.mission(), name),
                shed_by_mode: self.shed_by_mode.contains(name),
            }));
            aside.insert(name.clone());
            self.put_aside.push(cell);
        }
        let cells = decided.changes.iter().map(|(name, change)| CellUpdate {
            cell: name.clone(),
            change: *change,
            beside: aside.contains(name) && !first.contains(name),
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

    /// The cells put aside are the mission again.
    pub(super) fn put_back(&mut self) {
        // Those of the new versions: old ones that are not put aside start afresh.
        for name in std::mem::take(&mut self.desk.taken_back) {
            self.cells.remove(&name);
        }
        for mut cell in std::mem::take(&mut self.put_aside) {
            let Some(aside) = cell.aside.take() else {
                continue;
            };
            let name = aside.declared.name;
            // A mission without the cell has forgotten it.
            if aside.shed_by_mode {
                self.shed_by_mode.insert(name.clone());
            }
            self.cells.insert(name, cell);
        }
    }
}
