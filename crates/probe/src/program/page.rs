//! The page on which a program reports: how it is made, which tasks stand on it, and their jobs.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;

use timecell_client::layout::{
    CLAIMED, CLOSED, Counters, Head, Identity, JobRecord, MAGIC, NAME_BYTES, RING, Ring, VERSION,
    counters_at, identity_at, page_bytes, ring_at,
};

use crate::control::Stage;
use crate::map::{Map, preallocated};

/// Tasks that a program may open.
pub(super) const SLOTS: usize = 8;

/// Makes a page for the program of a cell; with a closed gate it is held back at its first task.
///
/// # Errors
/// When the file is there already or the place does not allow it.
pub fn prepare_page(path: &Path, is_closed: bool) -> io::Result<()> {
    let gate = if is_closed { CLOSED } else { 0 };
    let file = preallocated(path, page_bytes(SLOTS) as u64)?;
    let mut head = [0; size_of::<Head>()];
    for (at, bytes) in [
        (std::mem::offset_of!(Head, magic), &MAGIC.to_ne_bytes()[..]),
        (std::mem::offset_of!(Head, version), &VERSION.to_ne_bytes()),
        (
            std::mem::offset_of!(Head, slots),
            &(SLOTS as u32).to_ne_bytes(),
        ),
        (std::mem::offset_of!(Head, generation), &1_u64.to_ne_bytes()),
        (std::mem::offset_of!(Head, gate), &gate.to_ne_bytes()),
    ] {
        head[at..at + bytes.len()].copy_from_slice(bytes);
    }
    file.write_all_at(&head, 0)
}

/// A task as its page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOnPage {
    /// Its name, without control characters.
    pub name: String,
    /// When its last jobs were released and when they ended, ns, in order.
    pub spans: Vec<(i64, i64)>,
}

/// The tasks on a page in the order in which they were opened; none while no task was.
///
/// # Errors
/// When the page cannot be read.
pub fn tasks_on(path: &Path) -> io::Result<Vec<TaskOnPage>> {
    let file = std::fs::File::open(path)?;
    let mut page = vec![0; page_bytes(SLOTS)];
    file.read_exact_at(&mut page, 0)?;
    let number = |at: usize| -> u64 {
        let bytes = page.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    // The lower half of a little-endian word, the only kind that timecell is built for.
    let word = |at: usize| number(at) as u32;
    let task = |slot: usize| {
        let identity = identity_at(SLOTS, slot);
        if word(identity + std::mem::offset_of!(Identity, state)) < CLAIMED {
            return None;
        }
        let length = word(identity + std::mem::offset_of!(Identity, name_bytes)) as usize;
        let name = identity + std::mem::offset_of!(Identity, name);
        let name = page.get(name..name + length.min(NAME_BYTES))?;
        let ended = number(counters_at(slot) + std::mem::offset_of!(Counters, ended));
        let span = |job: u64| {
            let record = ring_at(SLOTS, slot) + (job as usize % RING) * size_of::<JobRecord>();
            let at = |offset: usize| number(record + offset).cast_signed();
            let release_ns = at(std::mem::offset_of!(JobRecord, release_ns));
            (release_ns, at(std::mem::offset_of!(JobRecord, end_ns)))
        };
        // One place is left to the job that may run.
        let first = ended.saturating_sub(RING as u64 - 1);
        Some(TaskOnPage {
            name: String::from_utf8_lossy(name).replace(char::is_control, "?"),
            spans: (first..ended).map(span).collect(),
        })
    };
    Ok((0..SLOTS).filter_map(task).collect())
}

/// A task whose jobs are read.
pub(super) struct Watched {
    /// `None`: the one that was opened first.
    name: Option<String>,
    /// Its place on the page, once it was opened.
    slot: Option<usize>,
    /// Number of the first job that was not read yet.
    next: u64,
}

impl Watched {
    pub(super) fn of(name: Option<String>) -> Watched {
        Watched {
            name,
            slot: None,
            next: 0,
        }
    }

    /// Its place on the page; `None` until it was opened.
    fn find(&mut self, page: &Map) -> Option<usize> {
        let is_it = |slot: &usize| {
            // SAFETY: it lies within the mapping, whose length was checked, and is made of atomics only.
            let identity = unsafe {
                &*page
                    .as_ptr()
                    .add(identity_at(SLOTS, *slot))
                    .cast::<Identity>()
            };
            if identity.state.load(Acquire) < CLAIMED {
                return false;
            }
            self.name.as_ref().is_none_or(|name| {
                let length = identity.name_bytes.load(Acquire) as usize;
                let bytes = identity.name.iter().map(|byte| byte.load(Relaxed));
                bytes.take(length).eq(name.bytes())
            })
        };
        self.slot = self.slot.or_else(|| (0..SLOTS).find(is_it));
        self.slot
    }

    /// The jobs that are over and were not read yet.
    pub(super) fn look<'j>(
        &mut self,
        page: &Map,
        jobs: &'j mut [Job; RING],
    ) -> Result<&'j [Job], (Stage, i32)> {
        const LOST: (Stage, i32) = (Stage::Lost, 0);
        let Some(slot) = self.find(page) else {
            return Ok(&[]);
        };
        // SAFETY: both lie within the mapping, whose length was checked, and are made of atomics only.
        let (counters, ring) = unsafe {
            let at = |offset: usize| page.as_ptr().add(offset);
            let counters = &*at(counters_at(slot)).cast::<Counters>();
            (counters, &*at(ring_at(SLOTS, slot)).cast::<Ring>())
        };
        let ended = counters.ended.load(Acquire);
        let numbers = self.next..ended;
        if ended < self.next || ended - self.next > RING as u64 {
            return Err(LOST);
        }
        for (place, number) in jobs.iter_mut().zip(numbers.clone()) {
            let record = &ring.0[number as usize % RING];
            *place = Job {
                number: record.number.load(Relaxed),
                release_ns: record.release_ns.load(Relaxed),
                begin_ns: record.begin_ns.load(Relaxed),
                end_ns: record.end_ns.load(Relaxed),
            };
        }
        fence(Acquire);
        // Records written anew meanwhile are of later jobs.
        let begun = counters.begun.load(Relaxed);
        if !numbers.is_empty() && numbers.start + RING as u64 <= begun.saturating_sub(1) {
            return Err(LOST);
        }
        self.next = ended;
        let count = numbers.clone().count();
        let read = &jobs[..count];
        if read
            .iter()
            .zip(numbers)
            .any(|(job, number)| job.number != number)
        {
            return Err(LOST);
        }
        Ok(read)
    }

    /// Goes on with the newest jobs, where those before them were written over.
    pub(super) fn skip(&mut self, page: &Map) {
        let Some(slot) = self.find(page) else {
            return;
        };
        // SAFETY: as in `look`.
        let counters = unsafe { &*page.as_ptr().add(counters_at(slot)).cast::<Counters>() };
        // Room for some that are begun meanwhile.
        let newest = counters.ended.load(Acquire).saturating_sub(RING as u64 - 4);
        self.next = self.next.max(newest);
    }
}

/// A job as it was reported; `end_ns` 0: it was never ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) release_ns: i64,
    pub(super) begin_ns: i64,
    pub(super) end_ns: i64,
}
