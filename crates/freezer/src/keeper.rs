//! The enforcing thread of one cpu: it holds any number of groups to their budgets.
//!
//! Once [`Keeper::run`] has begun, it allocates nothing, its memory is locked, it waits for no lock that strangers hold for
//! long (but for groups that are to be frozen, [`crate::Stop`]), and it sleeps until the next instant at which something may be due. Groups are added and removed meanwhile through a [`Handle`].
//!
//! With a home it records its progress on a page, and can stand by for another thread that does: it has the groups open
//! and does nothing to them until it is told that the other one is dead.

mod error;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use host::sched::{self, Class};
use rustix::mm::{MlockAllFlags, mlockall};

use crate::beside::Helper;
use crate::counter::Senses;
use crate::group::{Group, Stop};
use crate::lower::Table;
use crate::page::{Lane, NEVER, Page, Which};
use crate::proof;
use crate::rule::Reservation;
use crate::slot::{Came, Place, Slot};
pub use crate::stats::Id;
use crate::stats::{MOST_GROUPS, Stats, add};
use crate::sys::{self, Waiting};
pub use error::KeeperError;

/// The priority of the enforcing thread, FIFO: above all cells.
pub const PRIORITY: u8 = 98;
/// Goes round at least this often, ns: groups without a period are looked at, and others see that the thread lives.
const LONGEST_SLEEP_NS: i64 = 1_000_000_000;
/// How far apart periods begin on cpus next to each other, ns.
const APART_NS: i64 = 137_000;
/// Requests that may wait.
const REQUESTS: usize = 16;
/// The number of the requests' file among those waited for.
const REQUESTED: u64 = u64::MAX;
/// A keeper that stands by looks so often whether it is still to, ns.
const STANDING_BY_NS: i64 = 1_000_000_000;

/// How a group gets into its slot.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// With its full budget; at a given place with a given number, else at the first that is free.
    Fresh(Reservation, Option<(usize, u64)>),
    /// As the page says.
    Resumed(usize, u64),
}

enum Request {
    Add(Box<Group>, Stop, Begin, SyncSender<Result<Id, KeeperError>>),
    Change(Id, Reservation, SyncSender<Result<(), KeeperError>>),
    Remove(Id, SyncSender<Result<Removed, KeeperError>>),
}

/// A group that is no longer in a slot.
struct Removed {
    group: Box<Group>,
    /// Where its page lists it, if it was this keeper's to hold, and still has to be finished.
    held: Option<Option<(Arc<Page>, usize)>>,
}

impl Removed {
    /// Gives everything back, and then takes it from the page: a frozen group that nobody knows of would stay frozen. May
    /// wait for strangers.
    fn finish(mut self) {
        if let Some(on_page) = self.held {
            // One that is gone needs nothing.
            let _ = self.group.finish();
            if let Some((page, place)) = on_page {
                page.group(place).dismiss();
            }
        }
    }
}

/// Adds and removes groups of a keeper that runs, from any thread.
#[derive(Debug, Clone)]
pub struct Handle {
    requests: SyncSender<Request>,
    bell: Arc<std::fs::File>,
    cpu: u32,
    senses: Senses,
    stats: Arc<Stats>,
    page: Option<Arc<Page>>,
}

/// Where a keeper records its state, and its own lane there.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) page: Arc<Page>,
    pub(crate) lane: usize,
    /// Wakes the watcher.
    pub(crate) bell: Arc<std::fs::File>,
    pub(crate) came: Came,
}

impl Home {
    fn lane(&self) -> &Lane {
        self.page.lane(self.lane)
    }

    /// Promises to beat again by then, says until when nobody has to look at it before, and tells the watcher if either is
    /// before it looks.
    fn promise(&self, at_ns: i64, slots: &[Option<Slot>]) {
        let mut unlooked_ns = [NEVER; 2];
        for (ns, in_period) in slots.iter().flatten().filter_map(Slot::unlooked_ns) {
            let first_ns = &mut unlooked_ns[usize::from(!in_period)];
            *first_ns = ns.min(*first_ns);
        }
        let lane = self.lane();
        for (place, ns) in lane.unlooked_ns.iter().zip(unlooked_ns) {
            place.store(ns, Ordering::SeqCst);
        }
        lane.beat.promise(at_ns);
        // Where that has passed, they look now and then already.
        let now_ns = sys::now_ns();
        let ahead = unlooked_ns.into_iter().filter(|ns| *ns > now_ns);
        let first_ns = ahead.fold(at_ns, i64::min);
        let watched_ns = self.page.watching().promised_ns();
        if watched_ns > first_ns.saturating_add(crate::page::PATIENCE_NS) {
            let _ = io::Write::write(&mut &*self.bell, &1u64.to_ne_bytes());
        }
    }
}

