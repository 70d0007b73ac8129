use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::RunError;
use super::cell::Live;
use super::keeper::Keeper;
use super::notify::Notify;
use super::update::{TRYING_NS, Updating};
use super::watch::CellWatch;
use crate::control::{Ask, CellDone, Refusal, Say, Server};
use crate::journal::Journal;
use crate::state::{Entry, Hold, Record};

/// How long clients may take to read the last answers of a supervisor that ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What others have asked the supervisor for, and what is not done yet.
pub(super) struct Desk {
    /// `None`: the socket could not be made, and the mission goes on without.
    pub(super) server: Option<Server>,
    pending: Vec<Pending>,
    /// Why the last start of a cell failed.
    pub(super) failures: BTreeMap<String, String>,
    /// Cells' versions that an update replaces, and cells that it removes, as long as they run.
    pub(super) leaving: BTreeMap<String, Leaving>,
    pub(super) updating: Option<Updating>,
    /// New versions that an update has taken back.
    pub(super) taken_back: Vec<String>,
    pub(super) wanted: Option<Wanted>,
    /// Whether the service manager knows that the mission runs.
    pub(super) told_ready: bool,
    /// Until when the mission's group is tried to be made smaller, CLOCK_MONOTONIC ns.
    pub(super) shrinks_until_ns: Option<i64>,
    /// Cells that run as an earlier mission file had them.
    pub(super) outdated: BTreeSet<String>,
    /// Who has asked for the end of the mission.
    downs: Vec<u64>,
    pub(super) notify: Notify,
}

/// A cell of the mission as it was before an update.
pub(super) struct Leaving {
    pub(super) live: Live,
    pub(super) watch: Option<CellWatch>,
    /// Whether it is in the second of its places.
    pub(super) beside: bool,
    pub(super) stop_timeout_ns: i64,
    /// What it holds of every second in its real-time group, us.
    pub(super) share_us: u64,
    /// Its directory.
    pub(super) output: PathBuf,
}

/// An update that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) client: u64,
    pub(super) file: PathBuf,
    pub(super) anew: Vec<String>,
    pub(super) window_ns: i64,
}

/// A client who waits until programs have ended.
struct Pending {
    client: u64,
    /// Whether they are to run again.
    again: bool,
    /// Cells and the generations that have to end.
    waits: Vec<(String, u64)>,
    done: Vec<CellDone>,
}

impl Desk {
    /// With the control socket of this directory; else the reason why there is none.
    pub(super) fn open(dir: &Path, notify: Notify) -> (Desk, Option<String>) {
        let (server, why) = match Server::open(dir) {
            Ok(server) => (Some(server), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let desk = Desk {
            server,
            pending: Vec::new(),
            failures: BTreeMap::new(),
            leaving: BTreeMap::new(),
            updating: None,
            taken_back: Vec::new(),
            wanted: None,
            told_ready: false,
            shrinks_until_ns: None,
            outdated: BTreeSet::new(),
            downs: Vec::new(),
            notify,
        };
        (desk, why)
    }

    pub(super) fn say(&mut self, client: u64, say: Say, last: bool) {
        if let Some(server) = &mut self.server {
            server.answer(client, say, last);
        }
    }

    pub(super) fn refuse(&mut self, client: u64, kind: Refusal, why: impl Into<String>) {
        let why = vec![why.into()];
        self.say(client, Say::Refused { kind, why }, true);
    }

    /// Tells subscribers of an entry of the journal.
    pub(super) fn publish(&mut self, sequence: u64, record: &Record) {
        if let Some(server) = self
            .server
            .as_mut()
            .filter(|server| server.has_subscribers())
        {
            server.publish(&crate::control::Happening::of(sequence, record));
        }
    }

    /// When it wants to be woken, CLOCK_MONOTONIC ns.
    pub(super) fn next_ns(&self) -> Option<i64> {
        let updating = self.updating.as_ref().and_then(Updating::next_ns);
        let told = self.leaving.values();
        let told = told.filter_map(|leaving| leaving.live.told_until_ns).min();
        let shrinks = (self.shrinks_until_ns).map(|_| timecell_client::now_ns() + TRYING_NS);
        [updating, told, shrinks, self.notify.next_ns()]
            .into_iter()
            .flatten()
            .min()
    }
}

/// What [`Keeper::serve`] ends the loop for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// The mission is to end.
    Down,
    /// It is to become another one.
    Wanted,
    /// An update has failed.
    TakenBack,
}

impl Keeper<'_> {
    /// Does what others have asked for since the last time. Returns what cannot be done within the loop.
    pub(super) fn serve(&mut self) -> Result<Option<Served>, RunError> {
        let asked = self.desk.server.as_mut().map(Server::turn);
        for (client, ask) in asked.into_iter().flatten() {
            self.carry_out(client, ask)?;
        }
        self.settle()?;
        self.shrink_group();
        self.tell_ready();
        self.desk.notify.beat();
        if !self.desk.downs.is_empty() {
            return Ok(Some(Served::Down));
        }
        self.turn_update()
    }

