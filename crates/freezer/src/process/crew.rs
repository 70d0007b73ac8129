//! The enforcing threads of one process, one for each cpu: at work, or standing by with the same groups open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::keeper::{Came, Handle, Home, Id, Keeper, KeeperError, PRIORITY};
use crate::page::{NEVER, Page, Which};
use crate::proof;
use crate::rule::Reservation;
use crate::stats::MOST_GROUPS;

/// Stack of an enforcing thread, bytes; all of it is locked.
const STACK_BYTES: usize = 256 * 1024;

/// The threads.
pub(super) struct Crew {
    page: Arc<Page>,
    bell: Arc<std::fs::File>,
    came: Came,
    active: Arc<AtomicBool>,
    members: Vec<Member>,
    /// What each place of the page held when it was looked at last, and which member has it; 0: nothing.
    known: [u64; MOST_GROUPS],
    at: [usize; MOST_GROUPS],
    generation: Option<u64>,
}

struct Member {
    cpu: u32,
    handle: Handle,
    thread: Option<JoinHandle<KeeperError>>,
}

impl Crew {
    /// Nobody yet, standing by.
    pub(super) fn new(page: Arc<Page>, bell: Arc<std::fs::File>, came: Came) -> Crew {
        Crew {
            page,
            bell,
            came,
            active: Arc::new(AtomicBool::new(false)),
            members: Vec::new(),
            known: [0; MOST_GROUPS],
            at: [0; MOST_GROUPS],
            generation: None,
        }
    }

    /// Opens the groups that stand on the page and closes those that do not any more. Says of which one that did not work.
    pub(super) fn sync(&mut self) -> Vec<(Which, KeeperError)> {
        let mut failed = Vec::new();
        let generation = self.page.generation();
        if self.generation == Some(generation) {
            return failed;
        }
        let page = Arc::clone(&self.page);
        for place in 0..MOST_GROUPS {
            let id = page.group(place).id();
            if self.known[place] == id {
                continue;
            }
            if self.known[place] != 0 {
                // Not there if it had gone when this crew went to work.
                let _ = self.members[self.at[place]]
                    .handle
                    .remove(Id::numbered(self.known[place]));
                self.known[place] = 0;
            }
            let Some(which) = page.group(place).which() else {
                continue;
            };
            let member = match self.member(which.cpu) {
                Ok(member) => member,
                Err(error) => {
                    failed.push((which, error));
                    continue;
                }
            };
            match self.members[member].handle.take_up(place, &which) {
                Ok(_) => (self.known[place], self.at[place]) = (which.id, member),
                Err(error) => {
                    let error = self.why(member, error);
                    failed.push((which, error));
                }
            }
        }
        if failed.is_empty() {
            self.generation = Some(generation);
        }
        failed
    }

