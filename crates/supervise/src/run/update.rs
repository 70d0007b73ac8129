//! Updates a mission while it runs.

use std::collections::{BTreeMap, BTreeSet};

use engine::Cell as _;

use super::carried::{Carried, Decided};
use super::desk::Served;
use super::keeper::Keeper;
use super::phase::Next;
use super::plan::memory;
use super::sources::Sources;
use super::version::Cell;
use super::work::Why;
use super::{Asked, Event, RunError};
use crate::cause::ended;
use crate::control::{CellUpdate, Change, Say, Updated};
use crate::ledger::{LedgerError, Locked};
use crate::state::{Entry, Hold, Text};

/// Longest time to wait for the removal of ended cells' groups, ns: the kernel counts a removed group for some tens of
/// ms more.
const SHRINKING_NS: i64 = 1_000_000_000;
/// Time between two tries.
pub(super) const TRYING_NS: i64 = 20_000_000;

/// How a [`Keeper`]'s loop ends.
pub(super) enum Turn {
    /// The mission has ended.
    Over(Asked),
    /// A client wants to update the mission.
    Wanted(Box<Carried>),
    /// The new version has failed and is gone, the old one is to continue.
    TakenBack(Box<Carried>),
}

/// An update in progress.
pub(super) struct Updating {
    pub(super) client: u64,
    phase: Phase,
    file: Text,
    sources: Sources,
    window_ns: i64,
    /// Cells whose old versions must have ended before anything new is started.
    first: BTreeSet<String>,
    /// Why, clauses by the cells' names.
    no_room: BTreeMap<String, String>,
    /// Cells as they were before the update had them held.
    holds: BTreeMap<String, BTreeSet<Hold>>,
    failed: Option<String>,
    told: Updated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been done.
    Decided,
    /// Old versions end that leave no room for the new ones.
    MakesRoom,
    /// The new versions are started.
    Starts,
    /// All new versions were started; until this instant they must not fail.
    Watches { until_ns: i64 },
    /// The new version stays; the old one ends, and room that is not needed is given back.
    Finishes { since_ns: i64 },
    /// The new version ends, the old one stays.
    TakesBack,
}

impl Updating {
    pub(super) fn new(
        number: u64,
        decided: &Decided,
        (file, sources): (Text, Sources),
        cells: Vec<CellUpdate>,
        first: BTreeSet<String>,
        holds: BTreeMap<String, BTreeSet<Hold>>,
    ) -> Updating {
        Updating {
            client: decided.wanted.client,
            phase: Phase::Decided,
            file,
            sources,
            window_ns: decided.wanted.window_ns.max(0),
            first,
            no_room: decided.no_room.clone(),
            holds,
            failed: None,
            told: Updated {
                update: number,
                committed: false,
                reason: None,
                admission_ns: decided.admission_ns,
                cells,
            },
        }
    }

    pub(super) fn next_ns(&self) -> Option<i64> {
        match self.phase {
            Phase::Watches { until_ns } => Some(until_ns),
            Phase::Finishes { .. } => Some(timecell_client::now_ns() + TRYING_NS),
            _ => None,
        }
    }

    /// Names of the cells that are recreated.
    fn fresh(&self) -> impl Iterator<Item = &String> {
        (self.told.cells.iter())
            .filter(|cell| matches!(cell.change, Change::Changed | Change::Added))
            .map(|cell| &cell.cell)
    }

    /// Those of them for which there is no room yet.
    fn await_room(&self) -> impl Iterator<Item = &String> {
        self.fresh().filter(|_| self.phase == Phase::MakesRoom)
    }
}