    /// As [`Keeper::serve`] while all cells are being ended.
    pub(super) fn serve_ending(&mut self) {
        let asked = self.desk.server.as_mut().map(Server::turn);
        for (client, ask) in asked.into_iter().flatten() {
            match ask {
                Ask::Status => self.say_status(client),
                Ask::Metrics => self.say_metrics(client),
                Ask::Down => self.desk.downs.push(client),
                _ => {
                    let why = "the mission is being ended";
                    self.desk.refuse(client, Refusal::Busy, why);
                }
            }
        }
        self.desk.notify.beat();
    }

    /// Whoever waits for a cell waits in vain.
    pub(super) fn refuse_all(&mut self) {
        let waiting = std::mem::take(&mut self.desk.pending);
        let wanted = self.desk.wanted.take().map(|wanted| wanted.client);
        let updating = self.desk.updating.take().map(|updating| updating.client);
        let clients = waiting.into_iter().map(|pending| pending.client);
        for client in clients.chain(wanted).chain(updating) {
            let why = "the mission is being ended";
            self.desk.refuse(client, Refusal::NotPossible, why);
        }
        self.desk.notify.stopping();
    }

    /// Tells those who asked for the end how these cells have ended.
    pub(super) fn tell_downs(&mut self, ended: &[String]) {
        let done: Vec<CellDone> = (ended.iter())
            .map(|cell| self.done_ended(cell, "has ended"))
            .collect();
        for client in std::mem::take(&mut self.desk.downs) {
            let cells = done.clone();
            self.desk.say(client, Say::Done { cells }, true);
        }
        if let Some(server) = &mut self.desk.server {
            server.finish(LAST_WORDS);
        }
    }

    /// Whether the mission waits for someone who lets a cell go on.
    pub(super) fn is_waited_for(&self) -> bool {
        let held = |hold: Hold| {
            (self.state.cells.iter()).any(|(name, cell)| {
                cell.holds.contains(&hold) && self.mission().position(name).is_some()
            })
        };
        let desk = &self.desk;
        !desk.pending.is_empty()
            || desk.updating.is_some()
            || !desk.leaving.is_empty()
            || (desk.server.is_some() && held(Hold::ByHand))
    }

    fn carry_out(&mut self, client: u64, ask: Ask) -> Result<(), RunError> {
        match ask {
            Ask::Status => self.say_status(client),
            Ask::Metrics => self.say_metrics(client),
            Ask::Events => {
                let sequence = self.last_sequence;
                if let Some(server) = &mut self.desk.server {
                    server.subscribe(client, sequence);
                }
            }
            Ask::Down => self.desk.downs.push(client),
            Ask::Stop { .. } | Ask::Start { .. } | Ask::Restart { .. } | Ask::Update { .. }
                if self.desk.updating.is_some() || self.desk.wanted.is_some() =>
            {
                let why =
                    "an update goes on; try again when it is over, `timecell events -f` tells";
                self.desk.refuse(client, Refusal::Busy, why);
            }
            Ask::Update {
                file,
                anew,
                window_ns,
            } => {
                if !self.desk.pending.is_empty() {
                    let why = "cells are being stopped or restarted; try again when they are";
                    self.desk.refuse(client, Refusal::Busy, why);
                } else if anew.is_empty() || self.known(client, &anew).is_some() {
                    self.desk.wanted = Some(Wanted {
                        client,
                        file,
                        anew,
                        window_ns,
                    });
                }
            }
            Ask::Stop { cells } => {
                if let Some(cells) = self.known(client, &cells) {
                    self.stop_by_hand(client, &cells)?;
                }
            }
            Ask::Start { cells } => {
                if let Some(cells) = self.known(client, &cells) {
                    self.start_by_hand(client, &cells)?;
                }
            }
            Ask::Restart { cells } => {
                if let Some(cells) = self.known(client, &cells) {
                    self.restart_by_hand(client, &cells)?;
                }
            }
        }
        Ok(())
    }

