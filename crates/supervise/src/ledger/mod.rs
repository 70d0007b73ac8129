//! Records shared by all supervisors, measurements and holds of one machine, below `/run/timecell`: which mission names
//! are in use ([`NameLock`]), and the grants of each ([`Ledger`]). They survive their writers and go with the reboot,
//! like everything that they describe.
//!
//! Only root writes it. Real-time threads of a user without root are in no ledger: they are seen while they run
//! ([`unaccounted`]).

mod alive;
mod entry;
mod error;
mod file;
mod name;
mod outside;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::ground;

use crate::admit::{HeldCell, HeldMemory};
use crate::lock;
use crate::names;

pub use entry::{Broken, Entry, Holder};
pub use error::LedgerError;
pub use file::parse;
pub use name::NameLock;
pub use outside::{found_twice, unaccounted};

/// How long another one may decide before it is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The ledger of a machine.
#[derive(Debug, Clone)]
pub struct Ledger {
    dir: PathBuf,
}

impl Default for Ledger {
    /// That of this machine, `/run/timecell`. Everybody may read it; only root writes it.
    fn default() -> Ledger {
        Ledger::at(lock::PLACE)
    }
}

impl Ledger {
    /// The one in this directory.
    pub fn at(dir: impl Into<PathBuf>) -> Ledger {
        Ledger { dir: dir.into() }
    }

    /// Takes the name of a mission whose directory is `dir`, an absolute path, until the returned lock is dropped.
    ///
    /// # Errors
    /// When another supervisor has it, or cells of that name that were started from another directory still run.
    pub fn name(&self, mission: &str, dir: &Path) -> Result<NameLock, LedgerError> {
        NameLock::take(&self.dir, mission, dir)
    }

    /// The holdings that have not ended.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn entries(&self) -> Result<Vec<Entry>, LedgerError> {
        let mut entries = self.read()?;
        entries.retain(Entry::lives);
        Ok(entries)
    }

    /// Keeps everybody else from deciding until the returned value is dropped. The kernel releases it if the process is
    /// killed.
    ///
    /// Without root nothing is locked and nothing can be entered.
    ///
    /// # Errors
    /// When another one keeps it, or the system refuses it.
    pub fn lock(&self) -> Result<Locked, LedgerError> {
        self.lock_within(PATIENCE)
    }

    /// The same without waiting, for a thread that has other work: [`LedgerError::Busy`] while another one keeps it.
    ///
    /// # Errors
    /// As [`Ledger::lock`].
    pub(crate) fn try_lock(&self) -> Result<Locked, LedgerError> {
        self.lock_within(Duration::ZERO)
    }

    fn lock_within(&self, patience: Duration) -> Result<Locked, LedgerError> {
        let ledger = self.clone();
        if !is_root() {
            return Ok(Locked { ledger, file: None });
        }
        let path = self.dir.join("lock");
        match lock::take(&self.dir, "lock", patience) {
            Ok(file) => Ok(Locked {
                ledger,
                file: Some(file),
            }),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Err(LedgerError::Busy { path })
            }
            Err(error) => Err(self.failed(&path, "locked")(error)),
        }
    }

    /// Removes missions and measurements of which nothing runs any more; returns their holders. A hold that has ended
    /// is forgotten together with the settings to restore ([`crate::held`]).
    ///
    /// # Errors
    /// When the ledger cannot be locked, read, understood or written; then it is as it was. Without root it is not touched.
    pub fn forget_over(&self) -> Result<Vec<Holder>, LedgerError> {
        let locked = self.lock()?;
        if locked.file.is_none() {
            return Ok(Vec::new());
        }
        let is_over =
            |entry: &Entry| !matches!(entry.holder, Holder::Held { .. }) && !entry.lives();
        let (over, kept): (Vec<Entry>, Vec<Entry>) = self.read()?.into_iter().partition(is_over);
        if !over.is_empty() {
            self.write(&kept)?;
        }
        Ok(over.into_iter().map(|entry| entry.holder).collect())
    }

    /// Removes the records of names that nobody uses and of whose missions nothing runs any more. Does nothing without
    /// root.
    ///
    /// # Errors
    /// When their directory cannot be read.
    pub fn forget_names(&self) -> Result<(), LedgerError> {
        name::forget_over(&self.dir)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("ledger.json")
    }

    fn failed(
        &self,
        path: &Path,
        tried: &'static str,
    ) -> impl FnOnce(std::io::Error) -> LedgerError {
        let path = path.to_owned();
        move |source| LedgerError::System {
            path,
            tried,
            source,
        }
    }

    /// The ledgers that processes of root's have in this one's place, in mount namespaces with a `/run` of their own.
    fn elsewhere(&self) -> Vec<Ledger> {
        let is_at = |dir: &Path| fs::metadata(dir).ok().map(|at| (at.dev(), at.ino()));
        let mut seen = vec![is_at(&self.dir)];
        let mut spaces = Vec::new();
        let mut found = Vec::new();
        for pid in host::process::all() {
            let space = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
            if space.is_none() || spaces.contains(&space) || host::process::user(pid) != Some(0) {
                continue;
            }
            spaces.push(space);
            let place = self.dir.strip_prefix("/").unwrap_or(&self.dir);
            let dir = Path::new("/proc").join(format!("{pid}/root")).join(place);
            let at = is_at(&dir);
            if at.is_some() && !seen.contains(&at) {
                seen.push(at);
                found.push(Ledger::at(dir));
            }
        }
        found
    }

    fn read(&self) -> Result<Vec<Entry>, LedgerError> {
        let path = self.path();
        let file = match ground::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(&path, "opened")(error)),
        };
        let mut bytes = Vec::new();
        (file.take(file::MOST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(self.failed(&path, "read"))?;
        file::parse(&bytes).map_err(|why| LedgerError::Corrupt { path, why })
    }

    fn write(&self, entries: &[Entry]) -> Result<(), LedgerError> {
        let path = self.path();
        let part = path.with_extension("part");
        let write = || -> std::io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o644)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&part)?;
            file.write_all(&file::text(entries)?)?;
            // A kill here leaves the old one whole; a power cut leaves none of /run.
            std::fs::rename(&part, &path)
        };
        write().map_err(self.failed(&path, "written"))
    }
}

