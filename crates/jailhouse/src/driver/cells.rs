//! The state of cells as the driver shows it in sysfs.

use std::io;
use std::path::{Path, PathBuf};

use host::cpus::parse_list;

use super::DriverError;

/// The hypervisor's word on a cell. Of the ways in which the program of a cell can fail, it sees only accesses to memory and devices of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was started; whether it does anything is not known.
    Running,
    /// The same, and it denies to be stopped.
    RunningLocked,
    /// It was never started, or was stopped, or says of itself that it has ended.
    ShutDown,
    /// It accessed something that is not its own, or says of itself that it has failed.
    Failed,
    /// Another word of the driver.
    Other(String),
}

impl State {
    pub(crate) fn of(word: &str) -> State {
        match word {
            "running" => State::Running,
            "running/locked" => State::RunningLocked,
            "shut down" => State::ShutDown,
            "failed" => State::Failed,
            other => State::Other(other.to_owned()),
        }
    }
}

/// A cell of the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellStatus {
    /// Its number; 0 is the root cell, in which Linux runs.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Its cpus.
    pub cpus: Vec<u32>,
    /// Those of its cpus that are stopped for an access.
    pub failed_cpus: Vec<u32>,
    /// How often it was interrupted by the hypervisor, all causes together.
    pub exits: u64,
}

pub(super) fn is_enabled(sysfs: &Path) -> Result<bool, DriverError> {
    let path = sysfs.join("enabled");
    match text(&path)?.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(unlike(path)),
    }
}

pub(super) fn all(sysfs: &Path) -> Result<Vec<CellStatus>, DriverError> {
    let path = sysfs.join("cells");
    let unreadable = |source| DriverError::Unreadable {
        path: path.clone(),
        source,
    };
    let mut cells = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if let Some(id) = entry.file_name().to_str().and_then(|id| id.parse().ok()) {
            cells.extend(one(&entry.path(), id)?);
        }
    }
    cells.sort_by_key(|cell: &CellStatus| cell.id);
    Ok(cells)
}

pub(super) fn state(sysfs: &Path, id: u32) -> Result<Option<State>, DriverError> {
    match text(&sysfs.join(format!("cells/{id}/state"))) {
        Ok(word) => Ok(Some(State::of(&word))),
        Err(DriverError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The cell of a directory, or nothing if it has gone meanwhile.
fn one(dir: &Path, id: u32) -> Result<Option<CellStatus>, DriverError> {
    let cpus = |name: &str| {
        let path = dir.join(name);
        parse_list(&text(&path)?).map_err(|_| unlike(path))
    };
    let read = || {
        let exits = dir.join("statistics/vmexits_total");
        Ok(CellStatus {
            id,
            name: text(&dir.join("name"))?,
            state: State::of(&text(&dir.join("state"))?),
            cpus: cpus("cpus_assigned_list")?,
            failed_cpus: cpus("cpus_failed_list")?,
            exits: text(&exits)?.parse().map_err(|_| unlike(exits))?,
        })
    };
    match read() {
        Ok(cell) => Ok(Some(cell)),
        Err(DriverError::Unreadable { source, .. })
            if source.kind() == io::ErrorKind::NotFound && !dir.exists() =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn text(path: &Path) -> Result<String, DriverError> {
    match host::file::text(path) {
        Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
        Err(source) => Err(DriverError::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}

fn unlike(path: PathBuf) -> DriverError {
    let source = io::Error::other("it has another form than that of the known driver");
    DriverError::Unreadable { path, source }
}
