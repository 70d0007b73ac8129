//! Switches between the modes of a mission: which cells are shed, and how each loses its time and gets it back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use model::mission::WhenShed;

use super::best_effort::{Grip, threads};
use super::cell::pids;
use super::keeper::Keeper;
use super::phase::Next;
use super::work::AT_ONCE;
use super::{Event, RunError};
use crate::state::{Entry, Hold, Mode};

/// The shortest time between two looks for an idle instant, ns.
const SHORTEST_NS: i64 = 1_000_000;

/// How a mission in high mode comes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Return {
    looked_ns: i64,
    every_ns: i64,
    idle: Option<Idle>,
}

impl Return {
    /// It is looked for so often from now on, ns.
    pub(super) fn every(every_ns: i64) -> Return {
        Return {
            looked_ns: timecell_client::now_ns(),
            every_ns,
            idle: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Idle {
    since_ns: i64,
    /// Cpu time of all cells that run.
    used_ns: i64,
}

impl Keeper<'_> {
    /// Goes to high mode because of this cell: all cells of low criticality are shed. Nothing in high mode.
    pub(super) fn switch_to_high(&mut self, by: usize) -> Result<(), RunError> {
        let Some(modes) = self.mission().modes.filter(|_| self.back.is_none()) else {
            return Ok(());
        };
        let began_ns = timecell_client::now_ns();
        let every_ns = modes.return_after.ns() / 8;
        self.back = Some(Return::every(
            every_ns.clamp(SHORTEST_NS, 100 * SHORTEST_NS),
        ));
        // Before anything is shed: a supervisor that takes over in between would have cells that no mode brings back.
        self.note(Entry::ModeSwitched { to: Mode::High });
        self.shed_all()?;
        self.shed_put_aside()?;
        let cell = &self.mission().cells[by].name;
        (self.tell)(&Event::Mode {
            to: Mode::High,
            why: format!("`{cell}` needs more than in low mode"),
            took_ns: timecell_client::now_ns() - began_ns,
        });
        Ok(())
    }

    fn shed_all(&mut self) -> Result<(), RunError> {
        for at in self.mission().shed_order() {
            self.shed(at, true)?;
        }
        Ok(())
    }

    /// Sheds the versions of cells that an update has put aside, which run beside the new ones. Their holds are those
    /// of the new ones: [`Keeper::fit_to_mode`] decides whether those that come back stay shed or continue.
    fn shed_put_aside(&mut self) -> Result<(), RunError> {
        for at in self.put_aside() {
            let cell = &mut self.cells[at];
            // A cell that is already ending ends in its time.
            let may = cell.phase.live().is_some() && !cell.phase.is_told();
            let aside = cell
                .aside
                .as_mut()
                .filter(|aside| may && !aside.shed_by_mode);
            let Some((aside, how)) =
                aside.and_then(|aside| aside.when_shed.map(|how| (aside, how)))
            else {
                continue;
            };
            aside.shed_by_mode = true;
            if let Some(done) = self.begin_to_shed(at, how)? {
                self.tell_shed(at, done)?;
            }
        }
        Ok(())
    }

    /// Sheds the next cell in the order of shedding that still runs, in favour of this one.
    pub(super) fn shed_next(&mut self, by: usize) -> Result<(), RunError> {
        let next = (self.mission().shed_order().into_iter())
            .find(|at| *at != by && self.is_running(*at) && !self.is_shed(*at));
        match next {
            Some(at) => self.shed(at, false),
            None => Ok(()),
        }
    }

    fn shed(&mut self, at: usize, by_mode: bool) -> Result<(), RunError> {
        let cell = &self.mission().cells[at];
        let (name, how) = (cell.name.clone(), cell.when_shed);
        if self.is_shed(at) {
            return Ok(());
        }
        if by_mode {
            self.shed_by_mode.insert(name.clone());
        }
        self.follow(at, Next::Stays);
        self.note(Entry::CellHeld {
            cell: name,
            why: Hold::Shed,
        });
        match self.is_running(at) {
            true => match self.begin_to_shed(at, how)? {
                Some(done) => self.tell_shed(at, done),
                None => Ok(()),
            },
            // A cell that is being created ends as soon as it runs; it has nothing to lose yet.
            false => self.tell_to_end(at),
        }
    }

    /// Sheds a running cell; `None`: that takes longer, and is reported once it is done.
    fn begin_to_shed(
        &mut self,
        at: usize,
        how: WhenShed,
    ) -> Result<Option<Result<&'static str, String>>, RunError> {
        Ok(match how {
            WhenShed::Freeze => match self.freeze(at) {
                Ok(false) => None,
                done => Some(done.map(|_| "it is frozen")),
            },
            WhenShed::BestEffort => self.begin_best_effort(at),
            WhenShed::Stop => {
                self.tell_to_end(at)?;
                Some(Ok("it is stopped"))
            }
        })
    }

    /// Reports how a cell is shed; one that could not be is stopped instead. For a version that was put aside only that
    /// is reported.
    pub(super) fn tell_shed(
        &mut self,
        at: usize,
        done: Result<&'static str, String>,
    ) -> Result<(), RunError> {
        let cell = self.name(at);
        let how = match done {
            Ok(how) => how,
            Err(why) => {
                let what = format!("{why}; it is stopped instead");
                let cell = cell.clone();
                (self.tell)(&Event::Left { cell, what });
                self.tell_to_end(at)?;
                "it is stopped"
            }
        };
        if self.cells[at].aside.is_none() {
            (self.tell)(&Event::Shed { cell, how });
        }
        Ok(())
    }

    /// Stops a cell where it stands; `false`: that takes longer, and is waited for elsewhere.
    fn freeze(&mut self, at: usize) -> Result<bool, String> {
        let name = self.name(at);
        let cell = &mut self.cells[at];
        let Some(live) = cell.phase.live_mut() else {
            return Ok(true);
        };
        let mut freezing = live.app.begin_freeze().map_err(|error| error.to_string())?;
        let stands = freezing.wait(AT_ONCE).map_err(|why| why.to_string())?;
        if !stands {
            let unwanted = Arc::new(AtomicBool::new(false));
            live.unfreeze = Some(Arc::clone(&unwanted));
            (self.work).freeze(name, cell.generation, freezing, unwanted);
        }
        cell.watch.frozen(timecell_client::now_ns(), true);
        Ok(stands)
    }

    /// A cell that took longer to freeze is frozen, or is not to be.
    pub(super) fn stands_still(
        &mut self,
        cell: &str,
        generation: u64,
        result: Result<bool, String>,
    ) -> Result<(), RunError> {
        let Some(at) = self.of_life(cell, generation) else {
            return Ok(());
        };
        let cell = &mut self.cells[at];
        let unfreeze = (cell.phase.live_mut()).and_then(|live| live.unfreeze.take());
        if unfreeze.is_none() {
            return Ok(());
        }
        if result.is_err() {
            cell.watch.frozen(timecell_client::now_ns(), false);
        }
        self.tell_shed(at, result.map(|_| "it is frozen"))
    }

    /// Whether the mission can go back to low mode, and if so, does.
    pub(super) fn look_for_return(&mut self) -> Result<(), RunError> {
        let (Some(mut back), Some(modes)) = (self.back, self.mission().modes) else {
            return Ok(());
        };
        let now_ns = timecell_client::now_ns();
        if back.looked_ns + back.every_ns > now_ns {
            return Ok(());
        }
        back.looked_ns = now_ns;
        let high = || {
            let running = self.running();
            running.filter(|(at, _)| self.mission().cells[*at].is_high())
        };
        let busy = high().any(|(_, live)| pids(&live.app).iter().any(|pid| runs(*pid)));
        let used_ns = high()
            .filter_map(|(at, _)| self.cells[at].watch.used_ns())
            .sum();
        back.idle = match back.idle {
            _ if busy => None,
            Some(idle) if idle.used_ns == used_ns => Some(idle),
            _ => Some(Idle {
                since_ns: now_ns,
                used_ns,
            }),
        };
        self.back = Some(back);
        let is_over = |idle: Idle| now_ns - idle.since_ns >= modes.return_after.ns();
        if back.idle.is_some_and(is_over) {
            self.switch_to_low()?;
        }
        Ok(())
    }

    /// When to look again.
    pub(super) fn next_return(&self) -> Option<i64> {
        self.back
            .map(|back| back.looked_ns.saturating_add(back.every_ns))
    }

    fn switch_to_low(&mut self) -> Result<(), RunError> {
        let began_ns = timecell_client::now_ns();
        self.back = None;
        self.unshed_all()?;
        self.note(Entry::ModeSwitched { to: Mode::Low });
        (self.tell)(&Event::Mode {
            to: Mode::Low,
            why: "the cells of high criticality are idle".to_owned(),
            took_ns: timecell_client::now_ns() - began_ns,
        });
        Ok(())
    }

    /// Brings every cell in line with the mode after an update put cells aside, brought them back or added some: shed
    /// in high mode, and in low mode none that only high mode had shed.
    pub(super) fn fit_to_mode(&mut self) -> Result<(), RunError> {
        match (&self.back, self.mission().modes) {
            (None, _) => self.unshed_all(),
            (Some(_), Some(_)) => self.shed_all(),
            (Some(_), None) => Ok(()),
        }
    }

    fn unshed_all(&mut self) -> Result<(), RunError> {
        let shed = std::mem::take(&mut self.shed_by_mode);
        let positions = 0..self.own().len();
        for at in positions
            .filter(|at| shed.contains(&self.name(*at)))
            .collect::<Vec<usize>>()
        {
            self.unshed(at)?;
        }
        Ok(())
    }

    /// A cell that was shed resumes, or is restarted.
    fn unshed(&mut self, at: usize) -> Result<(), RunError> {
        let name = self.mission().cells[at].name.clone();
        self.note(Entry::CellReleased {
            cell: name.clone(),
            why: Hold::Shed,
        });
        let phase = &self.cells[at].phase;
        let Some(live) = phase.live() else {
            if self.state.should_run(&name) {
                self.follow(at, Next::Waits);
            }
            return Ok(());
        };
        if phase.is_told() {
            // It is on its way out, and is started again once it is gone.
            self.follow(at, Next::Due(timecell_client::now_ns()));
            return Ok(());
        }
        match live.forgotten {
            true => self.begin_anew(at),
            false => self.end_best_effort(at),
        }
    }

    /// Goes on as before it was shed.
    pub(super) fn goes_on(&mut self, at: usize) {
        let name = self.name(at);
        let Some(live) = self.cells[at].phase.live_mut() else {
            return;
        };
        live.grip = Grip::Held;
        live.give_classes_back();
        live.unfreeze();
        // Fine if it was not frozen.
        if let Err(error) = live.app.thaw() {
            (self.tell)(&Event::Left {
                cell: name.clone(),
                what: error.to_string(),
            });
        }
        (self.cells[at].watch).frozen(timecell_client::now_ns(), false);
        (self.tell)(&Event::Unshed { cell: name });
    }

    /// Cells that a supervisor that is gone had shed are shed: it may have been killed before it had come so far.
    pub(super) fn take_over_shed(&mut self) -> Result<(), RunError> {
        for at in 0..self.own().len() {
            if !self.is_running(at) || !self.is_shed(at) {
                continue;
            }
            let cell = &self.mission().cells[at];
            let grant = self.admission.grant(&cell.name);
            let has_class = grant.is_some_and(|grant| grant.band.is_some());
            if let Some(live) = self.cells[at].phase.live_mut() {
                // Threads of SCHED_DEADLINE are found by their names and held again.
                live.forgotten = has_class && cell.when_shed == WhenShed::BestEffort;
            }
            let done = self.begin_to_shed(at, cell.when_shed)?;
            // A success was told when it was shed.
            if let Some(Err(why)) = done {
                self.tell_shed(at, Err(why))?;
            }
        }
        Ok(())
    }

    /// The mode of a dead supervisor stays in force: cells that it had shed stay so until the mission comes back, and
    /// so do those that it was about to shed when it was killed.
    pub(super) fn take_over_mode(&mut self) -> Result<(), RunError> {
        if self.state.mode == Mode::Low || self.mission().modes.is_none() {
            return Ok(());
        }
        self.shed_by_mode = (0..self.own().len())
            .filter(|at| self.is_shed(*at))
            .map(|at| self.name(at))
            .collect();
        self.back = Some(Return::every(SHORTEST_NS));
        self.shed_all()
    }

    /// Takes their real-time class from the threads of a cell, once it is released; `None`: that takes longer, and is
    /// reported then.
    pub(super) fn begin_best_effort(&mut self, at: usize) -> Option<Result<&'static str, String>> {
        let name = self.name(at);
        let cell = &mut self.cells[at];
        let Some(live) = cell.phase.live_mut() else {
            return Some(Ok("it is not running"));
        };
        // Even if its enforcer needs no attention.
        live.tended.look_now();
        if live.grip.changes() {
            // It continues from there.
            return None;
        }
        live.grip = Grip::LetGo;
        if let Some(step) = live.hold.shed() {
            // Real-time threads that nobody holds may keep the threads off their cpu that have to confirm the release.
            if let Err(why) = live.take_classes() {
                return Some(Err(why));
            }
            live.grip = Grip::LettingGo;
            live.tended.look_now();
            let done = self.work.step(name, cell.generation, step)?;
            live.grip = Grip::LetGo;
            if let Err(why) = done {
                return Some(Err(why));
            }
        }
        let taken = live.take_classes();
        Some(taken.map(|_| "it continues with leftover cpu time"))
    }

