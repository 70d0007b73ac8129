//! The file of a page: created, opened, scanned.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use host::file::gone;
use host::map::allocate;
use timecell_client::layout::{self, BUCKETS, DECLARED, Head, Identity, MAGIC, MAX_SLOTS, VERSION};
use timecell_client::{Name, now_ns};

use super::counters::{self, RawCounters, RawResponses, RawRing};
use super::interpret::{Known, interpret};
use super::{News, PageError, Totals};

/// Slots of a page for a cell that declares no tasks: its application names them.
const UNDECLARED_SLOTS: usize = 8;

/// How long the memory of the page before is waited for.
const MOMENT: Duration = Duration::from_millis(100);

/// A task as the page is to show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its deadline relative to the release in ns; `None`: the application counts no late jobs.
    pub deadline_ns: Option<i64>,
}

/// The supervisor's end of one cell's page.
#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    file: File,
    declared: usize,
    known: Vec<Known>,
    /// Counters of all slots at the last scan, and those of the current scan.
    last: Vec<u8>,
    read: Vec<u8>,
}

impl Page {
    /// Number of slots of a page for this many declared tasks.
    ///
    /// # Errors
    /// When they are too many.
    pub fn slots(tasks: usize) -> Result<usize, PageError> {
        match tasks {
            0 => Ok(UNDECLARED_SLOTS),
            1..=MAX_SLOTS => Ok(tasks),
            _ => Err(PageError::TooManyTasks { tasks }),
        }
    }

    /// Creates the page of a cell that is about to be started for the `generation`th time, replacing one that may be
    /// there. It belongs to `owner`, user and group as the host knows them, and nobody else can open it. Its memory is
    /// allocated at once, so that a full machine cannot kill the application by SIGBUS.
    ///
    /// # Errors
    /// When the place does not allow it, or a name or the number of tasks cannot be held.
    pub fn create(
        path: &Path,
        tasks: &[Declared],
        generation: u64,
        owner: Option<(u32, u32)>,
    ) -> Result<Page, PageError> {
        let slots = Page::slots(tasks.len())?;
        let bytes = image(tasks, slots, generation)?;
        let failed = |tried| move |source| system(path, tried, source);
        let file = make(path, bytes.len())?;
        file.write_all_at(&bytes, 0).map_err(failed("written"))?;
        if let Some((user, group)) = owner {
            fchown(&file, Some(user), Some(group)).map_err(failed("given to its user"))?;
        }
        Ok(Page::of(path, file, tasks.len(), slots))
    }

    /// Opens the page of a cell that an earlier supervisor has started. Jobs that have already ended are not reported
    /// again.
    ///
    /// # Errors
    /// When there is no such file, it is something else by now, or it is too short for these tasks.
    pub fn open(path: &Path, tasks: usize) -> Result<Page, PageError> {
        let slots = Page::slots(tasks)?;
        let failed = |tried| move |source| system(path, tried, source);
        // Not blocking: the cell could have put a lease on its file, or a FIFO in its place.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(failed("opened"))?;
        if !file.metadata().map_err(failed("examined"))?.is_file() {
            let path = path.to_owned();
            return Err(PageError::NotAFile { path });
        }
        let mut page = Page::of(path, file, tasks, slots);
        page.read_counters()?;
        std::mem::swap(&mut page.last, &mut page.read);
        let (counters, _) = page.last.as_chunks();
        for (known, counters) in page.known.iter_mut().zip(counters) {
            known.totals = counters::totals(counters);
            known.next = known.totals.ended;
        }
        Ok(page)
    }

    fn of(path: &Path, file: File, declared: usize, slots: usize) -> Page {
        let counters = vec![0; slots * size_of::<RawCounters>()];
        Page {
            path: path.to_owned(),
            file,
            declared,
            known: vec![Known::default(); slots],
            last: counters.clone(),
            read: counters,
        }
    }

    /// The changes in the slots since the last scan; slots without news are left out. One system call if there is no news
    /// at all.
    ///
    /// # Errors
    /// When the cell has cut the page short, or it cannot be read.
    pub fn scan(&mut self) -> Result<Vec<News>, PageError> {
        self.read_counters()?;
        let mut all = Vec::new();
        if self.read == self.last {
            return Ok(all);
        }
        fence(Ordering::Acquire);
        let (last, _) = self.last.as_chunks::<{ size_of::<RawCounters>() }>();
        let (read, _) = self.read.as_chunks::<{ size_of::<RawCounters>() }>();
        let slots = self.known.len();
        for (slot, ((last, first), known)) in last.iter().zip(read).zip(&mut self.known).enumerate()
        {
            if last == first {
                continue;
            }
            let mut ring: RawRing = [0; size_of::<RawRing>()];
            read_at(
                &self.path,
                &self.file,
                &mut ring,
                layout::ring_at(slots, slot),
            )?;
            fence(Ordering::Acquire);
            let mut second: RawCounters = [0; size_of::<RawCounters>()];
            read_at(
                &self.path,
                &self.file,
                &mut second,
                layout::counters_at(slot),
            )?;
            let news = interpret(known, first, &ring, &second, now_ns());
            all.push(News { slot, ..news });
        }
        std::mem::swap(&mut self.last, &mut self.read);
        Ok(all)
    }

    /// The application's own counts of each slot, as they are now; does not affect the next [`Page::scan`].
    ///
    /// # Errors
    /// When the cell has cut the page short, or it cannot be read.
    pub fn totals(&self) -> Result<Vec<Totals>, PageError> {
        let mut raw = vec![0; self.read.len()];
        read_at(&self.path, &self.file, &mut raw, layout::counters_at(0))?;
        let (counters, _) = raw.as_chunks();
        Ok(counters.iter().map(counters::totals).collect())
    }