impl Keeper<'_> {
    /// Begins an update that was decided.
    pub(super) fn begin_update(&mut self) -> Result<(), RunError> {
        let Some(updating) = &mut self.desk.updating else {
            return Ok(());
        };
        if updating.phase != Phase::Decided {
            return Ok(());
        }
        updating.phase = Phase::MakesRoom;
        let first: Vec<String> = updating.first.iter().cloned().collect();
        let client = updating.client;
        let no_room: Vec<String> = (first.iter())
            .map(|name| {
                let why =
                    (updating.no_room.get(name)).map_or(String::new(), |why| format!("; {why}"));
                format!(
                    "there is no room for both versions of {name}, so the old one is stopped first{why}"
                )
            })
            .collect();
        let begun = Entry::UpdateBegun {
            update: updating.told.update,
            file: updating.file.clone(),
            cells: updating.fresh().cloned().collect(),
            sources: updating.sources.clone(),
        };
        self.note(begun);
        self.release_fresh();
        for text in no_room {
            self.desk.say(client, Say::Notice { text }, false);
        }
        for name in &first {
            if let Some(at) = self.aside_of(name) {
                self.tell_to_end(at)?;
            }
        }
        Ok(())
    }

    /// A cell that is recreated starts afresh: failures of its previous version no longer count, nor for those that
    /// need it. A cell stopped by hand, or shed, stays so.
    fn release_fresh(&mut self) {
        for at in self.fresh_positions() {
            self.release(at, &|hold| {
                matches!(
                    hold,
                    Hold::ByRule | Hold::RestartLimit | Hold::Ended | Hold::Needs
                )
            });
            for dependent in self.mission().dependents(at) {
                self.release(dependent, &|hold| hold == Hold::Needs);
            }
        }
    }

    /// The cells that an update recreates while there is no room for them yet. Cells that it leaves alone have their own.
    pub(super) fn await_room(&self) -> Vec<usize> {
        let names = self.desk.updating.iter().flat_map(Updating::await_room);
        names
            .filter_map(|name| self.mission().position(name))
            .collect()
    }

    /// Whether old versions must end before anything is started.
    fn awaits_ends(&self) -> bool {
        self.desk.updating.as_ref().is_some_and(|updating| {
            updating.phase == Phase::MakesRoom
                && (updating.first.iter()).any(|name| self.aside_of(name).is_some())
        })
    }

    /// Takes an update as far as it can go now.
    pub(super) fn turn_update(&mut self) -> Result<Option<Served>, RunError> {
        if self.desk.wanted.is_some() {
            // Cells being made or taken down are waited for: they belong to the mission as it is.
            return Ok((self.is_idle() && self.has_ledger()).then_some(Served::Wanted));
        }
        let now = timecell_client::now_ns();
        let Some(updating) = &self.desk.updating else {
            return Ok(None);
        };
        let (client, window_ns, now_in) = (updating.client, updating.window_ns, updating.phase);
        let failed = updating.failed.is_some();
        let phase = match now_in {
            Phase::MakesRoom | Phase::Starts | Phase::Watches { .. } if failed => {
                self.end_fresh()?;
                Phase::TakesBack
            }
            // An update that gets none has failed.
            Phase::MakesRoom if !self.awaits_ends() => match self.fit_kept(Why::Grows) {
                None => Phase::MakesRoom,
                Some(Ok(_)) => Phase::Starts,
                Some(Err(why)) => {
                    self.fail_update(why);
                    return self.turn_update();
                }
            },
            // Those that wait for others which have become ready included.
            Phase::Starts
                if !self
                    .fresh_positions()
                    .iter()
                    .map(|at| &self.cells[*at].phase)
                    .any(|phase| phase.waits() || phase.is_starting()) =>
            {
                if self.fresh_positions().is_empty() {
                    // Nothing is new, so there is nothing to prove itself.
                    Phase::Watches { until_ns: now }
                } else {
                    let text = format!(
                        "the new version has started and is watched for {}",
                        model::Duration::from_ns(window_ns)
                    );
                    self.desk.say(client, Say::Notice { text }, false);
                    Phase::Watches {
                        until_ns: now.saturating_add(window_ns),
                    }
                }
            }
            Phase::Watches { until_ns } if until_ns <= now => {
                self.commit()?;
                Phase::Finishes { since_ns: now }
            }
            Phase::Finishes { since_ns } if self.nothing_leaves() => {
                let fitted = self.fit_kept(Why::Finishes);
                if matches!(fitted, Some(Ok(true))) || now - since_ns > SHRINKING_NS {
                    if let Some(locked) = self.desk.lock_ledger() {
                        self.forget_leaving(locked);
                        self.answer_update(true);
                    }
                    return Ok(None);
                }
                return Ok(None);
            }
            Phase::TakesBack if self.fresh_have_ended() && self.is_idle() && self.has_ledger() => {
                self.take_back();
                return Ok(Some(Served::TakenBack));
            }
            phase => phase,
        };
        if let Some(updating) = &mut self.desk.updating
            && updating.phase != phase
        {
            updating.phase = phase;
            self.start_pending()?;
            return self.turn_update();
        }
        Ok(None)
    }

    /// Whether the ledger is locked for the steps after this loop, or cannot be.
    fn has_ledger(&mut self) -> bool {
        if self.desk.locked.is_none() {
            self.desk.locked = self.desk.lock_ledger();
        }
        self.desk.locked.is_some()
    }

    /// Whether the failure of this cell fails an update, which then has to be rolled back.
    ///
    /// `what` was observed of it; `None`: it has ended.
    pub(super) fn fails_update(&mut self, at: usize, what: Option<String>) -> bool {
        let name = self.mission().cells[at].name.clone();
        let Some(updating) = &self.desk.updating else {
            return false;
        };
        let watched = !matches!(updating.phase, Phase::Finishes { .. } | Phase::TakesBack);
        if !watched || !updating.fresh().any(|fresh| *fresh == name) {
            return false;
        }
        let why = match &self.cells[at].failure {
            _ if what.is_some() => {
                let what = what.unwrap_or_default();
                format!("`{name}` failed before its health window was over: {what}")
            }
            Some(why) => format!("`{name}` could not be started: {why}"),
            None => {
                let end = self.state.cells.get(&name);
                let end = end.and_then(|cell| Some((cell.last_end?.2, cell.last_cause.as_ref())));
                let end = end.map_or("ended".to_owned(), |(end, cause)| ended(end, cause));
                format!("`{name}` {end} before its health window was over")
            }
        };
        self.fail_update(why);
        true
    }

    fn fail_update(&mut self, why: String) {
        if let Some(updating) = &mut self.desk.updating {
            updating.failed.get_or_insert(why);
        }
    }

    fn fresh_positions(&self) -> Vec<usize> {
        let fresh = self.desk.updating.iter().flat_map(Updating::fresh);
        fresh
            .filter_map(|name| self.mission().position(name))
            .collect()
    }

    fn end_fresh(&mut self) -> Result<(), RunError> {
        for at in self.fresh_positions() {
            self.follow(at, Next::Stays);
            self.tell_to_end(at)?;
        }
        Ok(())
    }

    fn fresh_have_ended(&self) -> bool {
        !(self.fresh_positions().iter()).any(|at| self.is_there(*at))
    }

    /// Whether nothing is there any more that an update has put aside.
    pub(super) fn nothing_leaves(&self) -> bool {
        self.put_aside().is_empty()
    }

    /// The new version should run from now on.
    fn commit(&mut self) -> Result<(), RunError> {
        let Some(updating) = &self.desk.updating else {
            return Ok(());
        };
        let update = updating.told.update;
        let removed: Vec<String> = (updating.told.cells.iter())
            .filter(|cell| cell.change == Change::Removed)
            .map(|cell| cell.cell.clone())
            .collect();
        self.note(Entry::UpdateCommitted { update });
        for cell in removed {
            // A later cell of this name starts afresh.
            let holds = (self.state.cells.get(&cell)).map(|cell| cell.holds.clone());
            for why in holds.into_iter().flatten() {
                let cell = cell.clone();
                self.note(Entry::CellReleased { cell, why });
            }
        }
        self.tell_leaving_to_end()
    }

    /// The old version should run.
    fn take_back(&mut self) {
        let Some(updating) = &self.desk.updating else {
            return;
        };
        let update = updating.told.update;
        let reason = updating.failed.clone().unwrap_or_default();
        let before = updating.holds.clone();
        let fresh: Vec<String> = updating.fresh().cloned().collect();
        let had = |name: &str, hold: Hold| {
            let holds = before.get(name);
            holds.is_some_and(|holds| holds.contains(&hold))
        };
        // Cells are shed by the mission's mode, which stays: only the new version of a cell was shed alone.
        let new: Vec<(String, Hold)> = (self.state.cells.iter())
            .flat_map(|(name, cell)| cell.holds.iter().map(|hold| (name.clone(), *hold)))
            .filter(|(name, hold)| !had(name, *hold))
            .filter(|(name, hold)| *hold != Hold::Shed || fresh.contains(name))
            .collect();
        self.note(Entry::UpdateRolledBack {
            update,
            reason: reason.clone(),
        });
        for (cell, why) in new {
            if why == Hold::Shed {
                self.shed_by_mode.remove(&cell);
            }
            self.note(Entry::CellReleased { cell, why });
        }
        // Holds that the update had lifted for another try are as before.
        for (cell, holds) in before {
            let now = (self.state.cells.get(&cell)).map(|cell| cell.holds.clone());
            let now = now.unwrap_or_default();
            let given = |hold: &Hold| *hold != Hold::Shed && !now.contains(hold);
            for why in holds.into_iter().filter(given) {
                let cell = cell.clone();
                self.note(Entry::CellHeld { cell, why });
            }
        }
        for at in self.fresh_positions() {
            let name = self.mission().cells[at].name.clone();
            let beside = self.place_for(&name);
            self.remove_page(&name, beside);
            self.desk.taken_back.push(name);
        }
        let text = format!("update {update} was rolled back: {reason}");
        (self.tell)(&Event::Note { text });
        self.desk.shrinks_until_ns = Some(timecell_client::now_ns() + SHRINKING_NS);
        self.answer_update(false);
    }

    /// Frees the holdings of the old versions.
    fn forget_leaving(&mut self, locked: Result<Locked, LedgerError>) {
        let limit = |name: &str| {
            let live = self.live(self.mission().position(name)?)?;
            live.app.spec().limits.memory_bytes
        };
        let memory = memory(self.mission(), self.admission, &limit);
        let (name, held) = (&self.mission().name, &self.admission.held);
        let entered = locked.and_then(|locked| locked.keep_only(name, held, memory));
        if let Err(error) = entered {
            let text = error.to_string();
            (self.tell)(&Event::Note { text });
        }
    }

    fn answer_update(&mut self, committed: bool) {
        let Some(updating) = self.desk.updating.take() else {
            return;
        };
        let mut told = updating.told;
        told.committed = committed;
        told.reason = updating.failed;
        for cell in &mut told.cells {
            let own = self.mission().position(&cell.cell);
            let both = own.into_iter().chain(self.aside_of(&cell.cell));
            let live = both.filter_map(|at| self.live(at)).next();
            cell.pid = live.map(|live| live.app.pid());
        }
        if committed {
            let text = format!("update {}: done", told.update);
            (self.tell)(&Event::Note { text });
        }
        let told = Box::new(told);
        self.desk.say(updating.client, Say::Updated(told), true);
    }

    /// Sends SIGTERM to the cells that an update has put aside.
    pub(super) fn tell_leaving_to_end(&mut self) -> Result<(), RunError> {
        (self.put_aside()).try_for_each(|at| self.tell_to_end(at))
    }

    /// Whether a cell was last created in the second of its places.
    pub(super) fn is_beside(&self, name: &str) -> bool {
        (self.state.cells.get(name)).is_some_and(crate::state::Cell::is_beside)
    }

    /// In which of its places a cell is created: the one in which nothing of it runs.
    pub(super) fn place_for(&self, name: &str) -> bool {
        match self.aside_of(name) {
            Some(at) => !self.cells[at].beside,
            None => self.is_beside(name),
        }
    }

    /// Rolls back an update that a killed supervisor had begun.
    pub(super) fn take_back_unfinished(&mut self) {
        if let Some(update) = self.state.update.as_ref().map(|update| update.number) {
            let reason = "the supervisor ended during it".to_owned();
            let text = format!("update {update} was rolled back: {reason}");
            let added = self.state.update.iter().flat_map(|update| &update.cells);
            let shed: Vec<String> = added
                .filter(|name| self.mission().position(name).is_none())
                .filter(|name| {
                    (self.state.cells.get(*name))
                        .is_some_and(|cell| cell.holds.contains(&Hold::Shed))
                })
                .cloned()
                .collect();
            self.note(Entry::UpdateRolledBack { update, reason });
            // Shed by a mode that ends without it: a later cell of this name starts afresh.
            for cell in shed {
                let why = Hold::Shed;
                self.note(Entry::CellReleased { cell, why });
            }
            (self.tell)(&Event::Note { text });
        }
    }

    /// Whether a cell that an earlier supervisor has started, at this time of the monotonic clock, is as the mission means it
    /// now.
    pub(super) fn is_still_meant(&self, at: usize, since_ns: i64) -> bool {
        let cell = &self.mission().cells[at];
        let unfinished = self.state.update.as_ref().is_some_and(|update| {
            update.cells.contains(&cell.name) && since_ns >= update.begun.monotonic_ns
        });
        !unfinished && !self.desk.outdated.contains(&cell.name)
    }

    /// Tells the service manager that the mission runs, once all cells were started that are to run.
    pub(super) fn tell_ready(&mut self) {
        let to_come = |cell: &Cell| cell.phase.is_starting() || cell.phase.waits();
        if self.desk.told_ready || self.own().iter().any(to_come) {
            return;
        }
        self.desk.told_ready = true;
        let status = format!(
            "mission {}: {} of {} cells run",
            self.mission().name,
            self.running().count(),
            self.mission().cells.len()
        );
        self.desk.notify.ready(&status);
    }
}
