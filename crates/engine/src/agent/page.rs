//! The memory that a cell's agent and its supervisor share: for each thread of the cell that has asked for a class, its
//! request; for each thread that the supervisor has matched with a task, its grant. It is a file of the cell's state, so
//! that the next supervisor finds it.
//!
//! A row belongs to the thread whose id, in the cell's pid namespace, it holds. Both sides may take a free row; the grant
//! is written by the supervisor, the request by the agent, and [`Row::state`] hands the grant over: the supervisor sets
//! it to [`GIVEN`] once the grant is written, the agent sets it to the outcome once the grant is in force.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use host::map::{Map, allocate};
use host::sched::{Class, SCHED_DEADLINE};

/// `TCAG`, then the version.
const MAGIC: u32 = 0x5443_4147;
const VERSION: u32 = 2;
/// Threads of a cell that have a row; further ones are treated like a thread without a task, and are counted.
pub const ROWS: usize = 1023;

/// Nothing was granted to the thread itself.
const OPEN: u32 = 0;
/// A grant is to be put in force.
const GIVEN: u32 = 1;
/// It is.
const IN_FORCE: u32 = 2;
/// The agent is putting it in force. A state of its own, so that a grant which is written meanwhile is not taken for this one; after an agent
/// that was killed, the next one does it again.
const TAKEN: u32 = 3;
/// The kernel refused it with this error number less [`REFUSED`].
const REFUSED: u32 = 1 << 16;

#[repr(C, align(64))]
struct Head {
    magic: AtomicU32,
    version: AtomicU32,
    /// Calls that were answered.
    calls: AtomicU64,
    /// Requests of threads that found no row.
    unnoted: AtomicU64,
    /// Bits of [`Excess`].
    excess: AtomicU32,
    /// Other than 0 while no thread of the cell may have a real-time class: it is shed.
    suspended: AtomicU32,
    /// Every row that was ever taken is among so many first ones: nobody has to read the others.
    used: AtomicU32,
}

#[repr(C, align(64))]
struct Row {
    /// 0: the row is free.
    thread: AtomicU32,
    state: AtomicU32,
    policy: AtomicU32,
    priority: AtomicU32,
    runtime_ns: AtomicU64,
    deadline_ns: AtomicU64,
    period_ns: AtomicU64,
    /// Policy that the thread has asked for, plus one; 0: none.
    asked_policy: AtomicU32,
    asked_priority: AtomicU32,
}

/// Refused requests of a cell beyond its grants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Excess(u32);

impl Excess {
    /// A real-time class, in a cell that has none to give.
    pub(super) const REAL_TIME: Excess = Excess(1);
    /// SCHED_DEADLINE.
    pub(super) const DEADLINE: Excess = Excess(2);
    /// Cpus of which none is the cell's.
    pub(super) const CPUS: Excess = Excess(4);
    /// An operation on a mutex with priority inheritance.
    pub(super) const INHERITANCE: Excess = Excess(8);
    /// Some of its cpus, for a thread that SCHED_DEADLINE keeps to all of them.
    pub(super) const FEWER_CPUS: Excess = Excess(16);
    /// Answers faster than they are given.
    pub(super) const CALLS: Excess = Excess(32);

    /// Whether a real-time class was asked for in a cell that has none to give.
    pub const fn is_real_time(self) -> bool {
        self.0 & Excess::REAL_TIME.0 != 0
    }

    /// Whether SCHED_DEADLINE was asked for.
    pub const fn is_deadline(self) -> bool {
        self.0 & Excess::DEADLINE.0 != 0
    }

    /// Whether a mutex with priority inheritance was asked for where there is none.
    pub const fn is_of_inheritance(self) -> bool {
        self.0 & Excess::INHERITANCE.0 != 0
    }

    /// Whether calls came in a loop, so that their answers were slowed down.
    pub const fn is_of_calls(self) -> bool {
        self.0 & Excess::CALLS.0 != 0
    }

    /// Whether some of the cell's cpus were asked for where SCHED_DEADLINE keeps threads to all of them.
    pub const fn is_of_fewer_cpus(self) -> bool {
        self.0 & Excess::FEWER_CPUS.0 != 0
    }

    /// Whether cpus were asked for of which none is the cell's.
    pub const fn is_of_cpus(self) -> bool {
        self.0 & Excess::CPUS.0 != 0
    }
}

/// The state of a thread's grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The thread has none of its own.
    Open,
    /// The agent has not put it in force yet.
    Given,
    /// It is in force, as far as the agent knows.
    InForce,
    /// The kernel refused it with this error number.
    Refused(i32),
}