    /// Positions of the cells of these names in the order in which they are started, each once; else the client is told that
    /// there is no such cell.
    fn known(&mut self, client: u64, names: &[String]) -> Option<Vec<usize>> {
        let mission = self.mission();
        let mut unknown = Vec::new();
        for name in names {
            if mission.position(name).is_none() {
                let all: Vec<&str> = mission
                    .cells
                    .iter()
                    .map(|cell| cell.name.as_str())
                    .collect();
                let mend = match model::nearest(name, &all) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if all.len() > 12 => {
                        format!("its {} cells are in `timecell ps`", all.len())
                    }
                    None => format!("its cells are {}", all.join(", ")),
                };
                unknown.push(format!(
                    "mission {} has no cell `{name}`; {mend}",
                    mission.name
                ));
            }
        }
        if unknown.is_empty() && names.is_empty() {
            unknown.push("no cell is named".to_owned());
        }
        if !unknown.is_empty() {
            let kind = Refusal::UnknownCell;
            self.desk
                .say(client, Say::Refused { kind, why: unknown }, true);
            return None;
        }
        let order = mission.start_order().into_iter();
        Some(
            order
                .filter(|at| names.contains(&mission.cells[*at].name))
                .collect(),
        )
    }

    fn name(&self, at: usize) -> String {
        self.mission().cells[at].name.clone()
    }

    fn stop_by_hand(&mut self, client: u64, cells: &[usize]) -> Result<(), RunError> {
        let mut waits = Vec::new();
        let mut done = Vec::new();
        // Those that others need come last.
        for &at in cells.iter().rev() {
            let name = self.name(at);
            let mut ends = vec![at];
            ends.extend(self.mission().dependents(at));
            self.due.remove(&at);
            self.pending.remove(&at);
            self.stays(at, Hold::ByHand)?;
            for one in ends {
                let known = waits.iter().any(|(cell, _)| *cell == self.name(one));
                if let Some(live) = self.live.get(&one).filter(|_| !known) {
                    waits.push((self.name(one), live.generation));
                }
            }
            if self.live.contains_key(&at) {
                self.tell_to_end(at);
            } else {
                done.push(CellDone {
                    text: "did not run, and stays stopped".to_owned(),
                    ..self.done_ended(&name, "")
                });
            }
        }
        self.desk.pending.push(Pending {
            client,
            again: false,
            waits,
            done,
        });
        Ok(())
    }

    fn restart_by_hand(&mut self, client: u64, cells: &[usize]) -> Result<(), RunError> {
        let stopped = cells.iter().find(|at| !self.live.contains_key(at));
        if let Some(&at) = stopped {
            let name = self.name(at);
            let why = format!("`{name}` does not run; `timecell start {name}` lets it run again");
            self.desk.refuse(client, Refusal::NotPossible, why);
            return Ok(());
        }
        let mut waits = Vec::new();
        for at in cells {
            if let Some(live) = self.live.get(at) {
                waits.push((self.name(*at), live.generation));
            }
            self.tell_to_end(*at);
        }
        self.desk.pending.push(Pending {
            client,
            again: true,
            waits,
            done: Vec::new(),
        });
        Ok(())
    }

    fn start_by_hand(&mut self, client: u64, cells: &[usize]) -> Result<(), RunError> {
        // First whether all of them can, so that a refusal changes nothing.
        for &at in cells {
            if let Err(why) = self.may_start(at, cells) {
                self.desk.refuse(client, Refusal::NotPossible, why);
                return Ok(());
            }
        }
        let mut done = Vec::new();
        for &at in cells {
            let name = self.name(at);
            if let Some(live) = self.live.get(&at) {
                let pid = engine::Cell::pid(&live.app);
                done.push(CellDone {
                    text: format!("runs already (pid {pid})"),
                    pid: Some(pid),
                    end: None,
                    cell: name,
                });
                continue;
            }
            self.release(at, &|_| true)?;
            // What went wrong before does not count any more.
            self.watches[at] = self.new_watch(&self.mission().cells[at], &[])?;
            self.due.remove(&at);
            self.pending.remove(&at);
            self.start(at)?;
            done.push(self.done_started(at));
            if self.live.contains_key(&at) {
                done.extend(self.start_dependents(at)?);
            }
        }
        self.desk.say(client, Say::Done { cells: done }, true);
        Ok(())
    }

    fn may_start(&self, at: usize, with: &[usize]) -> Result<(), String> {
        let cell = &self.mission().cells[at];
        let known = self.state.cells.get(&cell.name);
        if known.is_some_and(|known| known.holds.contains(&Hold::Shed)) {
            return Err(format!(
                "`{}` is shed in favour of others, and comes back with the mission's low mode",
                cell.name
            ));
        }
        let live = self.live.get(&at);
        if live.is_some_and(|live| live.told_until_ns.is_some()) {
            return Err(format!(
                "`{}` is being ended; try again when it has",
                cell.name
            ));
        }
        for needed in &cell.needs {
            let there = self.mission().position(needed);
            if there.is_some_and(|at| !self.live.contains_key(&at) && !with.contains(&at)) {
                return Err(format!(
                    "`{}` needs `{needed}`, which does not run; start both: timecell start {needed} {}",
                    cell.name, cell.name
                ));
            }
        }
        Ok(())
    }

    /// Lets go of the reasons why a cell is not to run.
    pub(super) fn release(
        &mut self,
        at: usize,
        which: &dyn Fn(Hold) -> bool,
    ) -> Result<(), RunError> {
        let name = self.name(at);
        let holds: BTreeSet<Hold> = (self.state.cells.get(&name))
            .map(|cell| cell.holds.clone())
            .unwrap_or_default();
        for why in holds.into_iter().filter(|hold| which(*hold)) {
            self.note(Entry::CellReleased {
                cell: name.clone(),
                why,
            })?;
        }
        Ok(())
    }

    /// Starts those that were stopped only because they need this one.
    fn start_dependents(&mut self, at: usize) -> Result<Vec<CellDone>, RunError> {
        let dependents = self.mission().dependents(at);
        let order = self.mission().start_order();
        let mut begun = Vec::new();
        for dependent in order.into_iter().filter(|at| dependents.contains(at)) {
            let name = self.name(dependent);
            let runs = |needed: &String| {
                (self.mission().position(needed))
                    .is_some_and(|at| self.live.contains_key(&at) || self.pending.contains(&at))
            };
            let all = self.mission().cells[dependent].needs.iter().all(runs);
            if !all || self.live.contains_key(&dependent) {
                continue;
            }
            self.release(dependent, &|hold| hold == Hold::Needs)?;
            if self.state.should_run(&name) && !self.due.contains_key(&dependent) {
                self.pending.insert(dependent);
                begun.push(dependent);
            }
        }
        self.start_pending()?;
        Ok(begun.into_iter().map(|at| self.done_started(at)).collect())
    }

    /// Answers those whose cells have ended.
    fn settle(&mut self) -> Result<(), RunError> {
        let mut pending = std::mem::take(&mut self.desk.pending);
        for one in &mut pending {
            let waits = std::mem::take(&mut one.waits);
            for (name, generation) in waits {
                let at = self.mission().position(&name);
                let runs = at.and_then(|at| self.live.get(&at));
                if runs.is_some_and(|live| live.generation == generation) {
                    one.waits.push((name, generation));
                    continue;
                }
                match at {
                    Some(at) if one.again && self.state.should_run(&name) => {
                        if !self.live.contains_key(&at) {
                            self.due.remove(&at);
                            self.start(at)?;
                        }
                        one.done.push(self.done_started(at));
                    }
                    _ => one.done.push(self.done_ended(&name, "stays stopped")),
                }
            }
        }
        for one in pending {
            if one.waits.is_empty() {
                let cells = one.done;
                self.desk.say(one.client, Say::Done { cells }, true);
            } else {
                self.desk.pending.push(one);
            }
        }
        Ok(())
    }

    /// What became of a cell that was started.
    pub(super) fn done_started(&self, at: usize) -> CellDone {
        let cell = self.name(at);
        if let Some(live) = self.live.get(&at) {
            let pid = engine::Cell::pid(&live.app);
            return CellDone {
                text: format!("runs (pid {pid}, start {})", live.generation),
                pid: Some(pid),
                end: None,
                cell,
            };
        }
        let why = self.desk.failures.get(&cell).cloned();
        let held = self.state.cells.get(&cell);
        let held = held.and_then(|cell| cell.holds.first());
        CellDone {
            text: match (why, held) {
                (Some(why), _) => format!("could not be started: {why}"),
                (None, Some(hold)) => format!("does not run: {}", hold.clause()),
                (None, None) if self.pending.contains(&at) => {
                    "is started once those that it comes after are ready".to_owned()
                }
                (None, None) => "does not run".to_owned(),
            },
            pid: None,
            end: None,
            cell,
        }
    }

    /// What became of a cell that was told to end.
    fn done_ended(&self, cell: &str, then: &str) -> CellDone {
        let known = self.state.cells.get(cell);
        let end = known.and_then(|cell| cell.last_end.as_ref().map(|(_, _, end)| *end));
        let by_need = known.is_some_and(|cell| {
            cell.holds.contains(&Hold::Needs) && !cell.holds.contains(&Hold::ByHand)
        });
        let then = if by_need && then == "stays stopped" {
            "stays stopped, because it needs a cell that does"
        } else {
            then
        };
        CellDone {
            cell: cell.to_owned(),
            pid: None,
            end,
            text: match end {
                Some(end) => format!("{end}, {then}"),
                None => then.to_owned(),
            },
        }
    }
}

/// Notes an entry; the sequence number that it has then.
pub(super) fn append(journal: &mut Journal<Record>, record: &Record) -> Result<u64, RunError> {
    Ok(journal.append(record)?)
}
