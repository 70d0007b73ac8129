//! The enforcing threads of one process, one for each cpu: at work, or standing by with the same groups open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use crate::group::Stop;
use crate::keeper::{Handle, Home, Id, Keeper, KeeperError, PRIORITY};
use crate::page::{NEVER, Page, Which};
use crate::proof;
use crate::rule::Reservation;
use crate::slot::Came;
use crate::stats::MOST_GROUPS;
use crate::sys;

/// A group that could not be taken up is not tried again before, ns.
const AGAIN_NS: i64 = 50_000_000;
/// Stack of an enforcing thread, bytes; all of it is locked.
const STACK_BYTES: usize = 256 * 1024;

/// The threads.
pub(super) struct Crew {
    page: Arc<Page>,
    bell: Arc<std::fs::File>,
    came: Came,
    active: Arc<AtomicBool>,
    members: Vec<Member>,
    /// The group at each place of the page at the last look, and the member that has it; 0: none.
    known: [u64; MOST_GROUPS],
    at: [usize; MOST_GROUPS],
    generation: Option<u64>,
    /// The groups that could not be taken up, and when that is tried again, ns.
    failed: Vec<(Which, KeeperError)>,
    again_ns: i64,
}

struct Member {
    cpu: u32,
    handle: Handle,
    /// `None`: it has ended, and that was seen.
    thread: Option<JoinHandle<()>>,
}