/// The ledger while nobody else decides.
#[derive(Debug)]
pub struct Locked {
    ledger: Ledger,
    file: Option<File>,
}

impl Locked {
    /// The holdings that have not ended, without this holder's entry.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn others(&self, own: &Holder) -> Result<Vec<Entry>, LedgerError> {
        let mut entries = self.ledger.entries()?;
        entries.retain(|entry| !is_same(&entry.holder, own));
        Ok(entries)
    }

    /// This holder's entry, if anything of it lives.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn own(&self, own: &Holder) -> Result<Option<Entry>, LedgerError> {
        let entries = self.ledger.entries()?;
        Ok((entries.into_iter()).find(|entry| is_same(&entry.holder, own)))
    }

    /// The holdings in this ledger and in those of other mount namespaces, which nobody locks: anything made after its maker has entered
    /// itself is to be listed before this is asked.
    ///
    /// # Errors
    /// When one of them cannot be read or understood: it may name anything.
    pub(crate) fn entries_everywhere(&self) -> Result<Vec<Entry>, LedgerError> {
        let mut entries = self.ledger.entries()?;
        for ledger in self.ledger.elsewhere() {
            entries.extend(ledger.entries()?);
        }
        Ok(entries)
    }

    /// Enters the holdings of a holder in place of its former ones.
    ///
    /// # Errors
    /// When the file cannot be read, understood or written.
    pub fn put(&self, entry: Entry) -> Result<(), LedgerError> {
        if self.file.is_none() {
            return Ok(());
        }
        let mut entries = self.others(&entry.holder)?;
        entries.push(entry);
        self.ledger.write(&entries)
    }

    /// The holdings of this holder are over.
    ///
    /// # Errors
    /// As [`Locked::put`].
    pub(crate) fn remove(&self, own: &Holder) -> Result<(), LedgerError> {
        match self.file {
            Some(_) => self.ledger.write(&self.others(own)?),
            None => Ok(()),
        }
    }

    /// A mission keeps these of its cells and no others, and so much of the memory.
    ///
    /// # Errors
    /// As [`Locked::put`].
    pub(crate) fn keep_only(
        &self,
        mission: &str,
        cells: &[HeldCell],
        memory: HeldMemory,
    ) -> Result<(), LedgerError> {
        let entries = self.ledger.entries()?;
        let own = |entry: &Entry| matches!(&entry.holder, Holder::Mission { name, .. } if name == mission);
        match entries.into_iter().find(own) {
            Some(entry) => self.put(Entry {
                cells: cells.to_vec(),
                memory,
                ..entry
            }),
            None => Ok(()),
        }
    }

    /// As [`Locked::put`]; it is returned when the result is dropped, unless something of it still runs then.
    ///
    /// # Errors
    /// As [`Locked::put`].
    pub fn take(self, entry: Entry) -> Result<Holding, LedgerError> {
        let held = Holding {
            ledger: self.ledger.clone(),
            holder: entry.holder.clone(),
        };
        self.put(entry)?;
        Ok(held)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has just forked shares the lock until it executes its program.
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

/// An entry of the ledger that is removed when this is dropped.
#[derive(Debug)]
pub struct Holding {
    ledger: Ledger,
    holder: Holder,
}

impl Drop for Holding {
    fn drop(&mut self) {
        let give = || -> Result<(), LedgerError> {
            let locked = self.ledger.lock()?;
            if locked.file.is_none() {
                return Ok(());
            }
            let mut entries = self.ledger.read()?;
            entries.retain(|entry| match is_same(&entry.holder, &self.holder) {
                // Cells continue when their supervisor fails.
                true => entry.outlives(),
                false => entry.lives(),
            });
            self.ledger.write(&entries)
        };
        // A remaining entry is seen as over by its next reader.
        let _ = give();
    }
}

/// A mission is known by its name, wherever it is; measurements by their processes.
fn is_same(one: &Holder, other: &Holder) -> bool {
    match (one, other) {
        (Holder::Mission { name, .. }, Holder::Mission { name: own, .. }) => name == own,
        _ => one == other,
    }
}

/// Whether anything of a mission runs: its supervisor, by these entries, or a process in its cells.
pub(crate) fn anything_runs(entries: &[Entry], mission: &str) -> bool {
    let is_of =
        |entry: &&Entry| matches!(&entry.holder, Holder::Mission { name, .. } if name == mission);
    let supervised = |entry: &Entry| entry.process.still_runs().unwrap_or(true);
    entries.iter().find(is_of).is_some_and(supervised)
        || engine::any_lives(&names::cells_of(mission))
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
