//! Which process a cell's program is, written down once it exists, so that another process finds the cell again and
//! never a stranger that has been given the same pid.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::file::at;
use host::ground;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::process::Process;
use host::process::boot_id;

/// An upper bound on the length of a record, bytes.
const MOST_BYTES: u64 = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pid: i32,
    /// Start of that process in clock ticks since boot.
    start_ticks: u64,
    /// Which boot: pids and ticks start over after the next one.
    boot_id: String,
    /// Whether it was told to start.
    pub(super) started: bool,
    /// Whether its output goes to a log of ours.
    pub(super) logged: bool,
}

fn path(state: &Path) -> PathBuf {
    state.join("process.json")
}

impl Record {
    pub(super) fn of(process: Process, logged: bool) -> io::Result<Record> {
        Ok(Record {
            pid: process.pid,
            start_ticks: process.started(),
            boot_id: boot_id()?,
            started: false,
            logged,
        })
    }

    /// Writes it into a cell's directory of state.
    pub(super) fn write(&self, state: &Path) -> io::Result<()> {
        let whole = path(state);
        let part = whole.with_extension("json.part");
        ground::replace(&part, &serde_json::to_vec(self)?)?;
        fs::rename(part, whole)
    }

    /// Reads it; `None` if there is none.
    pub(crate) fn read(state: &Path) -> Result<Option<Record>> {
        let path = path(state);
        match ground::read(&path, MOST_BYTES) {
            Ok(text) => Ok(serde_json::from_slice(&text).map_err(at(&path))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error).into()),
        }
    }

    /// The process, if this is still the same boot.
    pub(crate) fn process(&self) -> Option<Process> {
        let same = boot_id().is_ok_and(|id| id == self.boot_id);
        same.then(|| Process::known(self.pid, self.start_ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_is_only_found_with_its_start_and_boot() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(dir.path()).unwrap(), None);
        let own = Process::of(std::process::id().cast_signed()).unwrap();
        let record = Record::of(own, true).unwrap();
        record.write(dir.path()).unwrap();
        assert_eq!(Record::read(dir.path()).unwrap().as_ref(), Some(&record));
        assert!(record.process().unwrap().open().is_some());
        let later = Record {
            start_ticks: record.start_ticks + 1,
            ..record.clone()
        };
        assert!(later.process().unwrap().open().is_none());
        let other_boot = Record {
            boot_id: "x".into(),
            ..record
        };
        assert_eq!(other_boot.process(), None);
        fs::write(path(dir.path()), "{").unwrap();
        assert!(
            Record::read(dir.path())
                .unwrap_err()
                .to_string()
                .contains("process.json")
        );
    }
}
