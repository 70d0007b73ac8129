//! Requests of clients that are being carried out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::RunError;
use super::keeper::Keeper;
use super::notify::Notify;
use super::update::{TRYING_NS, Updating};
use crate::control::{Ask, CellDone, Refusal, Say, Server, check_window};
use crate::ledger::{self, Ledger, LedgerError, Locked};
use crate::state::{Hold, Record};

/// How long clients may take to read the last answers of a supervisor that ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The requests of others to the supervisor, and the unfinished work for them.
pub(super) struct Desk {
    /// `None`: the socket could not be created, and the mission continues without it.
    pub(super) server: Option<Server>,
    pub(super) pending: Vec<Pending>,
    pub(super) updating: Option<Updating>,
    /// New versions that an update has taken back.
    pub(super) taken_back: Vec<String>,
    pub(super) wanted: Option<Wanted>,
    /// Whether the service manager knows that the mission runs.
    pub(super) told_ready: bool,
    /// Until when real-time groups that are not needed any more are tried to be removed, CLOCK_MONOTONIC ns.
    pub(super) shrinks_until_ns: Option<i64>,
    /// Cells that run as an earlier mission file had them.
    pub(super) outdated: BTreeSet<String>,
    /// Entries that the journal was handed.
    pub(super) noted: u64,
    /// Answers that are given once this many entries are written: the result is not to be lost any more.
    later: Vec<(u64, u64, Say, bool)>,
    /// The ledger in which the machine's supervisors record their grants.
    pub(super) ledger: Ledger,
    /// Since when its lock is asked for, CLOCK_MONOTONIC ns.
    asks_ledger_since_ns: Option<i64>,
    /// Its lock, or why it cannot be taken, for work that cannot be done within the loop.
    pub(super) locked: Option<Result<Locked, LedgerError>>,
    /// The clients that have asked for the end of the mission.
    downs: Vec<u64>,
    pub(super) notify: Notify,
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
pub(super) struct Pending {
    pub(super) client: u64,
    /// Whether they are to run again.
    pub(super) again: bool,
    /// Cells and the generations that have to end.
    pub(super) waits: Vec<(String, u64)>,
    /// Cells that are being started, and whether those that only waited for them are started after them.
    pub(super) starts: Vec<(String, bool)>,
    pub(super) done: Vec<CellDone>,
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
            updating: None,
            taken_back: Vec::new(),
            wanted: None,
            told_ready: false,
            shrinks_until_ns: None,
            outdated: BTreeSet::new(),
            noted: 0,
            later: Vec::new(),
            ledger: Ledger::default(),
            asks_ledger_since_ns: None,
            locked: None,
            downs: Vec::new(),
            notify,
        };
        (desk, why)
    }

    /// Says something to a client; that something was done only once it is written down.
    pub(super) fn say(&mut self, client: u64, say: Say, last: bool) {
        if matches!(say, Say::Done { .. } | Say::Updated(_)) {
            self.later.push((self.noted, client, say, last));
            return;
        }
        self.say_now(client, say, last);
    }

    /// How many entries are written.
    pub(super) fn deliver(&mut self, written: u64) {
        let all = std::mem::take(&mut self.later);
        for (noted, client, say, last) in all {
            match noted <= written {
                true => self.say_now(client, say, last),
                false => self.later.push((noted, client, say, last)),
            }
        }
    }

    fn say_now(&mut self, client: u64, say: Say, last: bool) {
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

    /// The ledger's lock, or why it cannot be taken; `None`: somebody else has it, try again in a moment. The thread
    /// that watches the cells waits for nobody.
    pub(super) fn lock_ledger(&mut self) -> Option<Result<Locked, LedgerError>> {
        let now = timecell_client::now_ns();
        let since = *self.asks_ledger_since_ns.get_or_insert(now);
        let result = self.ledger.try_lock();
        let patience_ns = i64::try_from(ledger::PATIENCE.as_nanos()).unwrap_or(i64::MAX);
        if matches!(result, Err(LedgerError::Busy { .. })) && now - since < patience_ns {
            return None;
        }
        self.asks_ledger_since_ns = None;
        Some(result)
    }

    /// When it wants to be woken, CLOCK_MONOTONIC ns.
    pub(super) fn next_ns(&self) -> Option<i64> {
        let updating = self.updating.as_ref().and_then(Updating::next_ns);
        let shrinks = (self.shrinks_until_ns).map(|_| timecell_client::now_ns() + TRYING_NS);
        let beat = self.notify.next_ns().filter(|_| self.told_ready);
        let ledger = self.asks_ledger_since_ns;
        let ledger = ledger.map(|_| timecell_client::now_ns() + TRYING_NS);
        [updating, shrinks, beat, ledger]
            .into_iter()
            .flatten()
            .min()
    }
}

