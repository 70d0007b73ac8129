//! One group as its keeper holds it: the rule, the group's files, and the next work due.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::counter::UseNotice;
use crate::group::{Group, Stop};
use crate::lower::Lowering;
use crate::page::{Page, Progress, Totals};
use crate::rule::{FIRST_USE_NS, Notice, Reservation, Server};
use crate::stats::{GroupStats, Id, Reacted, add};
use crate::sys;

/// When a keeper took over groups that another had held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// When the other one died.
    AtOnce,
    /// Some time after that, for which nobody held them.
    Late,
}

/// How long a stopped group may run on before its threads are looked at, ns: in its cpu time where the kernel reports
/// that, by the clock otherwise. A frozen thread that returns to user mode stops within some 10 us of its own time.
const GRACE_NS: i64 = 100_000;
/// How often the threads of a group that runs on in class IDLE are looked at again, ns: somebody else may have given one of
/// them a class.
const AGAIN_NS: i64 = 1_000_000;

/// Where on a page it stands how far a group has come.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) page: Arc<Page>,
    pub(crate) place: usize,
    /// When this keeper came, which is when it came to the group unless it could not take it up then.
    pub(crate) came: Came,
}

#[derive(Debug)]
pub(crate) struct Slot {
    id: Id,
    place: Option<Place>,
    /// Nobody has held it before.
    is_fresh: bool,
    totals: Totals,
    group: Box<Group>,
    stop: Stop,
    server: Server,
    grid_ns: i64,
    /// It has a budget, and may run.
    thawed: bool,
    /// When the rule wants to look again.
    look_at_ns: Option<i64>,
    /// When to see whether a stopped group has stopped, where the clock has to tell.
    stopped_at_ns: Option<i64>,
    /// The group's cpu time at the last look.
    raw_ns: i64,
    /// The group's cpu time when its threads were lowered: later use is best effort.
    lowered_at_ns: Option<i64>,
    best_effort_ns: i64,
    /// Notice was asked for of use beyond the budget.
    beyond_budget: bool,
    gone: bool,
    /// There is something to do for the thread beside this one.
    calls: bool,
}

impl Slot {
    pub(crate) fn new(
        id: Id,
        (group, stop): (Box<Group>, Stop),
        reservation: Reservation,
        grid_ns: i64,
        place: Option<Place>,
        is_fresh: bool,
    ) -> Slot {
        let notice = match group.notice {
            Some(_) => Notice::Use,
            None => Notice::Clock,
        };
        Slot {
            id,
            place,
            is_fresh,
            totals: Totals::default(),
            group,
            stop,
            server: Server::new(reservation, notice, grid_ns, 0, 0),
            grid_ns,
            thawed: true,
            look_at_ns: None,
            stopped_at_ns: None,
            raw_ns: 0,
            lowered_at_ns: None,
            best_effort_ns: 0,
            beyond_budget: false,
            gone: false,
            calls: false,
        }
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }

    /// Begins to hold the group, thawed and with its full budget.
    pub(crate) fn begin(&mut self, cpu: u32, stats: &GroupStats) {
        let reservation = self.server.reservation();
        // The table is of a group that was here before, and may be gone with its lowered threads.
        self.group.forget_lowered();
        self.doubt();
        self.release(stats);
        if let Some(used_ns) = self.used_ns(stats) {
            let now_ns = sys::now_ns();
            self.server = Server::new(reservation, self.notice(), self.grid_ns, now_ns, used_ns);
            self.look(stats);
        }
        self.publish();
        if let Some(Place { page, place, .. }) = &self.place {
            page.group(*place).reacted.clear();
            let (path, inode) = (self.group.path(), self.group.inode());
            let record = page.group(*place);
            record.set_not_held(None);
            record.appoint(self.id.number(), (cpu, self.stop), path, inode);
        }
    }

    /// Begins if nobody has held the group, else continues; whether it is this one's to hold.
    pub(crate) fn resume_or_begin(&mut self, cpu: u32, stats: &GroupStats) -> bool {
        if self.is_fresh {
            self.begin(cpu, stats);
            return true;
        }
        self.resume(cpu, stats)
    }

