//! The state that the entries of a journal add up to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::end::End;
use crate::incident::Incident;
use crate::stamp::Stamp;

use super::{Entry, Hold, Limit, Mode, Record, Started, Text};

/// The state from a journal's entries: the mission to run, and the cells that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The last supervisor.
    pub supervisor: Option<Supervisor>,
    /// Name of the mission that should run; `None`: none.
    pub mission: Option<String>,
    /// Its file.
    pub file: Option<Text>,
    /// The file of the mission that was admitted last, whether it is still to run or not.
    #[serde(default)]
    pub last_file: Option<Text>,
    /// Where the sources of its mounts lead, by their absolute paths; decided when it was admitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Its mode.
    pub mode: Mode,
    /// The known cells, by name. A cell of the mission that was never started nor held is not among them.
    pub cells: BTreeMap<String, Cell>,
    /// An update that was begun and neither committed nor rolled back.
    pub update: Option<Update>,
    /// Number of the last update.
    pub updates: u64,
    /// The last incidents, oldest first; at most [`State::MOST_INCIDENTS`].
    pub incidents: VecDeque<Incident>,
    /// Number of the last incident.
    pub incident_number: u64,
}

/// A supervisor that took over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervisor {
    /// Its pid.
    pub pid: u32,
    /// Version of its timecell.
    pub version: String,
    /// The boot that it ran in.
    pub boot_id: String,
}

/// The known state of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// How often it has been started; that of the next start is one more.
    pub generation: u64,
    /// Instances that run according to the journal, by generation; two during an update.
    pub instances: BTreeMap<u64, Instance>,
    /// Whether the last one was made in the second of the cell's two places.
    #[serde(default)]
    pub beside: bool,
    /// Why it is not to run; empty: it is.
    pub holds: BTreeSet<Hold>,
    /// Its last end: generation, when, how.
    pub last_end: Option<(u64, Stamp, End)>,
    /// Why, where that end alone does not tell.
    #[serde(default)]
    pub last_cause: Option<Cause>,
    /// Limits that it has come up against in its last life.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// When it was started the last times, oldest first; at most [`State::MOST_STARTS`]. Restart limits go on from here.
    pub starts: VecDeque<Stamp>,
}

/// One life of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// When it was about to be made.
    pub since: Stamp,
    /// Whether it is in the second of the cell's two places.
    #[serde(default)]
    pub beside: bool,
    /// Its process and budget; `None`: the supervisor was making it, and it may or may not be there.
    pub started: Option<Started>,
}

/// An update in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// Its number.
    pub number: u64,
    /// The mission file as it shall be.
    pub file: Text,
    /// The cells that are recreated.
    pub cells: Vec<String>,
    /// When it was begun.
    pub begun: Stamp,
}

impl Cell {
    /// Whether its last life is in the second of its two places.
    pub fn is_beside(&self) -> bool {
        let last = self.instances.values().next_back();
        last.map_or(self.beside, |instance| instance.beside)
    }
}

/// The state after these records. Records that refer to something unknown, because earlier ones were lost, still count:
/// the end of an unknown instance is an end, a start without its announcement a start.
pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> State {
    let mut state = State::default();
    for record in records {
        state.apply(record);
    }
    state
}

impl State {
    /// Incidents that are kept.
    pub const MOST_INCIDENTS: usize = 64;
    /// Starts of a cell that are kept.
    pub const MOST_STARTS: usize = 64;

    /// Whether this cell of the mission should run.
    pub fn should_run(&self, cell: &str) -> bool {
        self.mission.is_some() && self.hold(cell).is_none()
    }

    /// The first reason why this cell is not to run, if there is one.
    pub fn hold(&self, cell: &str) -> Option<Hold> {
        self.cells.get(cell)?.holds.first().copied()
    }

    /// Every instance that may exist: cell, generation, and its known state.
    pub fn instances(&self) -> impl Iterator<Item = (&str, u64, &Instance)> {
        self.cells.iter().flat_map(|(name, cell)| {
            let instances = cell.instances.iter();
            instances.map(move |(generation, instance)| (name.as_str(), *generation, instance))
        })
    }