    /// All go to work with what they have, once nobody else does.
    pub(super) fn activate(&mut self) {
        if self.is_active() {
            return;
        }
        // Whoever did may have died after a change of the page and before it said so.
        self.generation = None;
        self.page.forget_beats();
        self.active.store(true, Ordering::SeqCst);
        self.members.iter().for_each(|member| member.handle.wake());
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::SeqCst)
    }

    /// Holds one more group, with this number on this cpu, at work.
    pub(super) fn hold(
        &mut self,
        (id, cpu): (u64, u32),
        path: &Path,
        place: usize,
        reservation: Reservation,
    ) -> Result<(), KeeperError> {
        let member = self.member(cpu)?;
        let added = self.members[member]
            .handle
            .add_at(place, id, path, reservation);
        if let Err(error) = added {
            return Err(self.why(member, error));
        }
        (self.known[place], self.at[place]) = (id, member);
        self.told();
        Ok(())
    }

    /// Holds a group to another budget.
    pub(super) fn change(&self, id: u64, reservation: Reservation) -> Result<(), KeeperError> {
        let (_, handle) = self.find(id).ok_or(KeeperError::NotHeld)?;
        handle.change(Id::numbered(id), reservation)
    }

    /// Lets a group go.
    pub(super) fn release(&mut self, id: u64) -> Result<(), KeeperError> {
        let (place, handle) = self.find(id).ok_or(KeeperError::NotHeld)?;
        handle.remove(Id::numbered(id))?;
        self.known[place] = 0;
        self.told();
        Ok(())
    }

    /// The groups that have been removed.
    pub(super) fn gone(&self) -> Vec<u64> {
        let is_gone = |id: &u64| {
            let gone = |(_, handle): (usize, &Handle)| {
                let stats = handle.stats().group(Id::numbered(*id));
                stats.is_some_and(|stats| load(&stats.gone) == 1)
            };
            *id != 0 && self.find(*id).is_some_and(gone)
        };
        self.known.iter().copied().filter(is_gone).collect()
    }

    /// The thread of a cpu that has ended, as none should.
    pub(super) fn ended(&self) -> Option<u32> {
        let ended = |member: &&Member| member.thread.as_ref().is_some_and(JoinHandle::is_finished);
        self.members.iter().find(ended).map(|member| member.cpu)
    }

    fn find(&self, id: u64) -> Option<(usize, &Handle)> {
        let place = self.known.iter().position(|known| *known == id)?;
        Some((place, &self.members[self.at[place]].handle))
    }

    /// Others have to look at the page.
    fn told(&mut self) {
        self.page.changed();
        self.generation = Some(self.page.generation());
        let _ = std::io::Write::write(&mut &*self.bell, &1u64.to_ne_bytes());
    }

    /// The number of the member of a cpu, started if there is none, or one that has ended and was told of.
    fn member(&mut self, cpu: u32) -> Result<usize, KeeperError> {
        let at = self.members.iter().position(|member| member.cpu == cpu);
        if let Some(at) = at
            && self.members[at].thread.is_some()
        {
            return Ok(at);
        }
        let member = self.start(cpu)?;
        match at {
            Some(at) => {
                self.members[at] = member;
                Ok(at)
            }
            None => {
                self.members.push(member);
                Ok(self.members.len() - 1)
            }
        }
    }

    fn start(&self, cpu: u32) -> Result<Member, KeeperError> {
        let lane = self.page.lane_of(cpu).ok_or(KeeperError::Full)?;
        let senses = match self.page.lane(lane).senses(cpu) {
            Some(senses) => senses,
            None => {
                let top = host::cgroup::detect().ok().and_then(|cgroups| cgroups.v2);
                let top = top.map(|v2| v2.point).unwrap_or_default();
                let senses = proof::senses(&top, cpu, PRIORITY);
                self.page.lane(lane).settle(cpu, &senses);
                senses
            }
        };
        let mut keeper = Keeper::with(cpu, PRIORITY, senses)?;
        keeper.settle(Home {
            page: Arc::clone(&self.page),
            lane,
            bell: Arc::clone(&self.bell),
            came: self.came,
        });
        let handle = keeper.handle();
        let active = Arc::clone(&self.active);
        let thread = std::thread::Builder::new()
            .name(format!("cpu {cpu}"))
            .stack_size(STACK_BYTES)
            .spawn(move || match keeper.stand_by(&active) {
                Ok(()) => KeeperError::Ended,
                Err(error) => error,
            })
            .map_err(KeeperError::Waiting)?;
        Ok(Member {
            cpu,
            handle,
            thread: Some(thread),
        })
    }

    /// Why a member does not answer, if it has ended; it is forgotten then, and the next group of its cpu begins with another one. Not if
    /// it has groups: those are the next keeper's.
    fn why(&mut self, member: usize, error: KeeperError) -> KeeperError {
        let has_groups = (self.known.iter().zip(self.at)).any(|(id, at)| *id != 0 && at == member);
        if !matches!(error, KeeperError::Ended) || has_groups {
            return error;
        }
        if self.is_active()
            && let Some(lane) = self.page.lane_of(self.members[member].cpu)
        {
            // Nobody beats there, and nobody is to be missed.
            self.page.lane(lane).forget(NEVER);
        }
        let thread = self.members[member].thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or(error)
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Senses;
    use crate::page::{Progress, Totals};
    use crate::rule::State;

    /// No machine has it: a thread for it ends before it is at work.
    const NO_CPU: u32 = 9_999;

    fn page() -> (tempfile::TempDir, Arc<Page>) {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let page = Arc::new(Page::open_or_make(dir.path()).unwrap());
        (dir, page)
    }

    fn crew(page: &Arc<Page>, cpu: u32) -> Crew {
        // Nothing is tried out for a cpu that is settled.
        let lane = page.lane(page.lane_of(cpu).unwrap());
        lane.settle(cpu, &Senses::clock(""));
        let bell = crate::sys::event_file().unwrap();
        Crew::new(Arc::clone(page), Arc::new(bell), Came::AtOnce)
    }

    fn reservation() -> Reservation {
        Reservation::new(1_000_000, 10_000_000).unwrap()
    }

    #[test]
    fn a_change_that_was_not_told_of_is_found_by_who_goes_to_work() {
        let (dir, page) = page();
        let mut crew = crew(&page, 0);
        assert!(crew.sync().is_empty());
        // As an enforcing thread does, whose commander is killed before it tells of that.
        page.group(3).note(Progress {
            id: 1,
            reservation: reservation(),
            state: State::default(),
            lowered_at_ns: None,
            best_effort_ns: 0,
            totals: Totals::default(),
        });
        page.group(3).appoint(1, 0, &dir.path().join("nowhere"), 7);
        assert!(crew.sync().is_empty(), "nobody has told");
        crew.activate();
        let failed: Vec<u64> = crew.sync().iter().map(|(which, _)| which.id).collect();
        assert_eq!(failed, [1], "it was looked for");
    }

    #[test]
    fn a_thread_that_ended_before_it_was_at_work_is_replaced() {
        let (dir, page) = page();
        for name in ["cgroup.freeze", "cgroup.events", "cpu.stat"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let mut crew = crew(&page, NO_CPU);
        crew.activate();
        // Each time another one, which says why.
        for _ in 0..3 {
            let error = crew
                .hold((1, NO_CPU), dir.path(), 0, reservation())
                .unwrap_err();
            assert!(matches!(error, KeeperError::Class(_)), "{error}");
            assert_eq!(crew.members.len(), 1);
            assert_eq!(crew.ended(), None);
        }
    }
}