    /// The jobs of each slot by their response times, bucket by bucket, as they are now; an application with an earlier client
    /// leaves all at 0.
    ///
    /// # Errors
    /// When the page is too short for them, as that of an earlier timecell, or it cannot be read.
    pub fn responses(&self) -> Result<Vec<[u64; BUCKETS]>, PageError> {
        let slots = self.known.len();
        let mut raw = vec![0; slots * size_of::<RawResponses>()];
        let at = layout::responses_at(slots, 0);
        read_at(&self.path, &self.file, &mut raw, at)?;
        let (each, _) = raw.as_chunks();
        Ok(each.iter().map(counters::buckets).collect())
    }

    /// For each declared task, the id in the cell of the thread that begins its jobs; 0: the application does not say.
    ///
    /// # Errors
    /// When the cell has cut the page short, or it cannot be read.
    pub fn threads(&self) -> Result<Vec<u32>, PageError> {
        let slots = self.known.len();
        (0..self.declared.min(slots))
            .map(|slot| {
                let mut raw = [0; size_of::<u32>()];
                let at = layout::identity_at(slots, slot) + offset_of!(Identity, thread);
                read_at(&self.path, &self.file, &mut raw, at)?;
                Ok(u32::from_ne_bytes(raw))
            })
            .collect()
    }

    /// Names that the application has given to the slots of a page without declared tasks. Control characters and invalid
    /// UTF-8 are replaced.
    ///
    /// # Errors
    /// When the cell has cut the page short, or it cannot be read.
    pub fn claimed_names(&self) -> Result<Vec<Option<String>>, PageError> {
        if self.declared > 0 {
            return Ok(Vec::new());
        }
        let slots = self.known.len();
        (0..slots)
            .map(|slot| {
                let mut raw = [0; size_of::<Identity>()];
                let at = layout::identity_at(slots, slot);
                read_at(&self.path, &self.file, &mut raw, at)?;
                Ok(claimed_name(&raw))
            })
            .collect()
    }

    /// Where the page is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read_counters(&mut self) -> Result<(), PageError> {
        read_at(
            &self.path,
            &self.file,
            &mut self.read,
            layout::counters_at(0),
        )
    }
}

fn system(path: &Path, tried: &'static str, source: io::Error) -> PageError {
    PageError::System {
        path: path.to_owned(),
        tried,
        source,
    }
}

fn read_at(path: &Path, file: &File, buffer: &mut [u8], at: usize) -> Result<(), PageError> {
    file.read_exact_at(buffer, at as u64).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return PageError::Cut {
                path: path.to_owned(),
                needed_bytes: at + buffer.len(),
            };
        }
        system(path, "read", error)
    })
}

/// Recreates the file, with its memory. A process that any thread is starting may still have the previous one for a
/// moment, between fork and exec, and the place has no room for two.
fn make(path: &Path, bytes: usize) -> Result<File, PageError> {
    let end = Instant::now() + MOMENT;
    loop {
        gone(std::fs::remove_file(path)).map_err(|error| system(path, "replaced", error))?;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let (tried, error) = match opened {
            Err(error) => ("made", error),
            Ok(file) => match allocate(&file, bytes as u64) {
                Ok(()) => return Ok(file),
                Err(error) => ("given its memory", error),
            },
        };
        if error.kind() != io::ErrorKind::StorageFull || Instant::now() > end {
            return Err(system(path, tried, error));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A new page, byte for byte.
fn image(tasks: &[Declared], slots: usize, generation: u64) -> Result<Vec<u8>, PageError> {
    use std::mem::offset_of;
    let mut page = vec![0; layout::page_bytes(slots)];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_ne_bytes();
    put(offset_of!(Head, magic), &MAGIC.to_ne_bytes());
    put(offset_of!(Head, version), &VERSION.to_ne_bytes());
    put(offset_of!(Head, slots), &count(slots));
    put(offset_of!(Head, generation), &generation.to_ne_bytes());
    for (slot, task) in tasks.iter().enumerate() {
        if !Name::is_good(&task.name) {
            let name = task.name.clone();
            return Err(PageError::BadName { name });
        }
        let at = layout::identity_at(slots, slot);
        put(at + offset_of!(Identity, state), &DECLARED.to_ne_bytes());
        let deadline_ns = task.deadline_ns.unwrap_or(0);
        put(
            at + offset_of!(Identity, deadline_ns),
            &deadline_ns.to_ne_bytes(),
        );
        put(
            at + offset_of!(Identity, name_bytes),
            &count(task.name.len()),
        );
        put(at + offset_of!(Identity, name), task.name.as_bytes());
    }
    Ok(page)
}

fn claimed_name(raw: &[u8; size_of::<Identity>()]) -> Option<String> {
    use std::mem::offset_of;
    let number = |at: usize| {
        let bytes = raw[at..].first_chunk().copied().unwrap_or_default();
        u32::from_ne_bytes(bytes)
    };
    if number(offset_of!(Identity, state)) != layout::CLAIMED {
        return None;
    }
    let length = number(offset_of!(Identity, name_bytes)) as usize;
    let name = &raw[offset_of!(Identity, name)..];
    let name = String::from_utf8_lossy(&name[..length.min(name.len())]);
    Some(name.replace(char::is_control, "?"))
}