    /// The threads of a cell get back the class that they had, once it is held.
    pub(super) fn end_best_effort(&mut self, at: usize) -> Result<(), RunError> {
        let name = self.name(at);
        let cell = &mut self.cells[at];
        let Some(live) = cell.phase.live_mut() else {
            return Ok(());
        };
        if live.grip.changes() {
            return Ok(());
        }
        let Some(step) = live.hold.unshed() else {
            self.goes_on(at);
            return Ok(());
        };
        live.grip = Grip::Holding;
        if let Some(done) = self.work.step(name, cell.generation, step) {
            live.grip = Grip::LetGo;
            self.held_again(at, done);
        }
        Ok(())
    }

    /// A step that took longer is done: the cell continues from there to its current target.
    pub(super) fn stepped(
        &mut self,
        cell: &str,
        generation: u64,
        result: Result<(), String>,
    ) -> Result<(), RunError> {
        let Some(at) = self.of_life(cell, generation) else {
            return Ok(());
        };
        let is_aside = self.cells[at].aside.is_some();
        // A version that was put aside does not come back yet.
        let is_shed = is_aside || self.is_shed(at);
        let phase = &mut self.cells[at].phase;
        let is_told = phase.is_told();
        let Some(live) = phase.live_mut() else {
            return Ok(());
        };
        let grip = live.grip;
        if !grip.changes() {
            return Ok(());
        }
        live.grip = Grip::LetGo;
        if is_told {
            return Ok(());
        }
        match (grip, is_shed) {
            (Grip::LettingGo, true) => {
                let taken = result.and_then(|()| live.take_classes());
                self.tell_shed(at, taken.map(|_| "it continues with leftover cpu time"))
            }
            (Grip::LettingGo, false) => self.end_best_effort(at),
            // When it comes back, it continues from there.
            (_, true) if is_aside => Ok(()),
            (_, true) => match self.begin_best_effort(at) {
                Some(done) => self.tell_shed(at, done),
                None => Ok(()),
            },
            (_, false) => {
                self.held_again(at, result);
                Ok(())
            }
        }
    }

