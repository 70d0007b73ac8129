//! The watcher: waits until the keeper dies, is stopped or does not come back, and takes its place.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, getppid};

use super::common::{COMMANDER, LONGEST_SLEEP_NS, ProcessError, WATCHER};
use super::crew::Crew;
use super::handed::Handed;
use super::keep::Keeping;
use super::peer::{DOUBT_NS, Doubt, Peer, Verdict};
use super::setup;
use crate::page::{Beat, Lane, NEVER, PATIENCE_NS, Page};
use crate::slot::Came;
use crate::stats::MOST_GROUPS;
use crate::sys::{self, Waiting};

/// How long an enforcing thread that is not stopped may fail to come back: its cpu may be a virtual one that the host takes away,
/// or the kernel may throttle all real-time threads there, which takes 50 ms of a second unless configured otherwise.
const LANE_PATIENCE: Duration = Duration::from_millis(100);
/// As above for the commander, on which no budget depends.
const COMMANDER_PATIENCE: Duration = Duration::from_secs(1);

/// How often a thread is looked at, once a group of it may have used up its budget and only the kernel's notice would tell, ns: with a group
/// within a period, and with one that has not begun.
const LOOK_NS: [i64; 2] = [1_000_000, 10_000_000];

const KEEPER_ENDED: u64 = 0;
const RUNG: u64 = 1;

/// Watches until the keeper is dead, then is the keeper. Ends when nothing is held any more.
pub(super) fn run(dir: &Path, handed: Handed) -> Result<(), ProcessError> {
    setup::leave_starter();
    let own_parent = || Pid::as_raw(getppid());
    let parent = own_parent();
    let keeper = Peer::open(parent).map_err(ProcessError::of("pidfd_open"))?;
    let page = Page::open(dir)?.ok_or_else(|| ProcessError::Taken(dir.to_owned()))?;
    let page = Arc::new(page);
    setup::set_priority(WATCHER).map_err(crate::KeeperError::from)?;
    setup::lock_memory(setup::Lock::Touched)?;
    let mut crew = Crew::new(Arc::clone(&page), Arc::clone(&handed.bell), Came::AtOnce);
    page.watching().begin();
    page.set_watcher(std::process::id());
    // It may have died before there was a descriptor of it, which is another's then.
    let is_orphan = own_parent() != parent || page.keeper() != parent;
    if !is_orphan {
        Watching::new(&page, &keeper, &handed)?.until_dead(&mut crew)?;
    }
    if page.is_empty() {
        return Ok(());
    }
    page.count_takeover();
    crew.activate();
    setup::set_priority(COMMANDER).map_err(crate::KeeperError::from)?;
    Keeping::new(dir, page, handed, crew).go()
}

struct Watching<'a> {
    page: &'a Page,
    keeper: &'a Peer,
    handed: &'a Handed,
    waiting: Waiting,
    doubts: Vec<Doubt>,
    /// When each lane's thread was looked at last, ns.
    looked_ns: [i64; MOST_GROUPS],
    commander: Doubt,
}