    /// Continues from the state that a dead keeper left on the page. The group's use since is charged; whether it is
    /// frozen now is not asked but set. A recreated group begins afresh. `false`: the page no longer lists it, and
    /// nothing is done.
    pub(crate) fn resume(&mut self, cpu: u32, stats: &GroupStats) -> bool {
        let Some(Place { page, place, came }) = &self.place else {
            return false;
        };
        let record = page.group(*place);
        // Whenever this keeper came, it did not take the group up then.
        let came = record.not_held().map_or(*came, |_| Came::Late);
        let progress = record.progress();
        let Some(progress) = progress.filter(|progress| progress.id == self.id.number()) else {
            return false;
        };
        let is_another = record.inode() != self.group.inode();
        self.group.take_over();
        let Progress {
            reservation, state, ..
        } = progress;
        self.server = Server::resume(reservation, self.notice(), self.grid_ns, state);
        (self.lowered_at_ns, self.best_effort_ns) =
            (progress.lowered_at_ns, progress.best_effort_ns);
        // Where numbers of groups are used again, their time tells: it does not run backwards.
        let noted_ns = state.used_ns + progress.best_effort_ns;
        if is_another || self.group.used_ns().is_ok_and(|ns| ns < noted_ns) {
            self.best_effort_ns = 0;
            self.begin(cpu, stats);
            return true;
        }
        self.totals = progress.totals;
        self.thawed = true;
        self.doubt();
        self.look(stats);
        if came == Came::Late {
            let waived_ns = self.server.waive();
            self.totals.waived_ns += waived_ns;
            if waived_ns > 0 {
                // The due work follows from the debt.
                self.look(stats);
            }
        }
        if self.server.left_ns() > 0 && !self.gone {
            self.start(stats);
        } else if self.thawed && !self.gone {
            self.stop(stats);
        }
        self.publish();
        if let Some(Place { page, place, .. }) = &self.place {
            page.group(*place).set_not_held(None);
        }
        true
    }

    /// Holds the group to another budget.
    pub(crate) fn change(&mut self, reservation: Reservation, stats: &GroupStats) {
        self.look(stats);
        self.server.change(reservation, sys::now_ns());
        stats.budget_ns.store(reservation.budget_ns(), Relaxed);
        stats.period_ns.store(reservation.period_ns(), Relaxed);
        self.look(stats);
        self.publish();
    }

    /// Where it is counted how exact this is; nowhere without a page.
    fn reacted(&self) -> Option<&Reacted> {
        let place = self.place.as_ref();
        place.map(|Place { page, place, .. }| &page.group(*place).reacted)
    }

    /// Gives the released group everything back, where nobody else does. May wait for strangers.
    pub(crate) fn finish(&mut self) {
        let _ = self.group.finish();
    }

    /// Records the progress, for a successor if this thread is killed.
    fn publish(&self) {
        if let Some(Place { page, place, .. }) = &self.place {
            page.group(*place).note(Progress {
                id: self.id.number(),
                reservation: self.server.reservation(),
                state: self.server.state(),
                lowered_at_ns: self.lowered_at_ns,
                best_effort_ns: self.best_effort_ns,
                totals: self.totals,
            });
        }
    }

    fn notice(&self) -> Notice {
        match self.group.notice {
            Some(_) => Notice::Use,
            None => Notice::Clock,
        }
    }

    /// Others may have frozen it.
    fn doubt(&mut self) {
        if self.stop == Stop::Lower {
            self.group.beside().doubt();
        }
    }

    /// Gives the group everything back; the rule is not asked. Where its threads are lowered, others thaw it.
    pub(crate) fn release(&mut self, stats: &GroupStats) {
        if self.gone {
            return;
        }
        (self.look_at_ns, self.stopped_at_ns, self.lowered_at_ns) = (None, None, None);
        let disarmed = self
            .group
            .notice
            .as_mut()
            .map_or(Ok(()), |notice| notice.disarm());
        self.note(stats, disarmed);
        let started = self.give();
        self.note(stats, started);
    }

    /// Whether the thread beside this one has something to do; asked once.
    pub(crate) fn take_call(&mut self) -> bool {
        std::mem::take(&mut self.calls)
    }