/// A thread that has a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// Its id in the cell's pid namespace.
    pub thread: u32,
    /// The state of its grant.
    pub standing: Standing,
    /// The class that it has asked for last, or that was asked for it.
    pub asked: Option<Class>,
}

/// The page of one cell.
#[derive(Debug)]
pub struct Page(Map);

impl Page {
    /// Makes a page for a cell that is to be created.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn make(path: &Path) -> io::Result<Page> {
        let file = (OpenOptions::new().read(true).write(true))
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        allocate(&file, BYTES as u64)?;
        let page = Page(Map::of(&file)?);
        page.head().version.store(VERSION, Relaxed);
        page.head().magic.store(MAGIC, Release);
        Ok(page)
    }

    /// Opens the page of a cell that exists.
    ///
    /// # Errors
    /// The kernel's error, or that the file is no page of this version.
    pub(super) fn open(path: &Path) -> io::Result<Page> {
        let file: File = (OpenOptions::new().read(true).write(true))
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        if file.metadata()?.len() != BYTES as u64 {
            return Err(io::Error::other("it has another length"));
        }
        let page = Page(Map::of(&file)?);
        let head = page.head();
        match (head.magic.load(Acquire), head.version.load(Relaxed)) {
            (MAGIC, VERSION) => Ok(page),
            _ => Err(io::Error::other("it is no page of this version")),
        }
    }

    fn head(&self) -> &Head {
        // SAFETY: every page has the length of `BYTES`, and is used through atomics only.
        unsafe { &*self.0.as_ptr().cast::<Head>() }
    }

    fn all_rows(&self) -> &[Row] {
        // SAFETY: as above; the rows follow the head.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<Row>().add(1), ROWS) }
    }

    /// The rows that were ever taken.
    fn rows(&self) -> &[Row] {
        let used = self.head().used.load(SeqCst) as usize;
        &self.all_rows()[..used.min(ROWS)]
    }

    fn row(&self, thread: u32) -> Option<&Row> {
        (self.rows().iter()).find(|row| row.thread.load(Acquire) == thread)
    }

    fn row_or_new(&self, thread: u32) -> Option<&Row> {
        if let Some(row) = self.row(thread) {
            return Some(row);
        }
        let mut rows = (1..).zip(self.all_rows());
        let taken = rows.find(|(used, row)| {
            // Readers see this row before it is taken.
            self.head().used.fetch_max(*used, SeqCst);
            let taken = row.thread.compare_exchange(0, thread, SeqCst, Relaxed);
            taken.is_ok()
        });
        let (_, taken) = taken?;
        // The other side may have taken an earlier row for it meanwhile.
        let first = self.row(thread).unwrap_or(taken);
        if !std::ptr::eq(first, taken) {
            taken.thread.store(0, Release);
        }
        Some(first)
    }

    /// Grants a thread this class; whether there was a row for it. The agent acts when it is called for.
    pub(super) fn give(&self, thread: u32, class: &Class) -> bool {
        let Some(row) = self.row_or_new(thread) else {
            return false;
        };
        let (policy, priority, [runtime, deadline, period]) = numbers(class);
        row.policy.store(policy, Relaxed);
        row.priority.store(priority, Relaxed);
        row.runtime_ns.store(runtime, Relaxed);
        row.deadline_ns.store(deadline, Relaxed);
        row.period_ns.store(period, Relaxed);
        row.state.store(GIVEN, Release);
        true
    }

    /// Forgets all threads but these.
    pub(super) fn keep(&self, threads: impl Fn(u32) -> bool) {
        for row in self.rows() {
            let thread = row.thread.load(Acquire);
            if thread != 0 && !threads(thread) {
                row.state.store(OPEN, Relaxed);
                row.asked_policy.store(0, Relaxed);
                row.thread.store(0, Release);
            }
        }
    }

    /// All threads that have a row.
    pub(super) fn noted(&self) -> Vec<Noted> {
        let of = |row: &Row| {
            let thread = row.thread.load(Acquire);
            (thread != 0).then(|| Noted {
                thread,
                standing: match row.state.load(Acquire) {
                    OPEN => Standing::Open,
                    GIVEN | TAKEN => Standing::Given,
                    refused if refused >= REFUSED => {
                        Standing::Refused(i32::try_from(refused - REFUSED).unwrap_or(i32::MAX))
                    }
                    _ => Standing::InForce,
                },
                asked: row.asked(),
            })
        };
        self.rows().iter().filter_map(of).collect()
    }

    /// The requests in excess.
    pub(super) fn excess(&self) -> Excess {
        Excess(self.head().excess.load(Relaxed))
    }

    /// Calls that were answered, and requests of threads that found no row.
    pub(super) fn counts(&self) -> (u64, u64) {
        let head = self.head();
        (head.calls.load(Relaxed), head.unnoted.load(Relaxed))
    }

    /// From now on nothing is put into a real-time class, or again.
    pub(super) fn suspend(&self, suspended: bool) {
        self.head().suspended.store(suspended.into(), SeqCst);
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.head().suspended.load(SeqCst) != 0
    }

    /// The class that was granted to a thread itself.
    pub(super) fn granted(&self, thread: u32) -> Option<Class> {
        let row = self.row(thread)?;
        (row.state.load(Acquire) != OPEN).then(|| row.granted())
    }

    /// The policy that a thread has asked for last.
    pub(super) fn asked_policy(&self, thread: u32) -> Option<i32> {
        let policy = self.row(thread)?.asked_policy.load(Acquire);
        Some(policy.checked_sub(1)?.cast_signed())
    }

    /// Puts those grants in force that are not yet.
    pub(super) fn put_in_force(&self, mut set: impl FnMut(u32, &Class) -> Result<(), i32>) {
        for row in self.rows() {
            let thread = row.thread.load(Acquire);
            // Before the grant is read, and only if the row was not given up meanwhile: its next thread would find this grant.
            let taken = row.state.compare_exchange(GIVEN, TAKEN, SeqCst, Acquire);
            if thread == 0 || taken.is_err_and(|state| state != TAKEN) {
                continue;
            }
            let state = match set(thread, &row.granted()) {
                Ok(()) => IN_FORCE,
                Err(errno) => REFUSED + errno.unsigned_abs(),
            };
            // A grant that was written meanwhile stays to be put in force.
            let _ = row.state.compare_exchange(TAKEN, state, Release, Relaxed);
        }
    }

    /// Notes the class that a thread has asked for.
    pub(super) fn note(&self, thread: u32, policy: u32, priority: u32) {
        match self.row_or_new(thread) {
            Some(row) => {
                row.asked_priority.store(priority, Relaxed);
                row.asked_policy.store(policy + 1, Release);
            }
            None => {
                self.head().unnoted.fetch_add(1, Relaxed);
            }
        }
    }

    pub(super) fn note_excess(&self, excess: Excess) {
        self.head().excess.fetch_or(excess.0, Relaxed);
    }

    pub(super) fn count(&self) {
        self.head().calls.fetch_add(1, Relaxed);
    }
}

