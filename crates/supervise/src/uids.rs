//! A separate user id for each cell, so that no cell uses up resources counted for another one's user: pending signals,
//! inotify instances, room in pipes, message queues. The assignment is recorded for the whole machine, in a file that
//! goes with the boot, as the cells do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::root::Root;
use model::mission::Uids;

use crate::lock;

/// The file to lock before changing the record.
const LOCK: &str = "uids.lock";
/// How long another one's change is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The record of the user ids that are set aside.
#[derive(Debug)]
pub(crate) struct Record {
    dir: PathBuf,
    root: Root,
}

/// `MISSION/CELL` to user id. Neither name has a slash.
type Given = BTreeMap<String, u32>;

impl Record {
    /// That of this machine.
    pub(crate) fn of_this_machine() -> Record {
        Record {
            dir: PathBuf::from(lock::PLACE),
            root: Root::live(),
        }
    }

    /// The user id of a cell: the one that is set aside for it, else one that nobody has. The same cell gets the same one
    /// after a reboot, unless another cell has it by then.
    ///
    /// # Errors
    /// When none is free, or the record cannot be written; a sentence.
    pub(crate) fn set_aside(&self, mission: &str, cell: &str, range: Uids) -> Result<u32, String> {
        let _lock = self.lock()?;
        let mut given = self.read()?;
        let name = format!("{mission}/{cell}");
        let within = |uid: u32| (range.lowest..=range.highest).contains(&uid);
        if let Some(uid) = given.get(&name).copied().filter(|uid| within(*uid)) {
            return Ok(uid);
        }
        let taken: BTreeSet<u32> = given.values().copied().collect();
        let others = Others::of(&self.root);
        let uid = candidates(&name, range)
            .find(|uid| !taken.contains(uid) && !others.have(*uid))
            .ok_or_else(|| {
                format!(
                    "no user id of {} to {} is free for `{cell}`; name a larger range with `uids`, or end missions that are not needed",
                    range.lowest, range.highest
                )
            })?;
        given.insert(name, uid);
        self.write(&given)?;
        Ok(uid)
    }

    /// Frees the user ids of a mission that has ended.
    ///
    /// # Errors
    /// When the record cannot be written; a sentence.
    pub(crate) fn free(&self, mission: &str) -> Result<(), String> {
        if !self.file().exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let mut given = self.read()?;
        let prefix = format!("{mission}/");
        given.retain(|name, _| !name.starts_with(&prefix));
        self.write(&given)
    }

    fn file(&self) -> PathBuf {
        self.dir.join("uids.json")
    }

    fn lock(&self) -> Result<File, String> {
        lock::take(&self.dir, LOCK, PATIENCE).map_err(|error| failed(&self.dir.join(LOCK), &error))
    }

    fn read(&self) -> Result<Given, String> {
        let path = self.file();
        match host::file::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                format!("the record of user ids {} is damaged ({error}); remove it once no mission runs", path.display())
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Given::new()),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    fn write(&self, given: &Given) -> Result<(), String> {
        let (path, new) = (self.file(), self.dir.join("uids.json.new"));
        let write = || -> io::Result<()> {
            fs::write(&new, serde_json::to_vec(given)?)?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| failed(&path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!(
        "no user id can be reserved for its cells: {}: {error}",
        path.display()
    )
}

/// All ids of a range, starting at one that depends on the name alone (FNV-1a), so that a cell keeps its id over
/// reboots.
fn candidates(name: &str, range: Uids) -> impl Iterator<Item = u32> {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let many = u64::from(range.highest.saturating_sub(range.lowest)) + 1;
    (0..many).map(move |step| {
        let offset = (hash % many + step) % many;
        range.lowest + u32::try_from(offset).unwrap_or(0)
    })
}

/// Ids that belong to users and groups of the machine, or to their namespaces.
#[derive(Debug, Default)]
struct Others {
    single: BTreeSet<u32>,
    ranges: Vec<(u64, u64)>,
}

impl Others {
    fn of(root: &Root) -> Others {
        let mut others = Others::default();
        // A user without such a file has no processes.
        let text = |file: &str| root.read(file).unwrap_or_default();
        for file in ["/etc/passwd", "/etc/group"] {
            let text = text(file);
            let ids = text
                .lines()
                .filter_map(|line| line.split(':').nth(2)?.parse::<u32>().ok());
            others.single.extend(ids);
        }
        for file in ["/etc/subuid", "/etc/subgid"] {
            let text = text(file);
            others.ranges.extend(text.lines().filter_map(|line| {
                let mut numbers = line.split(':').skip(1).map(str::parse::<u64>);
                let (first, many) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
                Some((first, first.checked_add(many)?))
            }));
        }
        others
    }

    fn have(&self, uid: u32) -> bool {
        let id = u64::from(uid);
        self.single.contains(&uid)
            || (self.ranges.iter()).any(|(from, to)| (*from..*to).contains(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Uids = Uids {
        lowest: 100,
        highest: 109,
    };

    fn record(files: &[(&str, &str)]) -> (tempfile::TempDir, Record) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("etc")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join("etc").join(name), text).unwrap();
        }
        let record = Record {
            dir: dir.path().join("run"),
            root: Root::at(dir.path()),
        };
        (dir, record)
    }

    #[test]
    fn each_cell_has_its_own_and_keeps_it() {
        let (_dir, record) = record(&[]);
        let id = |mission: &str, cell: &str| record.set_aside(mission, cell, RANGE).unwrap();
        let first: Vec<u32> = ["a", "b", "c"].map(|cell| id("m", cell)).to_vec();
        let other: Vec<u32> = ["a", "b", "c"].map(|cell| id("n", cell)).to_vec();
        let all: BTreeSet<u32> = first.iter().chain(&other).copied().collect();
        assert_eq!(all.len(), 6, "{first:?} {other:?}");
        assert_eq!(["a", "b", "c"].map(|cell| id("m", cell)).to_vec(), first);
        record.free("m").unwrap();
        assert_eq!(id("n", "b"), other[1]);
        // As after a reboot.
        record.free("n").unwrap();
        assert_eq!(id("m", "a"), first[0]);
    }

    #[test]
    fn ids_of_the_machine_are_left_alone_and_an_end_is_told() {
        let (_dir, record) = record(&[
            ("passwd", "root:x:0:0::/:/bin/sh\nu:x:100:1::/:/bin/sh\n"),
            ("group", "g:x:101:\n"),
            ("subuid", "u:102:3\n"),
            ("subgid", "u:105:2\n"),
        ]);
        let mut found: Vec<u32> = (0..3)
            .map(|at| record.set_aside("m", &format!("c{at}"), RANGE).unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, [107, 108, 109]);
        let error = record.set_aside("m", "more", RANGE).unwrap_err();
        assert!(
            error.contains("no user id of 100 to 109 is free"),
            "{error}"
        );
        record.free("m").unwrap();
        assert!(record.set_aside("m", "more", RANGE).is_ok());
    }
}