    /// A cell that could not be held again continues all the same: it is tried again, and reported, as long as it runs.
    fn held_again(&mut self, at: usize, result: Result<(), String>) {
        if let Err(what) = result {
            let cell = self.name(at);
            (self.tell)(&Event::Left { cell, what });
        }
        self.goes_on(at);
    }

    /// The threads of a cell cannot get their classes back, which only the dead supervisor knew: the cell is restarted.
    pub(super) fn begin_anew(&mut self, at: usize) -> Result<(), RunError> {
        let cell = self.name(at);
        self.tell_to_end(at)?;
        self.follow(at, Next::Due(timecell_client::now_ns()));
        (self.tell)(&Event::Held {
            cell,
            what: "is no longer shed, and is restarted: the classes of its threads were lost with the supervisor that took them away"
                .to_owned(),
        });
        Ok(())
    }

    /// A thread that has retaken a real-time class while its cell is shed loses it once more. A version that comes back
    /// after it was put aside resumes if it is no longer shed.
    pub(super) fn keep_to_best_effort(&mut self) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        for at in 0..self.own().len() {
            let Some(live) = self.live(at).filter(|_| !self.cells[at].phase.is_told()) else {
                continue;
            };
            if live.grip == Grip::LetGo && !self.is_shed(at) {
                match live.forgotten {
                    true => self.begin_anew(at)?,
                    false => self.end_best_effort(at)?,
                }
            }
        }
        for at in 0..self.own().len() {
            let Some(live) = self.live(at).filter(|_| !self.cells[at].phase.is_told()) else {
                continue;
            };
            let is_due = live.grip != Grip::Holding && live.tended.is_due(now_ns);
            let how = self.mission().cells[at].when_shed;
            if !is_due || how != WhenShed::BestEffort || !self.is_shed(at) {
                continue;
            }
            let Some(live) = self.cells[at].phase.live_mut() else {
                continue;
            };
            let lets_go = live.grip == Grip::LettingGo;
            match live.classes.take_again(&pids(&live.app), lets_go) {
                Ok(None) => {}
                Ok(Some(what)) => {
                    let cell = self.name(at);
                    (self.tell)(&Event::Held { cell, what });
                }
                Err(why) => self.tell_shed(at, Err(why))?,
            }
        }
        Ok(())
    }
}

/// Whether a thread of this process runs or waits for a cpu.
fn runs(pid: i32) -> bool {
    threads(pid).into_iter().any(|thread| {
        let stat = host::file::text(format!("/proc/{pid}/task/{thread}/stat"));
        stat.is_ok_and(|stat| is_running(&stat))
    })
}

/// The state behind the name, which may hold anything.
fn is_running(stat: &str) -> bool {
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_is_seen() {
        assert!(is_running("12 (a) S) R 1 2 3"));
        assert!(!is_running("12 (a) R) S 1 2 3"));
        assert!(!is_running(""));
        let own = std::process::id().cast_signed();
        assert!(runs(own) && !threads(own).is_empty());
        assert!(!runs(i32::MAX));
    }
}