impl Member {
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
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
            failed: Vec::new(),
            again_ns: 0,
        }
    }

    /// Opens the groups that stand on the page and closes those that do not any more. Says which ones it could not open when it tried last.
    pub(super) fn sync(&mut self) -> &[(Which, KeeperError)] {
        let generation = self.page.generation();
        let is_due = !self.failed.is_empty() && sys::now_ns() >= self.again_ns;
        if self.generation == Some(generation) && !is_due {
            return &self.failed;
        }
        self.failed.clear();
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
            if let Err(error) = self.take_up(place, &which) {
                self.failed.push((which, error));
            }
        }
        self.generation = Some(generation);
        self.again_ns = sys::now_ns() + AGAIN_NS;
        &self.failed
    }

    /// Opens the group at a place of the page; holds it if the crew is at work.
    pub(super) fn take_up(&mut self, place: usize, which: &Which) -> Result<(), KeeperError> {
        let member = self.member(which.cpu)?;
        self.members[member].handle.take_up(place, which)?;
        (self.known[place], self.at[place]) = (which.id, member);
        self.failed.retain(|(failed, _)| failed.id != which.id);
        Ok(())
    }

    /// Whether a thread has the group.
    pub(super) fn has(&self, id: u64) -> bool {
        self.find(id).is_some()
    }

    /// All go to work with their groups, once nobody else does.
    pub(super) fn activate(&mut self) {
        if self.is_active() {
            return;
        }
        // The one that did may have died after changing the page and before saying so.
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
        (path, stop): (&Path, Stop),
        place: usize,
        reservation: Reservation,
    ) -> Result<(), KeeperError> {
        let member = self.member(cpu)?;
        let handle = &self.members[member].handle;
        handle.add_at(place, id, (path, stop), reservation)?;
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
            self.find(*id).is_some_and(gone)
        };
        self.known.iter().copied().filter(is_gone).collect()
    }

    /// The cpu whose thread has ended, as none should, and has groups, which are the next keeper's. One without is forgotten: the next group
    /// of its cpu begins with another one.
    pub(super) fn ended(&mut self) -> Option<u32> {
        for at in 0..self.members.len() {
            let cpu = self.members[at].cpu;
            if self.members[at].has_ended() {
                if self.has_groups(at) {
                    return Some(cpu);
                }
                if self.members[at].thread.take().is_some() {
                    self.nobody_beats(cpu);
                }
            }
        }
        None
    }

    fn find(&self, id: u64) -> Option<(usize, &Handle)> {
        let is = |known: &u64| *known == id && id != 0;
        let place = self.known.iter().position(is)?;
        Some((place, &self.members[self.at[place]].handle))
    }

    /// Others have to look at the page.
    pub(super) fn told(&mut self) {
        self.page.changed();
        self.generation = Some(self.page.generation());
        let _ = std::io::Write::write(&mut &*self.bell, &1u64.to_ne_bytes());
    }

    /// The number of the member of a cpu, started if there is none, or one that has ended and has no groups.
    fn member(&mut self, cpu: u32) -> Result<usize, KeeperError> {
        let at = self.members.iter().position(|member| member.cpu == cpu);
        if let Some(at) = at
            && (!self.members[at].has_ended() || self.has_groups(at))
        {
            return Ok(at);
        }
        let member = self.start(cpu).inspect_err(|_| self.nobody_beats(cpu))?;
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

    fn has_groups(&self, member: usize) -> bool {
        let mut groups = self.known.iter().zip(self.at);
        groups.any(|(id, at)| *id != 0 && at == member)
    }

    /// No thread of this crew, which is at work, is to be missed on a cpu.
    fn nobody_beats(&self, cpu: u32) {
        if self.is_active()
            && let Some(lane) = self.page.lane_of(cpu)
        {
            self.page.lane(lane).forget(NEVER);
        }
    }

    /// The thread of a cpu, once it has its cpu and class: a refusal is reported at once, whichever group needed the
    /// thread.
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
        let (tell, told) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("cpu {cpu}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let prepared = keeper.prepare();
                let goes_on = prepared.is_ok();
                let _ = tell.send(prepared);
                if goes_on {
                    // If its wait fails, its groups are the next keeper's.
                    let _ = keeper.stand_by(&active);
                }
            })
            .map_err(KeeperError::Waiting)?;
        told.recv().map_err(|_| KeeperError::Ended)??;
        Ok(Member {
            cpu,
            handle,
            thread: Some(thread),
        })
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
    use host::sched::{self, Class};
    use std::path::PathBuf;

    /// No machine has it: a thread for it ends before it is at work.
    const NO_CPU: u32 = 9_999;
    const MS: i64 = 1_000_000;

    fn page() -> (tempfile::TempDir, Arc<Page>) {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let page = Arc::new(Page::open_or_make(dir.path()).unwrap());
        (dir, page)
    }

    /// Nothing is tried out for a cpu that is settled.
    fn settle(page: &Page, cpu: u32) -> &crate::page::Lane {
        let lane = page.lane(page.lane_of(cpu).unwrap());
        lane.settle(cpu, &Senses::clock(""));
        lane
    }

    fn crew(page: &Arc<Page>) -> Crew {
        let bell = crate::sys::event_file().unwrap();
        Crew::new(Arc::clone(page), Arc::new(bell), Came::AtOnce)
    }

    fn reservation() -> Reservation {
        Reservation::new(1_000 * MS, 10_000 * MS).unwrap()
    }

    /// As an enforcing thread does whose commander is killed before it records that.
    fn appoint(page: &Page, place: usize, id: u64, cpu: u32, path: &Path) {
        page.group(place).note(Progress {
            id,
            reservation: reservation(),
            state: State::default(),
            lowered_at_ns: None,
            best_effort_ns: 0,
            totals: Totals::default(),
        });
        page.group(place).appoint(id, (cpu, Stop::Lower), path, 7);
    }

    /// The files of a group that are opened.
    fn group(at: &Path, name: &str) -> PathBuf {
        let path = at.join(name);
        std::fs::create_dir(&path).unwrap();
        for (name, text) in [
            ("cgroup.freeze", ""),
            ("cgroup.events", ""),
            ("cpu.stat", "usage_usec 0\n"),
        ] {
            std::fs::write(path.join(name), text).unwrap();
        }
        path
    }

    fn failed(crew: &mut Crew) -> Vec<u64> {
        crew.sync().iter().map(|(which, _)| which.id).collect()
    }

    #[test]
    fn a_change_that_was_not_told_of_is_found_by_who_goes_to_work() {
        let (dir, page) = page();
        settle(&page, 0);
        let mut crew = crew(&page);
        assert!(crew.sync().is_empty());
        appoint(&page, 3, 1, 0, &dir.path().join("nowhere"));
        assert!(crew.sync().is_empty(), "nobody has told");
        crew.activate();
        assert_eq!(failed(&mut crew), [1], "it was looked for");
    }

    #[test]
    fn a_thread_that_ended_before_it_was_at_work_is_replaced() {
        let (dir, page) = page();
        settle(&page, NO_CPU);
        let path = group(dir.path(), "group");
        let mut crew = crew(&page);
        crew.activate();
        // Each time another one, which says why.
        for _ in 0..3 {
            let error = crew
                .hold((1, NO_CPU), (&path, Stop::Lower), 0, reservation())
                .unwrap_err();
            assert!(matches!(error, KeeperError::Class(_)), "{error}");
            assert!(crew.members.is_empty());
            assert_eq!(crew.ended(), None);
        }
    }

    #[test]
    fn a_group_of_an_offline_cpu_that_cannot_be_opened_either_is_the_only_one_not_held() {
        let (dir, page) = page();
        let cpu = sched::get_affinity(0).unwrap()[0];
        let lane = settle(&page, NO_CPU);
        settle(&page, cpu);
        appoint(&page, 0, 1, NO_CPU, &dir.path().join("nowhere"));
        appoint(&page, 1, 2, cpu, &group(dir.path(), "group"));
        let mut crew = crew(&page);
        crew.activate();
        let enforces = || sched::set_class(0, &Class::Fifo { priority: PRIORITY }).is_ok();
        let enforces = std::thread::spawn(enforces).join().unwrap();
        for _ in 0..3 {
            page.changed();
            let (which, error) = &crew.sync()[0];
            assert_eq!(which.id, 1);
            assert!(matches!(error, KeeperError::Class(_)), "{error}");
            // A thread has had the time to end.
            std::thread::sleep(std::time::Duration::from_millis(60));
            assert_eq!(crew.ended(), None);
            assert_eq!(lane.beat.promised_ns(), NEVER, "nobody is missed there");
            assert_eq!(crew.has(2), enforces);
            assert!(!crew.has(1));
        }
    }

    #[test]
    fn what_could_not_be_taken_up_is_told_of_at_every_look_and_tried_now_and_then() {
        let (dir, page) = page();
        settle(&page, NO_CPU);
        appoint(&page, 0, 1, NO_CPU, &dir.path().join("nowhere"));
        let mut crew = crew(&page);
        assert_eq!(failed(&mut crew), [1]);
        // Far from now, lest this machine stand still between the two.
        let again_ns = sys::now_ns() + 1_000_000 * MS;
        crew.again_ns = again_ns;
        assert_eq!((failed(&mut crew), crew.again_ns), (vec![1], again_ns));
        let now_ns = sys::now_ns();
        crew.again_ns = now_ns;
        assert_eq!(failed(&mut crew), [1]);
        assert!(crew.again_ns > now_ns, "it was tried");
        // A change is looked at at once.
        crew.again_ns = again_ns;
        page.group(0).dismiss();
        page.changed();
        assert!(crew.sync().is_empty());
    }

    #[test]
    fn nothing_is_no_group() {
        let (_dir, page) = page();
        let mut crew = crew(&page);
        let error = crew.release(0).unwrap_err();
        assert!(matches!(error, KeeperError::NotHeld), "{error}");
        assert!(crew.change(0, reservation()).is_err() && !crew.has(0));
    }

    #[test]
    fn a_thread_that_ended_is_the_next_keepers_only_if_it_has_groups() {
        let (_dir, page) = page();
        let lane = settle(&page, 0);
        let mut crew = crew(&page);
        crew.activate();
        lane.beat.promise(5);
        let thread = std::thread::spawn(|| {});
        while !thread.is_finished() {
            std::thread::yield_now();
        }
        let keeper = Keeper::with(0, PRIORITY, Senses::clock("")).unwrap();
        crew.members.push(Member {
            cpu: 0,
            handle: keeper.handle(),
            thread: Some(thread),
        });
        (crew.known[4], crew.at[4]) = (1, 0);
        assert_eq!((crew.ended(), lane.beat.promised_ns()), (Some(0), 5));
        crew.known[4] = 0;
        assert_eq!((crew.ended(), lane.beat.promised_ns()), (None, NEVER));
    }
}
