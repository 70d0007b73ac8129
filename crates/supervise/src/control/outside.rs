//! The status of a mission without a supervisor.

use std::io;
use std::path::Path;

use host::ground;
use model::mission::MissionFile;

use super::{CellState, CellStatus, ControlError, SCHEMA, Status, socket};
use crate::journal;
use crate::stamp::Stamp;
use crate::state::{Record, State, replay};

/// The status that the journal of a directory adds up to, with the cells that still run.
///
/// # Errors
/// When there is no journal, or it cannot be read.
pub fn from_journal(dir: &Path) -> Result<Status, ControlError> {
    let state = state(dir)?;
    let file = state.file.as_ref();
    let mission = file.and_then(|file| MissionFile::parse("mission", &file.text).ok());
    let mut names: Vec<String> = mission.map_or(Vec::new(), |mission| {
        (mission.mission().cells.iter())
            .map(|cell| cell.name.clone())
            .collect()
    });
    if state.mission.is_some() {
        let others = state.cells.keys().filter(|name| !names.contains(name));
        let others: Vec<String> = others.cloned().collect();
        names.extend(others);
    }
    let cells = names.iter().map(|name| cell(dir, name, &state));
    Ok(Status {
        schema: SCHEMA,
        at_utc: Stamp::now().utc(),
        mission: state.mission.clone(),
        dir: dir.to_owned(),
        caution: Status::caution(),
        supervisor: None,
        mode: state.mode,
        update: state.update.as_ref().map(|update| update.number),
        cells: cells.collect(),
    })
}

/// The state that the journal of a directory adds up to. It is only read: its writer is not disturbed.
pub(crate) fn state(dir: &Path) -> Result<State, ControlError> {
    ground::check(dir)?;
    let read = journal::read(&dir.join("journal"));
    let bytes = read.map_err(|error| unreadable(dir, error))?;
    let loaded = journal::load::<Record>(&bytes);
    Ok(replay(loaded.entries.iter().map(|(_, record)| record)))
}

pub(super) fn unreadable(dir: &Path, error: io::Error) -> ControlError {
    let path = dir.join("journal");
    match error.kind() {
        io::ErrorKind::NotFound => ControlError::NoMission {
            dir: dir.to_owned(),
        },
        io::ErrorKind::PermissionDenied => ControlError::NoPermission {
            path: socket::path(dir),
        },
        _ => ControlError::System {
            path,
            tried: "read",
            source: error,
        },
    }
}

fn cell(dir: &Path, name: &str, state: &State) -> CellStatus {
    let known = state.cells.get(name);
    let mut status = CellStatus::of(
        name,
        known,
        crate::dirs::work_dir(dir, name, known.is_some_and(crate::state::Cell::is_beside)),
    );
    let instance = known.and_then(|known| known.instances.values().next_back());
    if let Some(instance) = instance {
        let process = instance.started.as_ref().map(|started| &started.process);
        let runs = process.is_some_and(|process| process.still_runs().unwrap_or(false));
        status.state = if runs {
            CellState::Orphan
        } else {
            CellState::Gone
        };
        if runs {
            status.why = None;
            status.cpu_ns =
                (status.pid).and_then(|pid| host::process::cpu_ns_of_threads(pid).ok().flatten());
        } else {
            status.pid = None;
            status.why = Some("it ended while no supervisor ran".to_owned());
        }
    }
    status
}