impl Row {
    fn granted(&self) -> Class {
        let priority = u8::try_from(self.priority.load(Relaxed)).unwrap_or(u8::MAX);
        match self.policy.load(Relaxed).cast_signed() {
            SCHED_DEADLINE => Class::Deadline {
                runtime_ns: self.runtime_ns.load(Relaxed),
                deadline_ns: self.deadline_ns.load(Relaxed),
                period_ns: self.period_ns.load(Relaxed),
            },
            policy => Class::of_policy(policy, priority),
        }
    }

    fn asked(&self) -> Option<Class> {
        let policy = self.asked_policy.load(Acquire).checked_sub(1)?;
        let priority = u8::try_from(self.asked_priority.load(Relaxed)).unwrap_or(u8::MAX);
        Some(Class::of_policy(policy.cast_signed(), priority))
    }
}

const BYTES: usize = size_of::<Head>() + ROWS * size_of::<Row>();
const _: () =
    assert!(size_of::<Head>() == 64 && size_of::<Row>() == 64 && BYTES.is_multiple_of(4096));

fn numbers(class: &Class) -> (u32, u32, [u64; 3]) {
    match class {
        Class::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        } => (
            SCHED_DEADLINE as u32,
            0,
            [*runtime_ns, *deadline_ns, *period_ns],
        ),
        other => {
            let (policy, priority) = other.policy();
            (policy.cast_unsigned(), priority.cast_unsigned(), [0; 3])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> (tempfile::TempDir, Page) {
        let dir = tempfile::tempdir().unwrap();
        let page = Page::make(&dir.path().join("page")).unwrap();
        (dir, page)
    }

    fn standing(page: &Page, thread: u32) -> Option<Standing> {
        let noted = page
            .noted()
            .into_iter()
            .find(|noted| noted.thread == thread);
        noted.map(|noted| noted.standing)
    }

    #[test]
    fn what_is_given_is_put_in_force_once_and_survives_its_writer() {
        let (dir, page) = page();
        let deadline = Class::Deadline {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
        };
        let classes = [
            Class::Fifo { priority: 80 },
            Class::RoundRobin { priority: 3 },
            deadline,
        ];
        for (thread, class) in (7..).zip(&classes) {
            assert!(page.give(thread, class));
            assert_eq!(standing(&page, thread), Some(Standing::Given));
        }
        // Somebody else opens it.
        let other = Page::open(&dir.path().join("page")).unwrap();
        let mut set = Vec::new();
        other.put_in_force(|thread, class| {
            set.push((thread, class.clone()));
            if thread == 8 {
                Err(libc::EBUSY)
            } else {
                Ok(())
            }
        });
        assert_eq!(set, (7..).zip(classes.clone()).collect::<Vec<_>>());
        assert_eq!(standing(&page, 7), Some(Standing::InForce));
        assert_eq!(standing(&page, 8), Some(Standing::Refused(libc::EBUSY)));
        other.put_in_force(|thread, _| panic!("{thread} is in force"));
        assert_eq!(page.granted(9), Some(classes[2].clone()));
        assert_eq!(page.granted(10), None);
    }

    #[test]
    fn what_is_given_while_another_is_put_in_force_is_not_lost() {
        let (_dir, page) = page();
        let fifo = |priority| Class::Fifo { priority };
        page.give(7, &fifo(85));
        page.put_in_force(|_, class| {
            assert_eq!(*class, fifo(85));
            page.give(7, &fifo(89));
            Ok(())
        });
        assert_eq!(standing(&page, 7), Some(Standing::Given));
        let mut set = None;
        page.put_in_force(|_, class| {
            set = Some(class.clone());
            Ok(())
        });
        assert_eq!(
            (set, standing(&page, 7)),
            (Some(fifo(89)), Some(Standing::InForce))
        );
    }

    #[test]
    fn what_an_agent_that_was_killed_had_begun_is_done_by_the_next() {
        let (_dir, page) = page();
        page.give(7, &Class::Other);
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            page.put_in_force(|_, _| panic!("killed"));
        }));
        assert!(died.is_err());
        assert_eq!(standing(&page, 7), Some(Standing::Given));
        page.put_in_force(|_, _| Ok(()));
        assert_eq!(standing(&page, 7), Some(Standing::InForce));
    }

    #[test]
    fn a_row_is_its_threads_until_it_is_forgotten() {
        let (_dir, page) = page();
        page.note(5, libc::SCHED_FIFO.cast_unsigned(), 99);
        let asked = Class::Fifo { priority: 99 };
        assert_eq!(page.noted()[0].asked, Some(asked));
        assert_eq!(
            (page.asked_policy(5), standing(&page, 5)),
            (Some(libc::SCHED_FIFO), Some(Standing::Open))
        );
        // Also while its grant is put in force.
        page.give(5, &Class::Other);
        page.put_in_force(|_, _| {
            page.keep(|thread| thread != 5);
            Ok(())
        });
        assert!(page.noted().is_empty() && page.granted(5).is_none());
        page.note(5, libc::SCHED_RR.cast_unsigned(), 1);
        assert_eq!(standing(&page, 5), Some(Standing::Open));
    }

    #[test]
    fn a_full_page_notes_no_more_and_says_so() {
        let (_dir, page) = page();
        let rows = u32::try_from(ROWS).unwrap();
        for thread in 1..=rows {
            assert!(page.give(thread, &Class::Other));
        }
        assert!(!page.give(rows + 1, &Class::Other));
        page.note(rows + 1, 1, 1);
        assert_eq!((page.counts(), page.noted().len()), ((0, 1), ROWS));
    }

    #[test]
    fn both_sides_may_take_rows_at_the_same_time() {
        let (dir, page) = page();
        let other = Page::open(&dir.path().join("page")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..400).for_each(|thread| assert!(page.give(thread * 2, &Class::Other)))
            });
            scope.spawn(|| (1..400).for_each(|thread| other.note(thread * 2 + 1, 1, 9)));
        });
        let mut threads: Vec<u32> = page.noted().iter().map(|noted| noted.thread).collect();
        threads.sort_unstable();
        assert_eq!(threads, (2..800).collect::<Vec<u32>>());
    }

    #[test]
    fn another_file_is_no_page() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page");
        for bytes in [0, BYTES] {
            std::fs::write(&path, vec![0; bytes]).unwrap();
            assert!(Page::open(&path).is_err());
        }
    }
}