impl Handle {
    /// Holds the group whose directory is `path` to a budget from now on, full at the beginning. Waits until the keeper
    /// runs and has done it.
    ///
    /// # Errors
    /// [`KeeperError`]; nothing of the group has changed then.
    pub fn add(
        &self,
        path: &Path,
        stop: Stop,
        reservation: Reservation,
    ) -> Result<Id, KeeperError> {
        let group = Box::new(Group::open(path, self.cpu, &self.senses)?);
        self.add_group(group, stop, Begin::Fresh(reservation, None))
    }

    /// As [`Handle::add`], at a place of the page that is free and under a new number of it.
    pub(crate) fn add_at(
        &self,
        place: usize,
        id: u64,
        (path, stop): (&Path, Stop),
        reservation: Reservation,
    ) -> Result<Id, KeeperError> {
        let group = self.open(path, place)?;
        self.add_group(group, stop, Begin::Fresh(reservation, Some((place, id))))
    }

    /// Takes a group from the page; holds it from the state recorded there, once the keeper no longer stands by.
    pub(crate) fn take_up(&self, place: usize, which: &Which) -> Result<Id, KeeperError> {
        let group = self.open(&which.path, place)?;
        self.add_group(group, which.stop, Begin::Resumed(place, which.id))
    }

    fn open(&self, path: &Path, place: usize) -> Result<Box<Group>, KeeperError> {
        let table = match &self.page {
            Some(page) => Table::Page(Arc::clone(page), place),
            None => Table::Own(Box::new(crate::page::LowerTable::new())),
        };
        let group = Group::open_with(path, self.cpu, &self.senses, table)?;
        Ok(Box::new(group))
    }

    fn add_group(&self, group: Box<Group>, stop: Stop, begin: Begin) -> Result<Id, KeeperError> {
        let (tell, told) = sync_channel(1);
        self.ask(Request::Add(group, stop, begin, tell))?;
        told.recv().map_err(|_| KeeperError::Ended)?
    }

    /// Holds a group to another budget and period from now on; see [`crate::rule::Server::change`].
    ///
    /// # Errors
    /// If it is not held.
    pub fn change(&self, id: Id, reservation: Reservation) -> Result<(), KeeperError> {
        let (tell, told) = sync_channel(1);
        self.ask(Request::Change(id, reservation, tell))?;
        told.recv().map_err(|_| KeeperError::Ended)?
    }

    /// Stops holding a group. It is thawed, and its threads have their classes.
    ///
    /// # Errors
    /// If it is not held.
    pub fn remove(&self, id: Id) -> Result<(), KeeperError> {
        let (tell, told) = sync_channel(1);
        self.ask(Request::Remove(id, tell))?;
        let removed = told.recv().map_err(|_| KeeperError::Ended)??;
        removed.finish();
        Ok(())
    }

    /// Wakes the keeper, so that it sees at once whether it is to stop.
    pub fn wake(&self) {
        // Full only if it is about to wake anyway.
        let _ = io::Write::write(&mut &*self.bell, &1u64.to_ne_bytes());
    }

    /// The keeper's counts.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    fn ask(&self, request: Request) -> Result<(), KeeperError> {
        self.requests
            .send(request)
            .map_err(|_| KeeperError::Ended)?;
        self.wake();
        Ok(())
    }
}

/// Holds groups to their budgets on one cpu.
#[derive(Debug)]
pub struct Keeper {
    cpu: u32,
    priority: u8,
    senses: Senses,
    slots: Vec<Option<Slot>>,
    last_id: u64,
    waiting: Waiting,
    bell: Arc<std::fs::File>,
    helper: Helper,
    requests: Receiver<Request>,
    asked: SyncSender<Request>,
    stats: Arc<Stats>,
    home: Option<Home>,
    /// It holds its groups; else it stands by, or has not begun.
    at_work: bool,
}