/// The reason for which [`Keeper::serve`] ends the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// The mission is to end.
    Down,
    /// The mission is to be updated.
    Wanted,
    /// An update has failed.
    TakenBack,
}

impl Keeper<'_> {
    /// Carries out requests since the last time. Returns the one that cannot be carried out within the loop.
    pub(super) fn serve(&mut self) -> Result<Option<Served>, RunError> {
        let asked = self.desk.server.as_mut().map(Server::turn);
        for (client, ask) in asked.into_iter().flatten() {
            self.carry_out(client, ask)?;
        }
        self.settle()?;
        self.shrink_kept();
        self.tell_ready();
        // The watchdog counts from readiness on.
        if self.desk.told_ready {
            self.desk.notify.beat();
        }
        let served = match self.desk.downs.is_empty() {
            true => self.turn_update()?,
            false => Some(Served::Down),
        };
        // Last of all: an entry answered here may long be written, and then nothing wakes this loop for it.
        self.desk.deliver(self.journal.seen_to());
        Ok(served)
    }

    /// As [`Keeper::serve`] while all cells are being ended.
    pub(super) fn serve_ending(&mut self) {
        let asked = self.desk.server.as_mut().map(Server::turn);
        for (client, ask) in asked.into_iter().flatten() {
            match ask {
                Ask::Status => self.say_status(client, false),
                Ask::Assumptions => self.say_status(client, true),
                Ask::Metrics => self.say_metrics(client),
                Ask::Down => self.desk.downs.push(client),
                _ => {
                    let why = "the mission is shutting down";
                    self.desk.refuse(client, Refusal::Busy, why);
                }
            }
        }
        self.desk.notify.beat();
    }

    /// Refuses all clients that wait for a cell.
    pub(super) fn refuse_all(&mut self) {
        let waiting = std::mem::take(&mut self.desk.pending);
        let wanted = self.desk.wanted.take().map(|wanted| wanted.client);
        self.desk.asks_ledger_since_ns = None;
        let updating = self.desk.updating.take().map(|updating| updating.client);
        let clients = waiting.into_iter().map(|pending| pending.client);
        for client in clients.chain(wanted).chain(updating) {
            let why = "the mission is shutting down";
            self.desk.refuse(client, Refusal::NotPossible, why);
        }
        self.desk.notify.stopping();
    }

    /// Tells the clients that asked for the end how these cells have ended.
    pub(super) fn tell_downs(&mut self, ended: &[String]) {
        let done: Vec<CellDone> = (ended.iter())
            .map(|cell| self.done_ended(cell, "has ended"))
            .collect();
        for client in std::mem::take(&mut self.desk.downs) {
            let cells = done.clone();
            self.desk.say(client, Say::Done { cells }, true);
        }
        self.desk.deliver(u64::MAX);
        if let Some(server) = &mut self.desk.server {
            server.finish(LAST_WORDS);
        }
    }

    /// Whether the mission waits for someone to let a cell continue.
    pub(super) fn is_waited_for(&self) -> bool {
        let held = |hold: Hold| {
            (self.state.cells.iter()).any(|(name, cell)| {
                cell.holds.contains(&hold) && self.mission().position(name).is_some()
            })
        };
        let desk = &self.desk;
        !desk.pending.is_empty()
            || desk.updating.is_some()
            || !self.nothing_leaves()
            || (desk.server.is_some() && held(Hold::ByHand))
    }

    fn carry_out(&mut self, client: u64, ask: Ask) -> Result<(), RunError> {
        match ask {
            Ask::Status | Ask::Assumptions => {
                self.look_at_limits_again();
                self.say_status(client, ask == Ask::Assumptions);
            }
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
                let why = "an update is in progress; try again when it is over, `timecell events -f` shows it";
                self.desk.refuse(client, Refusal::Busy, why);
            }
            Ask::Update {
                file,
                anew,
                window_ns,
            } => {
                if let Err(why) = check_window(window_ns) {
                    self.desk.refuse(client, Refusal::BadRequest, why);
                } else if !self.desk.pending.is_empty() {
                    let why = "cells are being stopped or restarted; try again when that is done";
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

    /// Positions of the cells of these names in start order, each once; otherwise the client is told that there is no
    /// such cell.
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
                let fix = match model::nearest(name, &all) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if all.len() > 12 => {
                        format!("its {} cells are in `timecell ps`", all.len())
                    }
                    None => format!("its cells are {}", all.join(", ")),
                };
                unknown.push(format!(
                    "mission {} has no cell `{name}`; {fix}",
                    mission.name
                ));
            }
        }
        if unknown.is_empty() && names.is_empty() {
            unknown.push("no cell is given".to_owned());
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
}
