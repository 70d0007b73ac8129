//! Changing between the modes of a mission.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::Cell as _;
use model::mission::WhenShed;

use super::work::{AT_ONCE, Work};
use super::{Event, Keeper, RunError};
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

#[derive(Debug, Clone, Copy)]
struct Idle {
    since_ns: i64,
    /// Cpu time of all cells that run.
    used_ns: i64,
}

impl Keeper<'_> {
    /// Goes to high mode because of this cell: all cells of low criticality are shed. Nothing in high mode.
    pub(super) fn switch_to_high(&mut self, by: usize) -> Result<(), RunError> {
        let Some(modes) = self.mission().modes.filter(|_| self.mode == Mode::Low) else {
            return Ok(());
        };
        self.mode = Mode::High;
        let began_ns = timecell_client::now_ns();
        // Before what is shed for it: a supervisor that takes over in between would have cells that no mode brings back.
        self.note(Entry::ModeSwitched { to: Mode::High })?;
        self.shed_all()?;
        self.shed_leaving();
        self.back = Some(Return {
            looked_ns: began_ns,
            every_ns: (modes.return_after.ns() / 8).clamp(SHORTEST_NS, 100 * SHORTEST_NS),
            idle: None,
        });
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

    /// Sheds the versions of cells that an update has put aside, which run beside the new ones. Their holds are those of the new ones: what comes
    /// back is held as shed, or goes on, by [`Keeper::fit_to_mode`].
    fn shed_leaving(&mut self) {
        let mut left = Vec::new();
        for (name, leaving) in &mut self.desk.leaving {
            // One that is on its way out ends in its time.
            let how = leaving.when_shed.filter(|_| !leaving.shed_by_mode);
            let Some(how) = how.filter(|_| leaving.live.told_until_ns.is_none()) else {
                continue;
            };
            leaving.shed_by_mode = true;
            let done = match how {
                WhenShed::Freeze => {
                    let frozen = leaving.live.begin_to_freeze(name, &self.work);
                    if let (Ok(_), Some(watch)) = (&frozen, &mut leaving.watch) {
                        watch.frozen(timecell_client::now_ns(), true);
                    }
                    frozen.map(drop)
                }
                WhenShed::BestEffort => {
                    (leaving.live.let_go(name, &self.work)).map_or(Ok(()), |done| done.map(drop))
                }
                WhenShed::Stop => {
                    let patience_ns = leaving.stop_timeout_ns;
                    leaving.live.tell_to_end(libc::SIGTERM, patience_ns);
                    Ok(())
                }
            };
            left.extend(done.err().map(|why| (name.clone(), why)));
        }
        for (name, why) in left {
            self.stop_leaving(&name, &why);
        }
    }

    /// A version that an update has put aside cannot be shed as it is to be.
    pub(super) fn stop_leaving(&mut self, cell: &str, why: &str) {
        if let Some(leaving) = self.desk.leaving.get_mut(cell) {
            let patience_ns = leaving.stop_timeout_ns;
            leaving.live.tell_to_end(libc::SIGTERM, patience_ns);
            let (cell, what) = (cell.to_owned(), format!("{why}; it is stopped instead"));
            (self.tell)(&Event::Left { cell, what });
        }
    }

    /// Sheds the next cell in the order of shedding that still runs, in favour of this one.
    pub(super) fn shed_next(&mut self, by: usize) -> Result<(), RunError> {
        let next = (self.mission().shed_order().into_iter())
            .find(|at| *at != by && self.live.contains_key(at) && !self.is_shed(*at));
        match next {
            Some(at) => self.shed(at, false),
            None => Ok(()),
        }
    }

    pub(super) fn is_shed(&self, at: usize) -> bool {
        let known = self.state.cells.get(&self.mission().cells[at].name);
        known.is_some_and(|cell| cell.holds.contains(&Hold::Shed))
    }

    fn shed(&mut self, at: usize, by_mode: bool) -> Result<(), RunError> {
        let cell = &self.mission().cells[at];
        let (name, how) = (cell.name.clone(), cell.when_shed);
        if self.is_shed(at) {
            return Ok(());
        }
        if by_mode {
            self.shed_by_mode.insert(at);
        }
        self.due.remove(&at);
        self.pending.remove(&at);
        self.note(Entry::CellHeld {
            cell: name.clone(),
            why: Hold::Shed,
        })?;
        if !self.live.contains_key(&at) {
            // One that is being made ends as soon as it runs; it has nothing to lose yet.
            self.work.ask_for_end(&name);
            return Ok(());
        }
        let done = match how {
            WhenShed::Freeze => match self.freeze(at) {
                // It is told when it stands still.
                Ok(false) => return Ok(()),
                done => done.map(|_| "it is frozen"),
            },
            WhenShed::BestEffort => match self.begin_best_effort(at) {
                // It is told when it is let go.
                None => return Ok(()),
                Some(done) => done,
            },
            WhenShed::Stop => {
                self.tell_to_end(at);
                Ok("it is stopped")
            }
        };
        self.tell_shed(at, done);
        Ok(())
    }

    pub(super) fn tell_shed(&mut self, at: usize, done: Result<&'static str, String>) {
        let name = self.mission().cells[at].name.clone();
        let how = done.unwrap_or_else(|why| {
            (self.tell)(&Event::Left {
                cell: name.clone(),
                what: format!("{why}; it is stopped instead"),
            });
            self.tell_to_end(at);
            "it is stopped"
        });
        (self.tell)(&Event::Shed { cell: name, how });
    }

    /// Stops a cell where it stands; `false`: that takes longer, and is waited for elsewhere.
    fn freeze(&mut self, at: usize) -> Result<bool, String> {
        let name = self.name(at);
        let Some(live) = self.live.get_mut(&at) else {
            return Ok(true);
        };
        let stands = live.begin_to_freeze(&name, &self.work)?;
        self.watches[at].frozen(timecell_client::now_ns(), true);
        Ok(stands)
    }

    /// A cell that took longer to freeze is frozen, or is not to be.
    pub(super) fn stands_still(
        &mut self,
        cell: &str,
        generation: u64,
        result: Result<bool, String>,
    ) {
        let leaving = self.desk.leaving.get_mut(cell);
        if let Some(leaving) = leaving.filter(|one| one.live.generation == generation) {
            if leaving.live.unfreeze.take().is_some()
                && let Err(why) = result
            {
                if let Some(watch) = &mut leaving.watch {
                    watch.frozen(timecell_client::now_ns(), false);
                }
                self.stop_leaving(cell, &why);
            }
            return;
        }
        let at = self.mission().position(cell);
        let live = at.and_then(|at| Some((at, self.live.get_mut(&at)?)));
        let Some((at, live)) = live.filter(|(_, live)| live.generation == generation) else {
            return;
        };
        if live.unfreeze.take().is_none() {
            return;
        }
        let how = match result {
            Ok(_) => Ok("it is frozen"),
            Err(why) => {
                self.watches[at].frozen(timecell_client::now_ns(), false);
                Err(why)
            }
        };
        self.tell_shed(at, how);
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
        let busy = self.live.iter().any(|(at, live)| {
            self.mission().cells[*at].is_high() && pids(live).iter().any(|pid| runs(*pid))
        });
        let used_ns = (self.live.keys())
            .filter(|at| self.mission().cells[**at].is_high())
            .filter_map(|at| self.watches[*at].used_ns())
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

    /// When it is to be looked for again.
    pub(super) fn next_return(&self) -> Option<i64> {
        self.back
            .map(|back| back.looked_ns.saturating_add(back.every_ns))
    }

    fn switch_to_low(&mut self) -> Result<(), RunError> {
        let began_ns = timecell_client::now_ns();
        self.mode = Mode::Low;
        self.back = None;
        for at in std::mem::take(&mut self.shed_by_mode) {
            self.unshed(at)?;
        }
        self.note(Entry::ModeSwitched { to: Mode::Low })?;
        (self.tell)(&Event::Mode {
            to: Mode::Low,
            why: "the cells of high criticality are idle".to_owned(),
            took_ns: timecell_client::now_ns() - began_ns,
        });
        Ok(())
    }

    /// Has every cell as the mode has it, whichever it was in when an update put cells aside, brought them back or added some: shed in high mode, and
    /// in low mode none that only high mode had shed.
    pub(super) fn fit_to_mode(&mut self) -> Result<(), RunError> {
        match (self.mode, self.mission().modes) {
            (Mode::Low, _) => {
                for at in std::mem::take(&mut self.shed_by_mode) {
                    self.unshed(at)?;
                }
                Ok(())
            }
            (Mode::High, Some(_)) => self.shed_all(),
            (Mode::High, None) => Ok(()),
        }
    }

    /// A cell that was shed goes on, or is started again.
    pub(super) fn unshed(&mut self, at: usize) -> Result<(), RunError> {
        let name = self.mission().cells[at].name.clone();
        self.note(Entry::CellReleased {
            cell: name.clone(),
            why: Hold::Shed,
        })?;
        let Some(live) = self.live.get(&at) else {
            if self.state.should_run(&name) {
                self.pending.insert(at);
            }
            return Ok(());
        };
        if live.told_until_ns.is_some() {
            // It is on its way out, and is started again once it is gone.
            self.due.insert(at, timecell_client::now_ns());
            return Ok(());
        }
        if live.forgotten {
            self.begin_anew(at);
            return Ok(());
        }
        self.end_best_effort(at);
        Ok(())
    }

    /// Goes on as before it was shed.
    pub(super) fn goes_on(&mut self, at: usize) {
        let name = self.name(at);
        let Some(live) = self.live.get_mut(&at) else {
            return;
        };
        live.give_classes_back();
        live.unfreeze();
        // Fine if it was not frozen.
        if let Err(error) = live.app.thaw() {
            (self.tell)(&Event::Left {
                cell: name.clone(),
                what: error.to_string(),
            });
        }
        self.watches[at].frozen(timecell_client::now_ns(), false);
        (self.tell)(&Event::Unshed { cell: name });
    }

    /// What a supervisor that is gone had shed is shed: it may have been killed before it had come so far.
    pub(super) fn take_over_shed(&mut self) {
        let shed = self.live.keys().copied().filter(|at| self.is_shed(*at));
        for at in shed.collect::<Vec<usize>>() {
            let cell = &self.mission().cells[at];
            let how = cell.when_shed;
            let grant = self.admission.grant(&cell.name);
            let has_class = grant.is_some_and(|grant| grant.band.is_some());
            let done = match how {
                WhenShed::Freeze => self.freeze(at).map(drop),
                WhenShed::BestEffort => {
                    if let Some(live) = self.live.get_mut(&at) {
                        // Threads of SCHED_DEADLINE are found by their names and held again.
                        live.forgotten = has_class;
                    }
                    self.begin_best_effort(at)
                        .map_or(Ok(()), |done| done.map(drop))
                }
                WhenShed::Stop => {
                    self.tell_to_end(at);
                    Ok(())
                }
            };
            // What goes well was told when it was shed.
            if let Err(why) = done {
                self.tell_shed(at, Err(why));
            }
        }
    }

    /// The mode of a supervisor that is gone goes on: what it had shed stays so until the mission comes back, and so does what it was to shed
    /// when it was killed.
    pub(super) fn take_over_mode(&mut self) -> Result<(), RunError> {
        if self.state.mode == Mode::Low || self.mission().modes.is_none() {
            return Ok(());
        }
        self.mode = Mode::High;
        self.shed_by_mode = (0..self.mission().cells.len())
            .filter(|at| self.is_shed(*at))
            .collect();
        self.back = Some(Return {
            looked_ns: timecell_client::now_ns(),
            every_ns: SHORTEST_NS,
            idle: None,
        });
        self.shed_all()
    }
}

impl super::cell::Live {
    /// Stops a cell where it stands; `false`: that takes longer, and is fetched as [`super::work::Done::Frozen`].
    fn begin_to_freeze(&mut self, name: &str, work: &Work) -> Result<bool, String> {
        let mut freezing = self.app.begin_freeze().map_err(|error| error.to_string())?;
        let stands = freezing.wait(AT_ONCE)?;
        if !stands {
            let unwanted = Arc::new(AtomicBool::new(false));
            self.unfreeze = Some(Arc::clone(&unwanted));
            work.freeze(name.to_owned(), self.generation, freezing, unwanted);
        }
        Ok(stands)
    }
}

/// The processes of a cell.
pub(super) fn pids(live: &super::cell::Live) -> Vec<i32> {
    let others = live.app.processes().into_iter().map(|process| process.pid);
    std::iter::once(live.app.pid()).chain(others).collect()
}

pub(super) fn threads(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    // A process that is gone has none.
    (tasks.into_iter().flatten().flatten())
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether a thread of this process runs or waits for a cpu.
fn runs(pid: i32) -> bool {
    threads(pid).into_iter().any(|thread| {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat"));
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
