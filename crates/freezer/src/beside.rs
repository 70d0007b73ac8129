//! A thread beside the enforcing one does the work that may have to wait for strangers: it writes `cgroup.freeze`, for
//! which the kernel takes a lock of the whole machine, and opens files by name. A user with a delegated group of many
//! groups keeps that lock for tens of milliseconds at a time by freezing it in a loop.
//!
//! A group whose threads are lowered ([`crate::lower`]) is held. Freezing it as well is an extra: it stops threads that a
//! mutex of priority inheritance raises, and those of class IDLE. A freeze that waits for the lock cannot be called back,
//! and would become a gap of the next budget. So it is written only if twice the longest wait of the last
//! [`MOST_WAITS`] writes is over before that: once for the freeze and once for the thaw, which is written that long
//! before the budget comes. Where it is not written, a thaw of the thawed group is, whose wait is the next measurement.
//! So the first freeze that meets such a stranger may cost a gap, and those after it do not, until that many budgets have
//! ended without one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use host::sched::{self, Class};

use crate::keeper::KeeperError;
use crate::lists::Lists;
use crate::stats::MOST_GROUPS;
use crate::sys::{self, Waiting};

/// Writes whose waits are remembered.
const MOST_WAITS: usize = 100;
/// Nothing is frozen before so many waits are known.
const FEWEST_WAITS: usize = 10;
/// How late this thread itself may wake up to thaw, ns.
const MARGIN_NS: i64 = 100_000;
/// It looks at least this often whether it is to end, ns.
const LONGEST_SLEEP_NS: i64 = 1_000_000_000;
/// Its stack, bytes; all of it is locked.
const STACK_BYTES: usize = 64 * 1024;

/// There is a budget.
const UP: i64 = i64::MIN;

/// One group, as both threads see it.
#[derive(Debug)]
pub(crate) struct Beside {
    dir: File,
    freeze: File,
    /// When the next budget comes, ns; [`UP`]: there is one.
    down_until_ns: AtomicI64,
    /// Budgets that have ended.
    ended: AtomicU64,
    /// It has to be frozen at any cost.
    must_freeze: AtomicBool,
    /// It is frozen, or is being frozen or thawed.
    is_frozen: AtomicBool,
    /// Others made or removed groups in it.
    is_stale: AtomicBool,
    lists: Mutex<Mailbox>,
    /// Locked while a file is written.
    writer: Mutex<Writer>,
}

/// Files that were opened anew, for the enforcing thread; afterwards those that it had before, to be closed here.
#[derive(Debug, Default)]
struct Mailbox {
    is_new: bool,
    lists: Option<Box<Lists>>,
}

#[derive(Debug, Default)]
struct Writer {
    /// The last end of a budget for which something was written.
    seen: u64,
}

/// The waiting times of the last writes, ns.
#[derive(Debug)]
struct Waits {
    last_ns: [i64; MOST_WAITS],
    count: usize,
    /// Of the writing thread; `None` in tests.
    rank: Option<Rank>,
}

/// Where the thread runs. A thread that waits for a lock of the kernel spins as long as its owner runs, so it only
/// measures below all cells, wherever there is room.
#[derive(Debug)]
struct Rank {
    cpu: u32,
    priority: u8,
    all: Vec<u32>,
}

/// The priority of a write that only measures, FIFO: so that a thread that waits for its lock waits for no ordinary work.
const MEASURING: u8 = 1;

impl Rank {
    fn step_aside(&self) {
        // Where either is refused it stays, which costs cells time and is safe.
        let _ = sched::set_affinity(0, &self.all);
        let priority = MEASURING;
        let _ = sched::set_class(0, &Class::Fifo { priority });
    }

    fn come_back(&self) -> Result<(), sched::SchedError> {
        let priority = self.priority;
        sched::set_class(0, &Class::Fifo { priority })?;
        sched::set_affinity(0, &[self.cpu])
    }
}

impl Waits {
    const fn new() -> Waits {
        Waits {
            last_ns: [0; MOST_WAITS],
            count: 0,
            rank: None,
        }
    }

    fn note(&mut self, ns: i64) {
        self.last_ns[self.count % MOST_WAITS] = ns;
        self.count += 1;
    }

    /// Notes how long a write waits on which nobody else does.
    fn measure(&mut self, write: impl FnOnce()) {
        if let Some(rank) = &self.rank {
            rank.step_aside();
        }
        let began_ns = sys::now_ns();
        write();
        self.note(sys::now_ns() - began_ns);
        if let Some(rank) = &self.rank {
            let _ = rank.come_back();
        }
    }

    fn longest_ns(&self) -> i64 {
        self.last_ns.iter().copied().max().unwrap_or(0)
    }