    /// Uses lists that were opened anew, if there are any.
    pub(crate) fn renew(&mut self, stats: &GroupStats) {
        if !self.group.take_lists() || self.gone {
            return;
        }
        if !self.thawed {
            self.lower(stats);
            self.publish();
        } else if self.group.is_lowered() {
            self.group.give_back();
        }
    }

    /// The group, released before or of somebody else.
    pub(crate) fn into_group(self) -> Box<Group> {
        self.group
    }

    /// When something is to be done by the clock.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        let times = [self.look_at_ns, self.stopped_at_ns].into_iter().flatten();
        times.min()
    }

    /// When the budget can be used up at the earliest, where the kernel gives notice and the clock does not; and
    /// whether the group is inside a period.
    pub(crate) fn unlooked_ns(&self) -> Option<(i64, bool)> {
        let waits = self.thawed && !self.gone && self.group.notice.is_some() && !self.beyond_budget;
        let state = self.server.state();
        waits.then(|| (state.looked_ns + state.left_ns, state.end_ns.is_some()))
    }

    /// Whether the kernel gave notice of use.
    pub(crate) fn take_notice(&mut self) -> bool {
        self.group
            .notice
            .as_mut()
            .is_some_and(|notice| notice.take())
    }

    /// Does the due work, or that for a notice of use.
    pub(crate) fn act(&mut self, noticed: bool, stats: &GroupStats) {
        let now_ns = sys::now_ns();
        let stop_due = self.stopped_at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if !self.thawed && (noticed || stop_due) {
            self.stopped_at_ns = None;
            self.lower(stats);
        }
        // A frozen group's notice says nothing about its budget.
        let due_ns = self.look_at_ns.filter(|at_ns| *at_ns <= now_ns);
        if due_ns.is_some() || (noticed && self.thawed) {
            self.look(stats);
        }
        if let (Some(due_ns), Some(reacted)) = (due_ns, self.reacted()) {
            // With the thaw or freeze, for which the group waits.
            reacted.late.record(sys::now_ns() - due_ns);
        }
        self.publish();
    }

    /// Looks although nothing is due: at use of which no notice came.
    pub(crate) fn check(&mut self, stats: &GroupStats) {
        if !self.gone && self.look_at_ns.is_none() {
            let before_ns = self.server.left_ns();
            self.look(stats);
            // Less than that is no reason for notice yet.
            if before_ns - self.server.left_ns() > 2 * FIRST_USE_NS {
                add(&stats.missed_notices, 1);
            }
            self.publish();
        }
    }

    fn look(&mut self, stats: &GroupStats) {
        let Some(used_ns) = self.used_ns(stats) else {
            return;
        };
        let said = self.server.look(sys::now_ns(), used_ns);
        add(&stats.looks, 1);
        if let Some(ended) = said.ended {
            stats.ended(ended);
            self.totals.count(&ended);
            if let (true, Some(reacted)) = (ended.exhausted, self.reacted()) {
                reacted.overruns.record(ended.overrun_ns);
            }
        }
        self.look_at_ns = said.look_at_ns;
        match (self.thawed, said.thawed) {
            (true, false) => self.stop(stats),
            (false, true) => self.start(stats),
            _ => {}
        }
        if said.thawed && !self.gone {
            // Where the clock announces the end of the budget, notice reports a group that runs on beyond it.
            let after_ns = self.server.left_ns() + GRACE_NS;
            self.arm(said.look_after_use_ns.unwrap_or(after_ns), stats);
            self.beyond_budget = said.look_after_use_ns.is_none();
        }
    }

    /// Whether notice will come of a group that runs on beyond its budget.
    fn is_guarded(&self) -> bool {
        self.beyond_budget && self.group.notice.as_ref().is_some_and(UseNotice::is_on)
    }

    fn stop(&mut self, stats: &GroupStats) {
        add(&stats.freezes, 1);
        self.totals.freezes += 1;
        match self.stop {
            Stop::Lower => {
                self.thawed = false;
                // The group has not run since the look.
                let done = self.lower_at(self.raw_ns, stats);
                let until_ns = self.look_at_ns.unwrap_or(i64::MAX);
                self.group.beside().go_down(until_ns, done.left_out);
                self.calls = true;
            }
            Stop::Freeze => {
                if let Err(error) = self.group.freeze() {
                    return self.try_again(stats, error);
                }
                self.thawed = false;
            }
        }
        if self.group.notice.is_none() {
            self.stopped_at_ns = Some(sys::now_ns() + GRACE_NS);
        } else if !self.is_guarded() {
            self.arm(GRACE_NS, stats);
        }
    }

    fn start(&mut self, stats: &GroupStats) {
        (self.stopped_at_ns, self.lowered_at_ns) = (None, None);
        // Before it may run: the group's use then is not best effort in anybody's count.
        self.publish();
        if let Err(error) = self.give() {
            self.try_again(stats, error);
        }
    }

    fn give(&mut self) -> io::Result<()> {
        match self.stop {
            Stop::Lower => {
                self.group.give_back();
                self.calls |= self.group.beside().go_up() || self.group.is_lowered();
            }
            Stop::Freeze => self.group.thaw()?,
        }
        self.thawed = true;
        Ok(())
    }

    /// Counts an error and looks again soon, which tries the failed step once more; not if the group is gone.
    fn try_again(&mut self, stats: &GroupStats, error: io::Error) {
        self.note(stats, Err(error));
        self.look_at_ns = (!self.gone).then(|| sys::now_ns() + GRACE_NS);
    }

    fn arm(&mut self, ns: i64, stats: &GroupStats) {
        if let Some(notice) = &mut self.group.notice {
            let armed = notice.arm(ns);
            self.note(stats, armed);
        }
    }

    /// Lowers the threads of a stopped group that runs on.
    fn lower(&mut self, stats: &GroupStats) {
        let is_frozen = match self.stop {
            Stop::Lower => Ok(self.group.beside().is_frozen()),
            Stop::Freeze => self.group.is_frozen(),
        };
        match is_frozen {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => return self.note(stats, Err(error)),
        }
        let Some(raw_ns) = self.raw_ns(stats) else {
            return;
        };
        self.lower_at(raw_ns, stats);
        if self.stop == Stop::Lower {
            self.stopped_at_ns = Some(sys::now_ns() + AGAIN_NS);
        }
    }

    /// Lowers its threads when it has used so much.
    fn lower_at(&mut self, raw_ns: i64, stats: &GroupStats) -> Lowering {
        let done = self.group.lower();
        self.calls |= done.left_out;
        add(&stats.lowerings, 1);
        add(&stats.lowered, done.lowered);
        add(&stats.deadline, done.deadline);
        add(&stats.errors, done.refused);
        self.totals.errors += done.refused;
        // The use of threads that are not lowered has to be paid for, even if others gave one a class.
        if let Some(at_ns) = self.lowered_at_ns
            && done.is_all()
            && done.lowered == 0
        {
            self.best_effort_ns += raw_ns - at_ns;
            stats.best_effort_ns.store(self.best_effort_ns, Relaxed);
        }
        self.lowered_at_ns = done.is_all().then_some(raw_ns);
        done
    }

    /// The cpu time that counts: without use in class IDLE.
    fn used_ns(&mut self, stats: &GroupStats) -> Option<i64> {
        let raw_ns = self.raw_ns(stats)?;
        if let Some(at_ns) = self.lowered_at_ns {
            self.best_effort_ns += raw_ns - at_ns;
            self.lowered_at_ns = Some(raw_ns);
            stats.best_effort_ns.store(self.best_effort_ns, Relaxed);
        }
        Some(raw_ns - self.best_effort_ns)
    }

    fn raw_ns(&mut self, stats: &GroupStats) -> Option<i64> {
        match self.group.used_ns() {
            Ok(ns) => {
                self.raw_ns = ns;
                Some(ns)
            }
            Err(error) => {
                self.try_again(stats, error);
                None
            }
        }
    }

    /// Counts an error; after one that says that the group is gone, it is left alone.
    fn note(&mut self, stats: &GroupStats, done: io::Result<()>) {
        let Err(error) = done else { return };
        add(&stats.errors, 1);
        self.totals.errors += 1;
        if error.raw_os_error() == Some(libc::ENODEV) {
            stats.gone.store(1, Relaxed);
            self.gone = true;
            (self.look_at_ns, self.stopped_at_ns, self.lowered_at_ns) = (None, None, None);
        }
    }
}

#[cfg(test)]
mod tests;
