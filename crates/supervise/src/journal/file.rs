//! The file of a journal: opened, appended to, compacted.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use host::ground;

use super::load::{FORM, Header};
use super::lock::Lock;
use super::reserve::Reserve;
use super::{Durability, Entry, JournalError, Loaded, frame, load};

/// Below this size no journal is worth compacting.
const SMALL_BYTES: u64 = 256 << 10;
/// More than a journal ever holds, which is compacted at twice its compact size.
const MOST_BYTES: u64 = 256 << 20;

/// A journal that is being written; see [the module](super).
#[derive(Debug)]
pub struct Journal<E> {
    dir: PathBuf,
    file: File,
    /// Sequence number of the next line.
    next: u64,
    /// Length up to the last whole line.
    bytes: u64,
    /// Length after the last compaction.
    compact_bytes: u64,
    reserve: Reserve,
    broken: Option<String>,
    _lock: Lock,
    entries: PhantomData<fn(E) -> E>,
}

impl<E: Entry> Journal<E> {
    /// Opens the journal in `dir`, creating it if it is not there, and returns its contents. A torn tail is cut off; a
    /// journal that is damaged before its tail is kept as `journal.damaged` and rewritten with its whole lines.
    ///
    /// # Errors
    /// When somebody else can change the directory, another process has it, a later version wrote it, it is of another kind, or
    /// the file system refuses.
    pub fn open(dir: &Path) -> Result<(Journal<E>, Loaded<E>), JournalError> {
        ground::check(dir)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| failed(dir, "made", error))?;
        // Where everybody may create directories, somebody may have created this one just before.
        ground::check(dir)?;
        let lock = Lock::take(dir)?;
        let path = dir.join("journal");
        let read = match read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, "read", error)),
        };
        let loaded = load::<E>(read.as_deref().unwrap_or_default());
        if let Some(header) = &loaded.header {
            check::<E>(&path, header)?;
        }
        let next = loaded
            .last_sequence
            .map_or(0, |last| last.saturating_add(1));
        let whole = loaded.header.is_some()
            && (loaded.dropped.is_empty() || loaded.only_its_tail_is_torn());
        let (file, next, bytes) = if whole {
            let file = reopen(&path, &loaded)?;
            (file, next, loaded.whole_bytes as u64)
        } else {
            if read.is_some_and(|bytes| !bytes.is_empty()) {
                keep(dir, "journal.damaged")?;
            } else if let Some(parent) = dir.parent() {
                sync_directory(parent)?;
            }
            let entries = loaded.entries.iter().map(|(_, entry)| entry);
            let new = write_new(dir, next, entries)?;
            install(dir)?;
            new
        };
        let mut reserve = Reserve::default();
        reserve.keep(&file, bytes);
        let journal = Journal {
            reserve,
            dir: dir.to_owned(),
            file,
            next,
            bytes,
            compact_bytes: bytes.min(SMALL_BYTES),
            broken: None,
            _lock: lock,
            entries: PhantomData,
        };
        Ok((journal, loaded))
    }

    /// Writes an entry and returns its sequence number once it is as durable as its [`Durability`] demands.
    ///
    /// # Errors
    /// When it cannot be written; the journal then is as it was before, or says [`JournalError::Broken`] from now on.
    pub fn append(&mut self, entry: &E) -> Result<u64, JournalError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// As [`Journal::append`], for entries that are written and made durable together. Returns the number of the last; that of
    /// the next one less if there are none.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append_all(&mut self, entries: &[E]) -> Result<u64, JournalError> {
        if let Some(reason) = &self.broken {
            return Err(JournalError::Broken {
                path: self.path(),
                reason: reason.clone(),
            });
        }
        let mut lines = Vec::new();
        let next = put(&mut lines, self.next, entries)?;
        if let Err(error) = self.file.write_all(&lines) {
            // Part of it may be there. Setting a length gives reserved room back, and is done only where it must.
            let as_before = (self.file.metadata()).is_ok_and(|file| file.len() == self.bytes);
            if !as_before && self.file.set_len(self.bytes).is_err() {
                self.broken = Some(error.to_string());
            }
            return Err(failed(&self.path(), "written", error));
        }
        self.bytes += lines.len() as u64;
        self.next = next;
        self.reserve.keep(&self.file, self.bytes);
        let durability = entries.iter().map(Entry::durability).max();
        if durability == Some(Durability::Durable) {
            self.sync()?;
        }
        Ok(next.saturating_sub(1))
    }

    /// Makes all entries durable.
    ///
    /// # Errors
    /// When the disk refuses. The journal is broken then: the kernel may have dropped the data not written, and call
    /// it written the next time, so that only a new file is certain.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|error| {
            self.broken = Some(error.to_string());
            failed(&self.path(), "written to the disk", error)
        })
    }

    /// Whether the journal has grown so much that it should be compacted: to 256 kB and to twice its size after a compaction.
    pub fn should_be_compacted(&self) -> bool {
        self.bytes >= SMALL_BYTES && self.bytes >= 2 * self.compact_bytes
    }

    /// Replaces all entries by these, durably and atomically: after a power cut the journal has either the old ones or
    /// these. The old file stays as `journal.old`. Fixes a broken journal.
    ///
    /// # Errors
    /// When the file system refuses; the journal is as it was then.
    pub fn compact(&mut self, entries: &[E]) -> Result<(), JournalError> {
        let (file, next, bytes) = write_new(&self.dir, self.next, entries.iter())?;
        keep(&self.dir, "journal.old")?;
        install(&self.dir)?;
        self.file = file;
        self.next = next;
        self.bytes = bytes;
        self.compact_bytes = bytes;
        self.broken = None;
        self.reserve = Reserve::default();
        self.reserve.keep(&self.file, bytes);
        Ok(())
    }

    /// It could not be compacted now, and grows on for a while.
    pub(super) fn put_off_compaction(&mut self) {
        self.compact_bytes = self.bytes;
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.dir.join("journal")
    }
}