    /// When a group is to be thawed, so that it is by then.
    fn thaw_at_ns(&self, until_ns: i64) -> i64 {
        until_ns.saturating_sub(self.longest_ns() + MARGIN_NS)
    }

    fn may_freeze(&self, now_ns: i64, until_ns: i64) -> bool {
        self.count >= FEWEST_WAITS && now_ns + self.longest_ns() < self.thaw_at_ns(until_ns)
    }
}

impl Beside {
    pub(crate) fn new(dir: File, freeze: File) -> Beside {
        Beside {
            dir,
            freeze,
            down_until_ns: AtomicI64::new(UP),
            ended: AtomicU64::new(0),
            must_freeze: AtomicBool::new(false),
            is_frozen: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
            lists: Mutex::default(),
            writer: Mutex::default(),
        }
    }

    /// Its directory.
    pub(crate) fn dir(&self) -> &File {
        &self.dir
    }

    /// Writes to `cgroup.freeze`, and so may wait for strangers.
    pub(crate) fn write(&self, is_frozen: bool) -> io::Result<()> {
        let text: &[u8] = if is_frozen { b"1" } else { b"0" };
        self.freeze.write_at(text, 0).map(drop)
    }

    /// Nobody knows whether it is frozen.
    pub(crate) fn doubt(&self) {
        self.is_frozen.store(true, SeqCst);
    }

    /// Its budget has ended, and the next one comes then. Where not all its threads are lowered, it `must` be frozen.
    pub(crate) fn go_down(&self, until_ns: i64, must: bool) {
        self.must_freeze.store(must, SeqCst);
        self.down_until_ns.store(until_ns, SeqCst);
        self.ended.fetch_add(1, SeqCst);
    }

    /// It has a budget; whether it may still have to be thawed.
    pub(crate) fn go_up(&self) -> bool {
        self.down_until_ns.store(UP, SeqCst);
        self.is_frozen()
    }

    /// Whether it is frozen, or about to be or to be thawed.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen.load(SeqCst)
    }

    /// Its lists have to be opened anew.
    pub(crate) fn ask_for_lists(&self) {
        self.is_stale.store(true, SeqCst);
    }

    /// Exchanges these lists for those that were opened anew, if there are such. Does not wait.
    pub(crate) fn take_lists(&self, own: &mut Box<Lists>) -> bool {
        let Ok(mut mailbox) = self.lists.try_lock() else {
            return false;
        };
        let Mailbox {
            is_new: true,
            lists: Some(new),
        } = &mut *mailbox
        else {
            return false;
        };
        std::mem::swap(new, own);
        mailbox.is_new = false;
        true
    }

    /// Thaws it, once a write under way is done: it has a budget, so nothing freezes it after that.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        let _writer = lock(&self.writer);
        self.is_frozen.store(false, SeqCst);
        self.write(false)
    }

    /// Makes the write that is due; returns when the next may be due, ns.
    fn act(&self, waits: &mut Waits) -> Option<i64> {
        let mut writer = lock(&self.writer);
        let ended = self.ended.load(SeqCst);
        let until_ns = self.down_until_ns.load(SeqCst);
        let now_ns = sys::now_ns();
        let has_ended = std::mem::replace(&mut writer.seen, ended) != ended;
        if self.is_frozen() {
            // Also where the next budget was used up meanwhile.
            let thaw_at_ns = waits.thaw_at_ns(until_ns);
            if until_ns != UP && now_ns < thaw_at_ns {
                return Some(thaw_at_ns);
            }
        } else if has_ended
            && until_ns != UP
            && (self.must_freeze.load(SeqCst) || waits.may_freeze(now_ns, until_ns))
        {
            // In this order: the giver of a budget sees that it has to be thawed, or is seen here.
            self.is_frozen.store(true, SeqCst);
            if self.down_until_ns.load(SeqCst) == until_ns {
                let _ = self.write(true);
                waits.note(sys::now_ns() - now_ns);
            }
            return Some(match self.down_until_ns.load(SeqCst) {
                UP => now_ns,
                until_ns => waits.thaw_at_ns(until_ns),
            });
        } else if !has_ended {
            return None;
        } else {
            waits.measure(|| drop(self.write(false)));
            return None;
        }
        // One that is gone needs it no more.
        let _ = self.write(false);
        waits.note(sys::now_ns() - now_ns);
        self.is_frozen.store(false, SeqCst);
        None
    }

    /// Measures until as many waits are known as a freeze needs, so that the first budget is followed by one.
    fn measure(&self, waits: &mut Waits) {
        let _writer = lock(&self.writer);
        while waits.count < FEWEST_WAITS && !self.is_frozen() {
            waits.measure(|| drop(self.write(false)));
        }
    }

    /// Opens the lists anew if that was asked for; whether it was.
    fn renew(&self) -> bool {
        let is_asked = self.is_stale.swap(false, SeqCst);
        if is_asked {
            let new = Box::new(Lists::open(&self.dir));
            *lock(&self.lists) = Mailbox {
                is_new: true,
                lists: Some(new),
            };
        }
        is_asked
    }
}