impl Keeper {
    /// A keeper for `cpu` with FIFO `priority` ([`PRIORITY`]), and the event that counts cpu time there: a process below `parent`, a group of
    /// cgroup v2, spins for a millisecond or two to prove it.
    ///
    /// # Errors
    /// If the priority is out of range or the kernel lacks something.
    pub fn new(cpu: u32, priority: u8, parent: &Path) -> Result<Keeper, KeeperError> {
        if !(2..=99).contains(&priority) {
            return Err(KeeperError::Priority(priority));
        }
        Keeper::with(cpu, priority, proof::senses(parent, cpu, priority))
    }

    /// As [`Keeper::new`] with senses found before, or fewer.
    ///
    /// # Errors
    /// As [`Keeper::new`].
    pub fn with(cpu: u32, priority: u8, senses: Senses) -> Result<Keeper, KeeperError> {
        if !(2..=99).contains(&priority) {
            return Err(KeeperError::Priority(priority));
        }
        let waiting = Waiting::new().map_err(KeeperError::Waiting)?;
        waiting.wait(0, |_| {}).map_err(KeeperError::Waiting)?;
        let bell = sys::event_file().map_err(KeeperError::Waiting)?;
        waiting
            .add(&bell, REQUESTED)
            .map_err(KeeperError::Waiting)?;
        let bell = Arc::new(bell);
        let helper = Helper::new(Arc::clone(&bell)).map_err(KeeperError::Waiting)?;
        let (asked, requests) = sync_channel(REQUESTS);
        Ok(Keeper {
            cpu,
            priority,
            senses,
            slots: (0..MOST_GROUPS).map(|_| None).collect(),
            last_id: 0,
            waiting,
            bell,
            helper,
            requests,
            asked,
            stats: Arc::new(Stats::new()),
            home: None,
            at_work: false,
        })
    }

    /// Records its state from now on. Before anything is added.
    pub(crate) fn settle(&mut self, home: Home) {
        self.home = Some(home);
    }

    /// The event that counts cpu time here.
    pub fn senses(&self) -> &Senses {
        &self.senses
    }

