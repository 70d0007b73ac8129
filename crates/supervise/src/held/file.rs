//! The file of held things and of the state to restore, in the place that all supervisors of a machine share. Like the
//! holds, it goes with the boot. It is read and written while the ledger is locked.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use host::ground;
use host::sched::Class;
use model::Enforcer;
use serde::{Deserialize, Serialize};

use super::back::Back;
use super::{HeldError, Thing};
use crate::admit::Hold;
use crate::ledger::Broken;
use crate::lock::PLACE;

/// Version of the file.
const SCHEMA: u32 = 2;
/// Longest file that is read, bytes: the state to restore takes some hundred for each thread.
const MOST_BYTES: u64 = 256 << 20;
const NAME: &str = "held.json";
/// In place of the inode of a group that is not made yet.
pub(super) const NOT_MADE: u64 = 0;

/// One thing that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) thing: Thing,
    /// Its grant, a hold for each cpu.
    pub(super) holds: Vec<Hold>,
    /// The class that its threads were given.
    pub(super) class: Option<Class>,
    /// Since when, RFC 3339, and CLOCK_MONOTONIC ns.
    pub(super) since_utc: String,
    pub(super) since_ns: i64,
    pub(super) back: Back,
    /// Whether anything of its threads may have been changed: the process that was to hold it may have been killed
    /// before.
    pub(super) begun: bool,
    /// The last change by others that was put back.
    pub(super) put_back: Option<PutBack>,
    /// Since when others have it otherwise, and nothing is put back any more.
    pub(super) broken: Option<Broken>,
}

/// A change that was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBack {
    /// When, RFC 3339.
    pub at_utc: String,
    /// The same, CLOCK_MONOTONIC ns.
    pub at_ns: i64,
    /// The change, a clause.
    pub what: String,
}

impl Record {
    /// The group of each hold, and its cpu.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let parts = self.holds.iter().filter_map(|hold| {
            let group = hold.threads.as_deref().unwrap_or(&self.thing.group);
            Some((group, *hold.cpus.first()?))
        });
        parts.collect()
    }

    /// Its cpus.
    pub(super) fn cpus(&self) -> Vec<u32> {
        self.parts().into_iter().map(|(_, cpu)| cpu).collect()
    }
}

/// A group, and the cpu that its threads are kept to.
pub(super) type Part<'a> = (&'a Path, u32);

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    held: Vec<Record>,
}

/// The held things of this machine, by its file.
#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    pub(super) all: Vec<Record>,
}

impl Records {
    /// Those of this machine.
    pub(super) fn read() -> Result<Records, HeldError> {
        Records::read_in(Path::new(PLACE))
    }

    /// The identity of the present version of the file; `None`: there is none.
    pub(super) fn version() -> Option<(u64, i64, i64)> {
        let file = std::fs::metadata(Path::new(PLACE).join(NAME)).ok()?;
        Some((file.ino(), file.mtime(), file.mtime_nsec()))
    }

    fn read_in(dir: &Path) -> Result<Records, HeldError> {
        let path = dir.join(NAME);
        let failed = |reason| HeldError::File {
            path: path.clone(),
            reason,
        };
        let file = match ground::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let all = Vec::new();
                return Ok(Records { path, all });
            }
            opened => opened.map_err(failed)?,
        };
        let mut bytes = Vec::new();
        (file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
        match parse(&bytes) {
            Ok(all) => Ok(Records { path, all }),
            Err(why) => Err(HeldError::Corrupt { path, why }),
        }
    }

    #[cfg(test)]
    pub(super) fn read_at(dir: &Path) -> Records {
        Records::read_in(dir).unwrap()
    }

    /// Replaces the file as a whole; if nothing is held there is no file.
    pub(super) fn write(&self) -> Result<(), HeldError> {
        let failed = |reason| HeldError::File {
            path: self.path.clone(),
            reason,
        };
        if self.all.is_empty() {
            return host::file::gone(std::fs::remove_file(&self.path)).map_err(failed);
        }
        let file = File {
            schema: SCHEMA,
            held: self.all.clone(),
        };
        let part = self.path.with_extension("part");
        let write = || -> std::io::Result<()> {
            let text = serde_json::to_vec_pretty(&file)?;
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&part)?;
            file.write_all(&text)?;
            std::fs::rename(&part, &self.path)
        };
        write().map_err(failed)
    }

    /// The record that a user means by this: a name as a whole before the beginning of an id.
    ///
    /// # Errors
    /// [`HeldError::Several`].
    pub(super) fn called(&self, what: &str) -> Result<Option<&Record>, HeldError> {
        if let Some(named) = self.all.iter().find(|record| record.thing.name == what) {
            return Ok(Some(named));
        }
        let called = self
            .all
            .iter()
            .filter(|record| record.thing.is_called(what));
        match called.collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            ref several => Err(HeldError::Several {
                what: what.to_owned(),
                names: several.iter().map(|held| held.thing.to_string()).collect(),
            }),
        }
    }

    /// Without the one of this group.
    pub(super) fn forget(&mut self, group: &Path) {
        self.all.retain(|record| record.thing.group != group);
    }
}