    /// The one entry that stands for everything so far; see [`crate::journal::Journal::compact`].
    pub fn snapshot(&self, at: Stamp) -> Record {
        let entry = Entry::Snapshot(Box::new(self.clone()));
        Record { at, entry }
    }

    /// Applies one record.
    pub fn apply(&mut self, record: &Record) {
        let at = record.at;
        match &record.entry {
            Entry::SupervisorStarted(supervisor) => self.supervisor = Some(supervisor.clone()),
            Entry::MissionAdmitted {
                name,
                file,
                sources,
                ..
            } => {
                self.mission = Some(name.clone());
                self.sources.clone_from(sources);
                self.file = Some(file.clone());
                self.last_file = Some(file.clone());
            }
            Entry::CellStarting {
                cell,
                generation,
                beside,
            } => {
                let instance = Instance {
                    since: at,
                    beside: *beside,
                    started: None,
                };
                let known = self.cell(cell);
                known.beside = *beside;
                known.limits.clear();
                self.begin(cell, *generation, instance);
            }
            Entry::CellStarted {
                cell,
                generation,
                started,
            } => {
                let known = self.cell(cell).instances.get(generation);
                let instance = Instance {
                    since: known.map_or(at, |instance| instance.since),
                    beside: known.is_some_and(|instance| instance.beside),
                    started: Some(started.clone()),
                };
                self.begin(cell, *generation, instance);
                let starts = &mut self.cell(cell).starts;
                starts.push_back(at);
                keep_last(starts, State::MOST_STARTS);
            }
            Entry::CellEnded {
                cell,
                generation,
                end,
                cause,
            } => {
                let cell = self.cell(cell);
                cell.generation = cell.generation.max(*generation);
                cell.instances.remove(generation);
                cell.last_end = Some((*generation, at, *end));
                cell.last_cause.clone_from(cause);
            }
            Entry::LimitReached { cell, limit, .. } => {
                let known = &mut self.cell(cell).limits;
                known.retain(|other| !other.is_like(*limit));
                known.push(*limit);
            }
            // Whether a bound counts, and which classes threads have, is seen anew by each supervisor.
            Entry::BoundWithdrawn { .. }
            | Entry::BoundInForce { .. }
            | Entry::ClassTaken { .. } => {}
            Entry::CellHeld { cell, why } => {
                self.cell(cell).holds.insert(*why);
            }
            Entry::CellReleased { cell, why } => {
                self.cell(cell).holds.remove(why);
            }
            Entry::Incident(incident) => {
                self.incident_number = self.incident_number.max(incident.number);
                self.incidents.push_back((**incident).clone());
                keep_last(&mut self.incidents, State::MOST_INCIDENTS);
            }
            Entry::ModeSwitched { to } => self.mode = *to,
            Entry::UpdateBegun {
                update,
                file,
                cells,
                sources,
            } => {
                self.sources.clone_from(sources);
                self.updates = self.updates.max(*update);
                self.update = Some(Update {
                    number: *update,
                    file: file.clone(),
                    cells: cells.clone(),
                    begun: at,
                });
            }
            Entry::UpdateCommitted { update } => {
                if let Some(done) = self.update.take_if(|of| of.number == *update) {
                    self.last_file = Some(done.file.clone());
                    self.file = Some(done.file);
                }
            }
            Entry::UpdateRolledBack { update, .. } => {
                self.update.take_if(|of| of.number == *update);
            }
            Entry::CleanDown => self.clean_down(),
            Entry::Snapshot(state) => *self = (**state).clone(),
        }
    }

    fn cell(&mut self, name: &str) -> &mut Cell {
        self.cells.entry(name.to_owned()).or_default()
    }

    fn begin(&mut self, name: &str, generation: u64, instance: Instance) {
        let cell = self.cell(name);
        cell.generation = cell.generation.max(generation);
        cell.instances.insert(generation, instance);
    }

    fn clean_down(&mut self) {
        self.mission = None;
        self.file = None;
        self.sources.clear();
        self.mode = Mode::Low;
        self.update = None;
        for cell in self.cells.values_mut() {
            cell.instances.clear();
            cell.holds.clear();
            cell.starts.clear();
        }
    }
}

fn keep_last<T>(of: &mut VecDeque<T>, most: usize) {
    while of.len() > most {
        of.pop_front();
    }
}
