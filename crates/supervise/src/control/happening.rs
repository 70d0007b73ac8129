//! Events as clients receive them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use text::units::rounded_up;

use super::{ControlError, SCHEMA};
use crate::cause::ended;
use crate::journal;
use crate::stamp::Stamp;
use crate::state::{Entry, Hold, Record};

/// An event as clients receive it: an entry of the journal, with a sentence and without the text of mission files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// Version of this shape.
    pub schema: u32,
    /// Its sequence number in the journal.
    pub sequence: u64,
    /// When.
    pub at: Stamp,
    /// The wall clock of [`Happening::at`], as people read it.
    pub at_utc: String,
    /// Its kind, as the journal calls it.
    pub kind: String,
    /// The cell that it is about.
    pub cell: Option<String>,
    /// The event, a sentence.
    pub text: String,
    /// The entry.
    pub entry: serde_json::Value,
}

impl Happening {
    /// Of an entry with its sequence number.
    pub fn of(sequence: u64, record: &Record) -> Happening {
        let entry = without_texts(record);
        let kind = match &entry {
            serde_json::Value::String(kind) => kind.clone(),
            entry => (entry.as_object())
                .and_then(|fields| fields.keys().next().cloned())
                .unwrap_or_default(),
        };
        Happening {
            schema: SCHEMA,
            sequence,
            at: record.at,
            at_utc: record.at.utc(),
            kind,
            cell: cell(&record.entry).map(str::to_owned),
            text: sentence(&record.entry),
            entry,
        }
    }
}

/// The events in the journal of a directory, oldest first; after a compaction including those of its predecessor.
///
/// # Errors
/// When there is no journal, or it cannot be read.
pub fn history(dir: &Path) -> Result<Vec<Happening>, ControlError> {
    host::ground::check(dir)?;
    let mut all: Vec<Happening> = Vec::new();
    for name in ["journal.old", "journal"] {
        let path = dir.join(name);
        let bytes = match journal::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && name != "journal" => {
                continue;
            }
            Err(error) => return Err(super::outside::unreadable(dir, error)),
        };
        let last = all.last().map(|happening| happening.sequence);
        let loaded = journal::load::<Record>(&bytes);
        let entries = loaded.entries.iter();
        let new = entries.filter(|(sequence, record)| {
            Some(*sequence) > last && !matches!(record.entry, Entry::Snapshot(_))
        });
        all.extend(new.map(|(sequence, record)| Happening::of(*sequence, record)));
    }
    Ok(all)
}

/// The entry as JSON. A mission file is known by its digest.
fn without_texts(record: &Record) -> serde_json::Value {
    if let Entry::Snapshot(_) = record.entry {
        return serde_json::json!("snapshot");
    }
    let mut entry = serde_json::to_value(&record.entry).unwrap_or_default();
    let fields = entry.as_object_mut();
    for value in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        if let Some(file) = value
            .get_mut("file")
            .and_then(serde_json::Value::as_object_mut)
        {
            file.remove("text");
        }
    }
    entry
}

fn cell(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::CellStarting { cell, .. }
        | Entry::CellStarted { cell, .. }
        | Entry::CellEnded { cell, .. }
        | Entry::LimitReached { cell, .. }
        | Entry::ClassTaken { cell, .. }
        | Entry::BoundWithdrawn { cell, .. }
        | Entry::BoundInForce { cell, .. }
        | Entry::CellHeld { cell, .. }
        | Entry::CellReleased { cell, .. } => Some(cell),
        Entry::Incident(incident) => incident.cell.as_deref(),
        _ => None,
    }
}

fn sentence(entry: &Entry) -> String {
    match entry {
        Entry::SupervisorStarted(supervisor) => format!(
            "supervisor started (pid {}, timecell {})",
            supervisor.pid, supervisor.version
        ),
        Entry::MissionAdmitted {
            name, unaccounted, ..
        } => {
            let mut text = format!("mission {name}: admitted");
            for thread in unaccounted {
                text.push_str(&format!("; {thread}"));
            }
            text
        }
        Entry::CellStarting {
            cell, generation, ..
        } => format!("{cell}: starting (attempt {generation})"),
        Entry::CellStarted {
            cell,
            started,
            generation,
        } => {
            format!(
                "{cell}: runs (pid {}, start {generation})",
                started.process.pid
            )
        }
        Entry::CellEnded {
            cell, end, cause, ..
        } => format!("{cell}: {}", ended(*end, cause.as_ref())),
        Entry::LimitReached { cell, limit, .. } => format!("{cell}: {limit}"),
        Entry::ClassTaken { cell, what } => format!("{cell}: {what}"),
        Entry::BoundWithdrawn {
            cell,
            task,
            bound_ns,
            why,
        } => bound_withdrawn(cell, task, *bound_ns, why),
        Entry::BoundInForce {
            cell,
            task,
            bound_ns,
        } => bound_in_force(cell, task, *bound_ns),
        Entry::CellHeld { cell, why } => format!("{cell}: stays stopped: {}", why.clause()),
        Entry::CellReleased { cell, why } => {
            format!("{cell}: no longer held back by this: {}", why.clause())
        }
        Entry::Incident(incident) => {
            let cell = incident.cell.as_deref().unwrap_or(&incident.mission);
            let action = incident.action.action.as_deref().unwrap_or("none");
            format!(
                "{cell}: incident {}: {}; action: {action}",
                incident.number, incident.observed.detail
            )
        }
        Entry::ModeSwitched { to } => format!("the mission is in {} mode", to.name()),
        Entry::UpdateBegun { update, cells, .. } => match cells.as_slice() {
            [] => format!("update {update}: started, no cell is recreated"),
            cells => format!("update {update}: started, recreates {}", cells.join(", ")),
        },
        Entry::UpdateCommitted { update } => format!("update {update}: done"),
        Entry::UpdateRolledBack { update, reason } => {
            format!("update {update}: rolled back: {reason}")
        }
        Entry::CleanDown => "mission ended".to_owned(),
        Entry::Snapshot(_) => "snapshot of all earlier events".to_owned(),
    }
}

/// That a task's bound counts no more, as a sentence.
pub(crate) fn bound_withdrawn(cell: &str, task: &str, bound_ns: u64, why: &str) -> String {
    let bound = rounded_up(bound_ns);
    format!("{cell}: bound of {task}, {bound}, withdrawn: {why}")
}

/// That it counts again, as a sentence.
pub(crate) fn bound_in_force(cell: &str, task: &str, bound_ns: u64) -> String {
    let bound = rounded_up(bound_ns);
    format!(
        "{cell}: bound of {task}, {bound}, in force again: all that is looked at has held for a second"
    )
}

impl Hold {
    /// The reason as a clause.
    pub fn clause(self) -> &'static str {
        match self {
            Hold::ByHand => "it was stopped by hand",
            Hold::ByRule => "a health rule stopped it",
            Hold::RestartLimit => "it reached its restart limit",
            Hold::Shed => "it was shed in favour of others",
            Hold::Needs => "a cell that it needs is not running",
            Hold::Ended => "its program ended and is not restarted",
        }
    }
}