/// The records in a file; nothing in it is trusted before it is checked.
fn parse(bytes: &[u8]) -> Result<Vec<Record>, String> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {} MiB", MOST_BYTES >> 20));
    }
    let file: File = host::versioned::parse(bytes, SCHEMA).map_err(|error| error.to_string())?;
    let odd = |record: &&Record| {
        let paths = [Some(&record.thing.group), record.thing.taken_from.as_ref()];
        paths.into_iter().flatten().any(|path| !path.is_absolute())
            || record.holds.is_empty()
            || record
                .holds
                .iter()
                .any(|hold| hold.check(Enforcer::Freezer).is_err())
    };
    match file.held.iter().find(odd) {
        Some(record) => Err(format!("its entry for {} is impossible", record.thing)),
        None => Ok(file.held),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::held::Kind;
    use model::mission::CellClass;

    pub(in crate::held) fn record(name: &str) -> Record {
        Record {
            thing: Thing {
                kind: Kind::Process,
                name: name.to_owned(),
                id: "sleep".to_owned(),
                pid: Some(7),
                group: format!("/nowhere/{name}").into(),
                inode: 3,
                taken_from: Some("/nowhere".into()),
            },
            holds: vec![Hold {
                threads: None,
                cpus: vec![1],
                budget_ns: Some(3),
                period_ns: Some(10),
                reservation_ns: Some((3, 10)),
                class: CellClass::Fifo,
                priorities: Some((60, 60)),
            }],
            class: Some(Class::Fifo { priority: 60 }),
            since_utc: "2026-11-25T00:00:00.000Z".to_owned(),
            since_ns: 5,
            back: Back::default(),
            begun: true,
            put_back: None,
            broken: None,
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::read_in(dir.path()).unwrap();
        assert_eq!(records.all, []);
        records.all = vec![record("7"), record("8")];
        records.write().unwrap();
        let mut again = Records::read_in(dir.path()).unwrap();
        assert_eq!(again.all, records.all);
        assert_eq!(again.called("8").unwrap(), Some(&records.all[1]));
        again.forget(Path::new("/nowhere/7"));
        again.write().unwrap();
        assert_eq!(Records::read_in(dir.path()).unwrap().all, records.all[1..]);
        again.all.clear();
        again.write().unwrap();
        assert!(!dir.path().join(NAME).exists());
        again.write().unwrap();
    }

    #[test]
    fn a_name_comes_before_the_beginning_of_an_id_and_two_are_refused() {
        let container = |name: &str, id: &str| {
            let mut held = record(name);
            held.thing.kind = Kind::Podman;
            held.thing.id = id.repeat(8);
            held
        };
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::read_at(dir.path());
        records.all = vec![
            container("web", "deadbeef"),
            container("db", "deadcafe"),
            container("deadbe", "01234567"),
        ];
        let called = |what: &str| {
            let found = records.called(what).unwrap();
            found.map(|held| held.thing.name.as_str())
        };
        assert_eq!(called("deadbe"), Some("deadbe"));
        assert_eq!(called("deadbee"), Some("web"));
        assert_eq!(called("0123"), Some("deadbe"));
        assert_eq!((called("de"), called("feed")), (None, None));
        let said = records.called("dead").unwrap_err().to_string();
        assert!(said.contains("`web`") && said.contains("`db`"), "{said}");
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::read_in(dir.path()).unwrap();
        let refused = |text: &str| {
            std::fs::write(dir.path().join(NAME), text).unwrap();
            Records::read_in(dir.path()).unwrap_err().to_string()
        };
        assert!(refused("{").contains("cannot be understood"));
        assert!(refused("{\"schema\": 3}").contains("version 3"));
        let mut odd = record("7");
        odd.thing.group = "relative".into();
        records.all = vec![odd];
        records.write().unwrap();
        assert!(
            Records::read_in(dir.path())
                .unwrap_err()
                .to_string()
                .contains("is impossible")
        );
    }
}