    /// Its counts.
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.stats)
    }

    /// To add and remove groups while it runs.
    pub fn handle(&self) -> Handle {
        Handle {
            requests: self.asked.clone(),
            bell: Arc::clone(&self.bell),
            cpu: self.cpu,
            senses: self.senses.clone(),
            stats: Arc::clone(&self.stats),
            page: self.home.as_ref().map(|home| Arc::clone(&home.page)),
        }
    }

    /// Holds the group whose directory is `path` to a budget as soon as the keeper runs.
    ///
    /// # Errors
    /// [`KeeperError`]; nothing of the group has changed then.
    pub fn add(
        &mut self,
        path: &Path,
        stop: Stop,
        reservation: Reservation,
    ) -> Result<Id, KeeperError> {
        let group = Box::new(Group::open(path, self.cpu, &self.senses)?);
        self.take(group, stop, Begin::Fresh(reservation, None))
    }

    /// Stops holding a group. It is thawed, and its threads have their classes.
    ///
    /// # Errors
    /// If it is not held.
    pub fn remove(&mut self, id: Id) -> Result<(), KeeperError> {
        self.let_go(id).map(Removed::finish)
    }

    /// Holds its groups until `stop`: takes the calling thread, which it pins to its cpu and gives its class. Sees `stop`
    /// within a second, or at once after [`Handle::wake`]. At the end all groups are thawed, and are held again by the next run.
    ///
    /// # Errors
    /// If the thread does not get its cpu, its class or its memory. Groups are not held then.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), KeeperError> {
        self.prepare()?;
        self.at_work = true;
        self.stats.alive_ns.store(sys::now_ns(), Ordering::Relaxed);
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = slot {
                slot.begin(self.cpu, &self.stats.groups[place]);
            }
        }
        self.helper.go_to_work();
        let result = self.go_round(stop);
        self.release_all();
        result
    }

    /// Stands by until `active`, then continues its groups from the state on the page. Takes the calling thread, which
    /// is prepared, and leaves groups as they are when it ends.
    ///
    /// # Errors
    /// If it cannot wait any more.
    pub(crate) fn stand_by(&mut self, active: &AtomicBool) -> Result<(), KeeperError> {
        while !active.load(Ordering::SeqCst) {
            let waited = self.waiting.wait(STANDING_BY_NS, |_| {});
            waited.map_err(KeeperError::Waiting)?;
            if !active.load(Ordering::SeqCst) {
                self.answer();
            }
        }
        self.at_work = true;
        if let Some(home) = &self.home {
            home.lane().beat.begin();
        }
        for (place, at) in self.slots.iter_mut().enumerate() {
            let stats = &self.stats.groups[place];
            if let Some(slot) = at
                && !slot.resume_or_begin(self.cpu, stats)
            {
                *at = None;
                self.helper.set(place, None);
            }
        }
        if let Some(home) = &self.home {
            home.page.resumed();
        }
        self.helper.go_to_work();
        self.go_round(&AtomicBool::new(false))
    }

    /// Gives the calling thread its cpu, its class and its memory.
    ///
    /// # Errors
    /// If it does not get them.
    pub(crate) fn prepare(&mut self) -> Result<(), KeeperError> {
        if self.home.is_none() {
            // A process of keepers has seen to that.
            lock_memory().map_err(KeeperError::Memory)?;
        }
        touch_stack();
        let priority = self.priority;
        // The class first: a cell that spins there already would let nobody else onto that cpu.
        sched::set_class(0, &Class::Fifo { priority })?;
        sched::set_affinity(0, &[self.cpu])?;
        self.helper.start(self.cpu, priority - 1)
    }

    fn release_all(&mut self) {
        self.at_work = false;
        self.helper.end();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = slot {
                slot.release(&self.stats.groups[place]);
                slot.finish();
            }
        }
    }

    fn go_round(&mut self, stop: &AtomicBool) -> Result<(), KeeperError> {
        let mut safety_at_ns = sys::now_ns() + LONGEST_SLEEP_NS;
        while !stop.load(Ordering::Relaxed) {
            let due_ns = (self.slots.iter().flatten())
                .filter_map(Slot::due_ns)
                .fold(safety_at_ns, i64::min);
            let now_ns = sys::now_ns();
            let (mut requested, mut noticed) = (false, 0u64);
            if due_ns > now_ns {
                if let Some(home) = &self.home {
                    home.promise(due_ns, &self.slots);
                }
                let ready = |number| match number {
                    REQUESTED => requested = true,
                    place => noticed |= 1 << place,
                };
                (self.waiting.wait(due_ns - now_ns, ready)).map_err(KeeperError::Waiting)?;
                add(&self.stats.wakeups, 1);
            } else if let Some(home) = &self.home {
                // It has more to do than time, and lives.
                home.lane().beat.promise(now_ns);
            }
            let now_ns = sys::now_ns();
            if now_ns >= due_ns {
                self.stats.late.record(now_ns - due_ns);
            }
            let is_safety = now_ns >= safety_at_ns;
            if is_safety {
                safety_at_ns = now_ns + LONGEST_SLEEP_NS;
            }
            for (place, slot) in self.slots.iter_mut().enumerate() {
                let Some(slot) = slot else { continue };
                let stats = &self.stats.groups[place];
                let is_noticed = noticed & 1 << place != 0 && slot.take_notice();
                if is_noticed || slot.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                    slot.act(is_noticed, stats);
                } else if is_safety {
                    slot.check(stats);
                }
            }
            if requested {
                self.answer();
                for (slot, stats) in self.slots.iter_mut().zip(&self.stats.groups) {
                    if let Some(slot) = slot {
                        slot.renew(stats);
                    }
                }
            }
            self.call();
            self.stats.alive_ns.store(now_ns, Ordering::Relaxed);
            self.stats.busy.record(sys::now_ns() - now_ns);
            let own_ns = sys::thread_cpu_ns() + self.helper.cpu_ns();
            self.stats.own_cpu_ns.store(own_ns, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Wakes the thread beside this one if a group needs it.
    fn call(&mut self) {
        let slots = self.slots.iter_mut().flatten();
        if slots.fold(false, |calls, slot| slot.take_call() | calls) {
            self.helper.ring();
        }
    }

    /// Carries out the requests. The asker makes and frees the data of a request, except a group that there is no room for.
    fn answer(&mut self) {
        let mut count = [0u8; 8];
        let _ = io::Read::read(&mut &*self.bell, &mut count);
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Add(group, stop, begin, tell) => {
                    let taken = self.take(group, stop, begin);
                    if self.at_work
                        && let Ok(id) = taken
                        && let Some(place) = self.place_of(id)
                        && let Some(slot) = &mut self.slots[place]
                    {
                        let stats = &self.stats.groups[place];
                        match begin {
                            Begin::Fresh(..) => slot.begin(self.cpu, stats),
                            Begin::Resumed(..) => {
                                slot.resume(self.cpu, stats);
                            }
                        }
                    }
                    let _ = tell.send(taken);
                }
                Request::Change(id, reservation, tell) => {
                    let _ = tell.send(self.change(id, reservation));
                }
                Request::Remove(id, tell) => {
                    let _ = tell.send(self.let_go(id));
                }
            }
        }
    }

    fn take(&mut self, group: Box<Group>, stop: Stop, begin: Begin) -> Result<Id, KeeperError> {
        let (place, id, reservation) = match begin {
            Begin::Fresh(reservation, Some((place, id))) => (Some(place), id, reservation),
            Begin::Fresh(reservation, None) => {
                let free = self.slots.iter().position(Option::is_none);
                (free, self.last_id + 1, reservation)
            }
            Begin::Resumed(place, id) => {
                let home = self.home.as_ref();
                let progress = home.and_then(|home| home.page.group(place).progress());
                let progress = progress.filter(|progress| progress.id == id);
                let progress = progress.ok_or(KeeperError::NotHeld)?;
                (Some(place), id, progress.reservation)
            }
        };
        let place = place.filter(|place| self.slots[*place].is_none());
        let place = place.ok_or(KeeperError::Full)?;
        if let Some(notice) = &group.notice {
            (self.waiting.add(notice.file(), place as u64)).map_err(KeeperError::Waiting)?;
        }
        self.last_id = id;
        let id = Id::numbered(id);
        self.stats.groups[place].begin(id.number(), reservation);
        let on_page = self.home.as_ref().map(|home| Place {
            page: Arc::clone(&home.page),
            place,
            came: home.came,
        });
        let is_fresh = matches!(begin, Begin::Fresh(..));
        self.helper.set(place, Some(Arc::clone(group.beside())));
        let held = (group, stop);
        let slot = Slot::new(id, held, reservation, grid_ns(self.cpu), on_page, is_fresh);
        self.slots[place] = Some(slot);
        Ok(id)
    }

    fn change(&mut self, id: Id, reservation: Reservation) -> Result<(), KeeperError> {
        let place = self.place_of(id).ok_or(KeeperError::NotHeld)?;
        let slot = self.slots[place].as_mut().ok_or(KeeperError::NotHeld)?;
        slot.change(reservation, &self.stats.groups[place]);
        Ok(())
    }

    fn let_go(&mut self, id: Id) -> Result<Removed, KeeperError> {
        let place = self.place_of(id).ok_or(KeeperError::NotHeld)?;
        let mut slot = self.slots[place].take().ok_or(KeeperError::NotHeld)?;
        let stats = &self.stats.groups[place];
        // A keeper that stands by leaves this alone.
        let held = (self.home.is_none() || self.at_work).then(|| {
            slot.release(stats);
            self.home
                .as_ref()
                .map(|home| (Arc::clone(&home.page), place))
        });
        self.helper.set(place, None);
        let group = slot.into_group();
        stats.id.store(0, Ordering::Relaxed);
        if let Some(notice) = &group.notice {
            let _ = self.waiting.remove(notice.file());
        }
        Ok(Removed { group, held })
    }

    fn place_of(&self, id: Id) -> Option<usize> {
        let is = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| slot.id() == id);
        self.slots.iter().position(is)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.helper.end();
        // Groups on a page are the next keeper's.
        if self.home.is_none() {
            self.release_all();
        }
    }
}

/// An instant at which periods begin on a cpu, ns. Those of different cpus begin at different ones, so that their keepers do not wait for each
/// other in the kernel.
pub(crate) fn grid_ns(cpu: u32) -> i64 {
    i64::from(cpu) * APART_NS
}

fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Stack that the loop may use, bytes.
const STACK_BYTES: usize = 64 * 1024;

#[inline(never)]
fn touch_stack() {
    let mut room = [0u8; STACK_BYTES];
    for page in room.chunks_mut(1024) {
        page[0] = 1;
    }
    std::hint::black_box(&mut room);
}
