//! The directory of an order on the machine that carries it out: its archive while it arrives, then its words, the directory in
//! which it runs, its output and its status. The status has a fixed length and is written in place, so that it is told on a full
//! disk as well; a lock says whether the keeper lives.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use host::file;
use serde::{Deserialize, Serialize};

use super::message::Sum;
use crate::tree::{Tree, unpack};

/// Bytes of the status.
const STATUS: usize = 32;
/// The status of an order that was not begun.
pub const NEW: &str = "new";
/// The error of an order that is not there.
pub const MISSING: &str = "there is no such order";
/// The order in its archive, and beside it the files that are brought for it.
pub const ORDER: &str = "order";
pub const WORK: &str = "work";

/// A command and its circumstances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Arguments of timecell.
    pub args: Vec<String>,
    /// More variables of its environment.
    pub env: BTreeMap<String, String>,
    /// Whether it goes on when nobody has followed it for long.
    pub lasting: bool,
    /// Names in its directory that were brought, and are not sent back.
    pub brought: Vec<String>,
}

/// How far an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All of it is there, and it was not begun.
    New,
    /// The keeper with this number carries it out.
    Runs(i32),
    /// It has ended with this status; `None` if its keeper was killed or the machine started again.
    Ended(Option<i32>),
}

/// The directory of an order.
#[derive(Debug, Clone)]
pub struct Place {
    dir: PathBuf,
}

/// How long nobody has followed an order that is told as left behind, and how many are told.
const LEFT: Duration = Duration::from_secs(120);
const MOST_LEFT: usize = 8;

/// The orders beside this one that nobody follows, each in words.
///
/// # Errors
/// Those of the disk.
pub fn left(base: &Path, except: &str) -> io::Result<Vec<String>> {
    let all = match fs::read_dir(base.join("orders")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        all => all?,
    };
    let mut left = Vec::new();
    for entry in all {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Ok(place) = Place::of(base, &name) else {
            continue;
        };
        let followed = fs::metadata(place.path("followed")).and_then(|file| file.modified());
        let ago = followed.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        // One that is removed meanwhile is none.
        if name != except
            && ago.is_ok_and(|ago| ago > LEFT)
            && let Ok(order) = place.order()
            && let Ok(Some(state)) = place.state()
        {
            let state = match state {
                State::Ended(_) => "has ended",
                State::Runs(_) => "runs",
                State::New => "was not begun",
            };
            let mut words = order.args.join(" ");
            words.truncate(words.floor_char_boundary(60));
            left.push(format!("{name} {state}: {words}"));
        }
    }
    left.sort();
    left.truncate(MOST_LEFT);
    Ok(left)
}