fn failed(path: &Path, tried: &'static str, source: io::Error) -> JournalError {
    JournalError::System {
        path: path.to_owned(),
        tried,
        source,
    }
}

fn check<E: Entry>(path: &Path, header: &Header) -> Result<(), JournalError> {
    let newer = |what, found, known| JournalError::Newer {
        path: path.to_owned(),
        what,
        found,
        known,
    };
    if header.timecell_journal > FORM {
        return Err(newer("journal", header.timecell_journal, FORM));
    }
    if header.kind != E::KIND {
        return Err(JournalError::OtherKind {
            path: path.to_owned(),
            found: header.kind.clone(),
            expected: E::KIND,
        });
    }
    if header.version > E::VERSION {
        return Err(newer("entry", header.version, E::VERSION));
    }
    Ok(())
}

/// The bytes of a journal that this user has written; nobody else's is trusted.
///
/// # Errors
/// When it is another user's, no regular file or longer than any journal gets, or the system's error.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    ground::read(path, MOST_BYTES)
}

/// Opens a journal for appending, without its torn tail.
fn reopen<E>(path: &Path, loaded: &Loaded<E>) -> Result<File, JournalError> {
    let file = ground::append(path).map_err(|error| failed(path, "opened", error))?;
    if !loaded.dropped.is_empty() {
        file.set_len(loaded.whole_bytes as u64)
            .map_err(|error| failed(path, "cut to its last whole entry", error))?;
    }
    // Entries that a killed supervisor had written, and this one is about to act on.
    file.sync_all()
        .map_err(|error| failed(path, "written to the disk", error))?;
    Ok(file)
}

/// The lines of these entries from sequence number `next` on; returns the number after them.
fn put<'a, E: Entry + 'a>(
    lines: &mut Vec<u8>,
    mut next: u64,
    entries: impl IntoIterator<Item = &'a E>,
) -> Result<u64, JournalError> {
    for entry in entries {
        let json = json(entry)?;
        frame::write(lines, next, &json);
        next = next.saturating_add(1);
    }
    Ok(next)
}

fn json(entry: &impl serde::Serialize) -> Result<String, JournalError> {
    serde_json::to_string(entry).map_err(|error| JournalError::Entry {
        reason: error.to_string(),
    })
}

/// Writes `journal.new` with a header and these entries, and makes it durable. Returns it, the next number and its length.
fn write_new<'a, E: Entry + 'a>(
    dir: &Path,
    next: u64,
    entries: impl Iterator<Item = &'a E>,
) -> Result<(File, u64, u64), JournalError> {
    let mut lines = Vec::new();
    frame::write(&mut lines, next, &json(&Header::of::<E>())?);
    let next = put(&mut lines, next.saturating_add(1), entries)?;
    let path = dir.join("journal.new");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(&path, "replaced", error));
        }
        _ => {}
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| failed(&path, "made", error))?;
    file.write_all(&lines)
        .and_then(|()| file.sync_all())
        .map_err(|error| failed(&path, "written", error))?;
    Ok((file, next, lines.len() as u64))
}

/// Gives the present journal a second name, in place of another file. A rename of the journal itself would leave an instant
/// without one.
fn keep(dir: &Path, name: &str) -> Result<(), JournalError> {
    let (journal, link, kept) = (
        dir.join("journal"),
        dir.join("journal.link"),
        dir.join(name),
    );
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed(&link, "replaced", error));
        }
        _ => {}
    }
    match fs::hard_link(&journal, &link) {
        Ok(()) => fs::rename(&link, &kept).map_err(|error| failed(&kept, "made", error)),
        // FAT, which boards boot from, has no second names.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EOPNOTSUPP)) => {
            let copy = || io::copy(&mut ground::open(&journal)?, &mut ground::create(&kept)?);
            copy()
                .map(drop)
                .map_err(|error| failed(&kept, "made", error))
        }
        Err(error) => Err(failed(&link, "made", error)),
    }
}

/// Puts `journal.new` in place of the journal.
fn install(dir: &Path) -> Result<(), JournalError> {
    let path = dir.join("journal");
    fs::rename(dir.join("journal.new"), &path).map_err(|error| failed(&path, "replaced", error))?;
    sync_directory(dir)
}

fn sync_directory(dir: &Path) -> Result<(), JournalError> {
    // The parent of a relative path of one name.
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    File::open(dir)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| failed(dir, "written to the disk", error))
}