impl<'a> Watching<'a> {
    fn new(
        page: &'a Page,
        keeper: &'a Peer,
        handed: &'a Handed,
    ) -> Result<Watching<'a>, ProcessError> {
        let failed = || ProcessError::of("epoll");
        let waiting = Waiting::new().map_err(failed())?;
        waiting
            .add(&keeper.process, KEEPER_ENDED)
            .map_err(failed())?;
        waiting.add(&handed.bell, RUNG).map_err(failed())?;
        Ok(Watching {
            page,
            keeper,
            handed,
            waiting,
            doubts: (0..MOST_GROUPS)
                .map(|_| Doubt::new(LANE_PATIENCE))
                .collect(),
            looked_ns: [0; MOST_GROUPS],
            commander: Doubt::new(COMMANDER_PATIENCE),
        })
    }

    /// Returns once no thread of the keeper can do anything any more.
    fn until_dead(mut self, crew: &mut Crew) -> Result<(), ProcessError> {
        let mut doubtful = false;
        loop {
            // Groups that cannot be opened yet are tried again now and then, and when this is the keeper.
            crew.sync();
            let due_ns = self.promise(doubtful);
            let (mut ended, mut rung) = (false, false);
            let ready = |number| match number {
                KEEPER_ENDED => ended = true,
                _ => rung = true,
            };
            self.waiting
                .wait(due_ns - sys::now_ns(), ready)
                .map_err(ProcessError::of("epoll"))?;
            if ended {
                return Ok(());
            }
            if rung {
                let mut count = [0u8; 8];
                let _ = std::io::Read::read(&mut &*self.handed.bell, &mut count);
            }
            match self.judge(due_ns) {
                Verdict::Fine => doubtful = false,
                Verdict::Doubtful => doubtful = true,
                Verdict::Dead => {
                    // Until it has died, nobody gives or takes anything: nobody runs, then.
                    self.page.freeze_all();
                    return (self.keeper.kill()).map_err(ProcessError::of("the keeper"));
                }
            }
        }
    }

    /// When to look next, published on the page: an enforcing thread that promises to be back earlier rings.
    fn promise(&self, doubtful: bool) -> i64 {
        loop {
            let now_ns = sys::now_ns();
            let due_ns = match doubtful {
                true => now_ns + DOUBT_NS,
                false => self.earliest().min(now_ns + LONGEST_SLEEP_NS),
            };
            self.page.watching().promise(due_ns);
            // A thread that has just promised had no reason to ring.
            if doubtful || self.earliest() >= due_ns {
                return due_ns;
            }
        }
    }

    /// When the first promise will be overdue for too long, or a thread has to be checked, ns.
    fn earliest(&self) -> i64 {
        let lanes = self.page.lanes().map(|lane| &lane.beat);
        let promises = lanes.chain([self.page.commander()]).map(Beat::promised_ns);
        let looks = (self.page.lanes().zip(self.looked_ns)).map(|(lane, ns)| look_ns(lane, ns));
        let broken = promises.map(|ns| ns.saturating_add(PATIENCE_NS));
        broken.chain(looks).min().unwrap_or(i64::MAX)
    }

    fn judge(&mut self, meant_ns: i64) -> Verdict {
        let now_ns = sys::now_ns();
        let pid = self.keeper.pid;
        let mut worst = self
            .commander
            .judge(pid, self.page.commander(), now_ns, meant_ns);
        let doubts = self.doubts.iter_mut().zip(&mut self.looked_ns);
        for (lane, (doubt, looked_ns)) in self.page.lanes().zip(doubts) {
            if look_ns(lane, *looked_ns) <= now_ns {
                *looked_ns = now_ns;
                if !lane.beat.may_run(pid) {
                    worst = Verdict::Dead;
                }
            }
            match doubt.judge(pid, &lane.beat, now_ns, meant_ns) {
                Verdict::Dead => worst = Verdict::Dead,
                Verdict::Doubtful if worst == Verdict::Fine => worst = Verdict::Doubtful,
                _ => {}
            }
        }
        worst
    }
}

/// When to look at a lane's thread although it has broken no promise, ns: the kernel would tell it of its groups' use, but not one
/// that is stopped.
fn look_ns(lane: &Lane, looked_ns: i64) -> i64 {
    let of = |(at, step_ns): (&AtomicI64, i64)| match at.load(Ordering::SeqCst) {
        NEVER => NEVER,
        ns => ns
            .saturating_add(PATIENCE_NS)
            .max(looked_ns.saturating_add(step_ns)),
    };
    let looks = lane.unlooked_ns.iter().zip(LOOK_NS).map(of);
    looks.min().unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_looked_at_from_when_a_budget_may_be_used_up() {
        const MS: i64 = 1_000_000;
        let lane = Lane::new();
        assert_eq!(look_ns(&lane, 5 * MS), NEVER);
        let [within, without] = &lane.unlooked_ns;
        without.store(20 * MS, Ordering::SeqCst);
        assert_eq!(look_ns(&lane, 5 * MS), 20 * MS + PATIENCE_NS);
        // Seldom for a group that sleeps, often for one that is awake; the first of both counts.
        assert_eq!(look_ns(&lane, 21 * MS), 31 * MS);
        within.store(22 * MS, Ordering::SeqCst);
        assert_eq!(look_ns(&lane, 21 * MS), 22 * MS + PATIENCE_NS);
        assert_eq!(look_ns(&lane, 23 * MS), 24 * MS);
    }
}