/// Removes a directory that may be there.
fn removed(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Place {
    /// The place of the order of this name, below the directory of timecell on this machine.
    ///
    /// # Errors
    /// If it is no name of an order.
    pub fn of(base: &Path, order: &str) -> io::Result<Place> {
        let is_name =
            (8..=64).contains(&order.len()) && order.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_name {
            return Err(invalid("it is no name of an order"));
        }
        Ok(Place::at(&base.join("orders").join(order)))
    }

    /// The place in this directory.
    pub fn at(dir: &Path) -> Place {
        Place {
            dir: dir.to_owned(),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file or directory of the order.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The directory of an order that is not complete.
    fn coming(&self) -> PathBuf {
        self.dir.with_extension("new")
    }

    /// How much of the archive is there.
    pub fn have(&self) -> u64 {
        fs::metadata(self.coming().join("archive")).map_or(0, |file| file.len())
    }

    /// Adds a piece to the archive if it belongs at its end.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn give(&self, at: u64, piece: &[u8]) -> io::Result<()> {
        let coming = self.coming();
        (fs::DirBuilder::new().mode(0o700).recursive(true)).create(&coming)?;
        let mut options = File::options();
        let mut archive =
            (options.append(true).create(true).mode(0o600)).open(coming.join("archive"))?;
        if archive.metadata()?.len() == at {
            archive.write_all(piece)?;
        }
        Ok(())
    }

    /// Unpacks the archive, unless that was done. Anything but the archive that was meant is removed.
    ///
    /// # Errors
    /// Those of the disk; `InvalidData` if it is another archive.
    pub fn complete(&self, sum: &Sum) -> io::Result<()> {
        if self.dir.exists() {
            return Ok(());
        }
        let coming = self.coming();
        let archive = match File::open(coming.join("archive")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            archive => Some(archive?),
        };
        if let Some(archive) = &archive {
            // The server of a link that was lost may still unpack it.
            archive.lock()?;
        }
        if self.dir.exists() {
            return Ok(());
        }
        let digest = archive.as_ref().map(crate::cache::digest).transpose()?;
        let Some(mut archive) = archive.filter(|_| digest.as_ref() == Some(&sum.digest)) else {
            removed(&coming)?;
            return Err(invalid("the files arrived damaged"));
        };
        let tree = coming.join("tree");
        removed(&tree)?;
        fs::DirBuilder::new().mode(0o700).create(&tree)?;
        archive.rewind()?;
        unpack(BufReader::new(&archive), &tree)?;
        for name in ["out", "err", "followed", "lock", "status"] {
            File::create(tree.join(name))?;
        }
        fs::create_dir_all(tree.join(WORK))?;
        Place::at(&tree).write_status(NEW)?;
        fs::rename(&tree, &self.dir)?;
        removed(&coming)
    }

    /// The order itself.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn order(&self) -> io::Result<Order> {
        serde_json::from_slice(&file::read(self.path(ORDER))?)
            .map_err(|error| invalid(error.to_string()))
    }

    /// Writes the status, of at most [`STATUS`] bytes.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write_status(&self, status: &str) -> io::Result<()> {
        let file = File::options().write(true).open(self.path("status"))?;
        file.write_all_at(format!("{status:<STATUS$}").as_bytes(), 0)?;
        file.sync_data()
    }

    /// The status as it was written last.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn status(&self) -> io::Result<String> {
        Ok(file::text(self.path("status"))?.trim_end().to_owned())
    }

    /// The lock of the order, unless its keeper has it.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn lock(&self) -> io::Result<Option<File>> {
        let file = File::options().write(true).open(self.path("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// How far it is; `None` if there is no such order.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn state(&self) -> io::Result<Option<State>> {
        if !self.dir.exists() {
            return Ok(None);
        }
        // Before the status is read: the keeper writes it before it gives the lock back.
        let is_kept = self.lock()?.is_none();
        let text = self.status()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(Some(match words[..] {
            ["ended", status] => State::Ended(status.parse().ok()),
            ["runs", keeper] if is_kept => State::Runs(
                keeper
                    .parse()
                    .map_err(|_| invalid("its status is damaged"))?,
            ),
            // Its keeper has not begun yet.
            [NEW] if is_kept => State::Runs(0),
            [NEW] => State::New,
            _ => State::Ended(None),
        }))
    }

    /// Its results: all in its directory that was not brought.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn made(&self) -> io::Result<Tree> {
        let brought = self.order()?.brought;
        let mut tree = Tree::default();
        tree.add_placed(&self.path(WORK), &|path| {
            let top = path.split('/').next().unwrap_or_default();
            (!brought.iter().any(|name| name == top)).then_some(path)
        })?;
        Ok(tree)
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn remove(&self) -> io::Result<()> {
        removed(&self.dir)?;
        removed(&self.coming())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> (Vec<u8>, Sum) {
        let order = Order {
            args: vec!["doctor".into()],
            brought: vec!["mine.toml".into()],
            ..Order::default()
        };
        let mut tree = Tree::default();
        tree.text(ORDER, 0o600, serde_json::to_vec(&order).unwrap());
        tree.text("work/mine.toml", 0o644, "schema = 1");
        let bytes = tree.write(Vec::new()).unwrap();
        let sum = Sum {
            length: bytes.len() as u64,
            digest: crate::cache::digest(&bytes[..]).unwrap(),
        };
        (bytes, sum)
    }

    #[test]
    fn an_archive_that_arrives_in_pieces_becomes_an_order() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path(), "0123456789abcdef").unwrap();
        let (bytes, sum) = archive();
        let (one, other) = bytes.split_at(100);
        place.give(0, one).unwrap();
        // Doubled, and from the future.
        place.give(0, one).unwrap();
        place.give(400, other).unwrap();
        assert_eq!(place.have(), 100);
        place.give(100, other).unwrap();
        assert_eq!(place.state().unwrap(), None);
        // A server was killed while it unpacked, and two go on.
        fs::create_dir_all(place.coming().join("tree/work/mine.toml")).unwrap();
        std::thread::scope(|scope| {
            let two = [&place, &place].map(|place| scope.spawn(|| place.complete(&sum)));
            for one in two {
                one.join().unwrap().unwrap();
            }
        });
        place.complete(&sum).unwrap();
        assert!(!place.coming().exists());
        assert_eq!(place.state().unwrap(), Some(State::New));
        assert_eq!(place.order().unwrap().args, ["doctor"]);
        fs::create_dir(place.path("work/runs")).unwrap();
        let made = place.made().unwrap();
        assert!(made.has("runs") && !made.has("mine.toml"));
        place.remove().unwrap();
        assert_eq!(place.state().unwrap(), None);
    }

    #[test]
    fn a_damaged_archive_is_brought_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path(), "0123456789abcdef").unwrap();
        let (mut bytes, sum) = archive();
        bytes[50] ^= 1;
        place.give(0, &bytes).unwrap();
        let error = place.complete(&sum).unwrap_err().to_string();
        assert!(error.contains("damaged") && place.have() == 0, "{error}");
        assert!(Place::of(dir.path(), "../../etc").is_err());
    }

    #[test]
    fn an_order_whose_keeper_was_killed_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path(), "0123456789abcdef").unwrap();
        let (bytes, sum) = archive();
        place.give(0, &bytes).unwrap();
        place.complete(&sum).unwrap();
        let lock = place.lock().unwrap();
        assert_eq!(place.state().unwrap(), Some(State::Runs(0)));
        place.write_status("runs 77").unwrap();
        assert_eq!(place.state().unwrap(), Some(State::Runs(77)));
        drop(lock);
        assert_eq!(place.state().unwrap(), Some(State::Ended(None)));
        place.write_status("ended 3").unwrap();
        assert_eq!(place.state().unwrap(), Some(State::Ended(Some(3))));
    }
}