/// The thread, and the groups that it sees to.
#[derive(Debug)]
pub(crate) struct Helper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    bell: File,
    /// Of the enforcing thread.
    other_bell: Arc<File>,
    groups: [Mutex<Option<Arc<Beside>>>; MOST_GROUPS],
    /// It leaves the groups of a keeper that stands by alone.
    is_at_work: AtomicBool,
    ends: AtomicBool,
    /// Cpu time of the thread, ns.
    cpu_ns: AtomicI64,
}

impl Helper {
    /// Of an enforcing thread that hears this bell; its own thread is not started yet.
    pub(crate) fn new(other_bell: Arc<File>) -> io::Result<Helper> {
        let shared = Shared {
            bell: sys::event_file()?,
            other_bell,
            groups: [const { Mutex::new(None) }; MOST_GROUPS],
            is_at_work: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            cpu_ns: AtomicI64::new(0),
        };
        Ok(Helper {
            shared: Arc::new(shared),
            thread: None,
        })
    }

    /// Starts the thread, with FIFO `priority` on this cpu, which may be the calling thread's.
    ///
    /// # Errors
    /// If it cannot be started, or does not get these.
    pub(crate) fn start(&mut self, cpu: u32, priority: u8) -> Result<(), KeeperError> {
        self.end();
        let shared = Arc::clone(&self.shared);
        shared.ends.store(false, SeqCst);
        let waiting = Waiting::new().map_err(KeeperError::Waiting)?;
        waiting.add(&shared.bell, 0).map_err(KeeperError::Waiting)?;
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("beside {cpu}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let all = host::cpus::possible().unwrap_or_else(|_| vec![cpu]);
                let rank = Rank { cpu, priority, all };
                let prepared = rank.come_back();
                let is_prepared = prepared.is_ok();
                let _ = tell.send(prepared);
                if is_prepared {
                    shared.serve(&waiting, rank);
                }
            });
        self.thread = Some(thread.map_err(KeeperError::Waiting)?);
        Ok(told.recv().map_err(|_| KeeperError::Ended)??)
    }

    /// Cpu time of the thread, ns.
    pub(crate) fn cpu_ns(&self) -> i64 {
        self.shared.cpu_ns.load(SeqCst)
    }

    /// From now on it makes the writes that are due.
    pub(crate) fn go_to_work(&self) {
        self.shared.is_at_work.store(true, SeqCst);
        self.ring();
    }

    /// Which group is at a place.
    pub(crate) fn set(&self, place: usize, group: Option<Arc<Beside>>) {
        *lock(&self.shared.groups[place]) = group;
    }

    /// Something may be due. Does not wait.
    pub(crate) fn ring(&self) {
        ring(&self.shared.bell);
    }

    /// Ends the thread, once its write under way is done.
    pub(crate) fn end(&mut self) {
        self.shared.is_at_work.store(false, SeqCst);
        self.shared.ends.store(true, SeqCst);
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, waiting: &Waiting, rank: Rank) {
        let mut waits = Waits::new();
        waits.rank = Some(rank);
        while !self.ends.load(SeqCst) {
            let mut next_ns = sys::now_ns() + LONGEST_SLEEP_NS;
            let groups = || self.groups.iter().filter_map(|group| lock(group).clone());
            if self.is_at_work.load(SeqCst) {
                groups().for_each(|group| group.measure(&mut waits));
                let next = groups().filter_map(|group| group.act(&mut waits));
                next_ns = next.fold(next_ns, i64::min);
            }
            // Last, because it may wait as well.
            let renewed = groups().filter(|group| group.renew()).count();
            if renewed > 0 {
                ring(&self.other_bell);
            }
            self.cpu_ns.store(sys::thread_cpu_ns(), SeqCst);
            let mut rung = false;
            if (waiting.wait(next_ns - sys::now_ns(), |_| rung = true)).is_err() {
                return;
            }
            if rung {
                let mut count = [0u8; 8];
                let _ = io::Read::read(&mut &self.bell, &mut count);
            }
        }
    }
}

fn ring(bell: &File) {
    // Full only if it is about to be heard anyway.
    let _ = io::Write::write(&mut &*bell, &1u64.to_ne_bytes());
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
