//! Stops, starts and restarts cells on request.

use std::collections::BTreeSet;

use super::RunError;
use super::desk::Pending;
use super::keeper::Keeper;
use super::phase::Next;
use crate::cause::ended;
use crate::control::{CellDone, Refusal, Say};
use crate::state::{Entry, Hold};

impl Keeper<'_> {
    pub(super) fn stop_by_hand(&mut self, client: u64, cells: &[usize]) -> Result<(), RunError> {
        let mut waits = Vec::new();
        let mut done = Vec::new();
        // Those that others need come last.
        for &at in cells.iter().rev() {
            let name = self.name(at);
            let mut ends = vec![at];
            ends.extend(self.mission().dependents(at));
            self.stays(at, Hold::ByHand)?;
            for one in ends {
                let known = waits.iter().any(|(cell, _)| *cell == self.name(one));
                if let Some(generation) = self.generation_there(one).filter(|_| !known) {
                    waits.push((self.name(one), generation));
                }
            }
            if self.is_there(at) {
                self.tell_to_end(at)?;
            } else {
                done.push(CellDone {
                    text: "was not running, stays stopped".to_owned(),
                    ..self.done_ended(&name, "")
                });
            }
        }
        self.desk.pending.push(Pending {
            client,
            again: false,
            waits,
            starts: Vec::new(),
            done,
        });
        Ok(())
    }

    pub(super) fn restart_by_hand(&mut self, client: u64, cells: &[usize]) -> Result<(), RunError> {
        let moving = (cells.iter()).find(|at| self.is_there(**at) && !self.is_running(**at));
        if let Some(&at) = moving {
            let why = format!(
                "`{}` is being started or stopped; try again when that is done",
                self.name(at)
            );
            self.desk.refuse(client, Refusal::NotPossible, why);
            return Ok(());
        }
        let stopped = cells.iter().find(|at| !self.is_running(**at));
        if let Some(&at) = stopped {
            let name = self.name(at);
            let why = format!("`{name}` is not running; start it with `timecell start {name}`");
            self.desk.refuse(client, Refusal::NotPossible, why);
            return Ok(());
        }
        let mut waits = Vec::new();
        for &at in cells {
            waits.push((self.name(at), self.cells[at].generation));
            self.tell_to_end(at)?;
        }
        self.desk.pending.push(Pending {
            client,
            again: true,
            waits,
            starts: Vec::new(),
            done: Vec::new(),
        });
        Ok(())
    }

    pub(super) fn start_by_hand(&mut self, client: u64, cells: &[usize]) -> Result<(), RunError> {
        // First whether all of them can, so that a refusal changes nothing.
        for &at in cells {
            if let Err(why) = self.may_start(at, cells) {
                self.desk.refuse(client, Refusal::NotPossible, why);
                return Ok(());
            }
        }
        let mut done = Vec::new();
        let mut starts = Vec::new();
        for &at in cells {
            let name = self.name(at);
            if self.cells[at].phase.is_starting() {
                starts.push((name, true));
                continue;
            }
            if let Some(live) = self.live(at) {
                let pid = engine::Cell::pid(&live.app);
                done.push(CellDone {
                    text: format!("already running (pid {pid})"),
                    pid: Some(pid),
                    end: None,
                    cell: name,
                });
                continue;
            }
            self.release(at, &|_| true);
            // Earlier failures no longer count.
            self.cells[at].watch = self.new_watch(&self.mission().cells[at], &[])?;
            // A cell that has just ended starts afresh once nothing is left of it.
            self.tell_to_end(at)?;
            self.follow(at, Next::Waits);
            if !self.is_there(at) {
                self.start(at)?;
            }
            starts.push((name, true));
        }
        self.desk.pending.push(Pending {
            client,
            again: false,
            waits: Vec::new(),
            starts,
            done,
        });
        Ok(())
    }

    fn may_start(&self, at: usize, with: &[usize]) -> Result<(), String> {
        let cell = &self.mission().cells[at];
        let known = self.state.cells.get(&cell.name);
        if known.is_some_and(|known| known.holds.contains(&Hold::Shed)) {
            return Err(format!(
                "`{}` is shed in favour of others and comes back in low mode",
                cell.name
            ));
        }
        if self.cells[at].phase.is_told() {
            return Err(format!(
                "`{}` is being stopped; try again when that is done",
                cell.name
            ));
        }
        for needed in &cell.needs {
            let there = self.mission().position(needed);
            if there.is_some_and(|at| {
                let is_starting = self.cells[at].phase.is_starting();
                !self.is_running(at) && !is_starting && !with.contains(&at)
            }) {
                return Err(format!(
                    "`{}` needs `{needed}`, which is not running; start both: timecell start {needed} {}",
                    cell.name, cell.name
                ));
            }
        }
        Ok(())
    }

    /// Lets go of the reasons why a cell is not to run.
    pub(super) fn release(&mut self, at: usize, which: &dyn Fn(Hold) -> bool) {
        let name = self.name(at);
        let holds: BTreeSet<Hold> = (self.state.cells.get(&name))
            .map(|cell| cell.holds.clone())
            .unwrap_or_default();
        for why in holds.into_iter().filter(|hold| which(*hold)) {
            self.note(Entry::CellReleased {
                cell: name.clone(),
                why,
            });
        }
    }

    /// Starts those that were stopped only because they need this one.
    fn start_dependents(&mut self, at: usize) -> Result<Vec<(String, bool)>, RunError> {
        let dependents = self.mission().dependents(at);
        let order = self.mission().start_order();
        let mut begun = Vec::new();
        for dependent in order.into_iter().filter(|at| dependents.contains(at)) {
            let name = self.name(dependent);
            let runs = |needed: &String| {
                (self.mission().position(needed))
                    .is_some_and(|at| self.is_running(at) || self.cells[at].phase.waits())
            };
            let all = self.mission().cells[dependent].needs.iter().all(runs);
            if !all || self.is_there(dependent) {
                continue;
            }
            self.release(dependent, &|hold| hold == Hold::Needs);
            if self.state.should_run(&name) && self.cells[dependent].phase.due_ns().is_none() {
                self.follow(dependent, Next::Waits);
                begun.push(dependent);
            }
        }
        self.start_pending()?;
        Ok((begun.into_iter().map(|at| (self.name(at), false))).collect())
    }

    /// Whether it is seen shortly if a cell runs: it is being made, or is as soon as another one was.
    fn is_coming(&self, at: usize) -> bool {
        let cell = &self.mission().cells[at];
        let phase = &self.cells[at].phase;
        let mut before = cell.after.iter().chain(&cell.needs);
        let starts = |name: &String| {
            let at = self.mission().position(name);
            at.is_some_and(|at| self.cells[at].phase.is_starting())
        };
        let moves = !self.is_running(at) && self.is_there(at);
        phase.is_starting() || (phase.waits() && (moves || before.any(starts)))
    }

    /// Answers those whose cells have ended.
    pub(super) fn settle(&mut self) -> Result<(), RunError> {
        let mut pending = std::mem::take(&mut self.desk.pending);
        for one in &mut pending {
            let waits = std::mem::take(&mut one.waits);
            for (name, generation) in waits {
                let at = self.mission().position(&name);
                if at.and_then(|at| self.generation_there(at)) == Some(generation) {
                    one.waits.push((name, generation));
                    continue;
                }
                match at {
                    Some(at) if one.again && self.state.should_run(&name) => {
                        if !self.is_there(at) {
                            self.follow(at, Next::Waits);
                            self.start(at)?;
                        }
                        one.starts.push((name, false));
                    }
                    _ => one.done.push(self.done_ended(&name, "stays stopped")),
                }
            }
            let mut starts = std::mem::take(&mut one.starts);
            while let Some((name, with_dependents)) = starts.pop() {
                match self.mission().position(&name) {
                    Some(at) if self.is_coming(at) => one.starts.push((name, with_dependents)),
                    Some(at) => {
                        one.done.push(self.done_started(at));
                        if with_dependents && self.is_running(at) {
                            starts.extend(self.start_dependents(at)?);
                        }
                    }
                    None => {}
                }
            }
            one.starts.reverse();
        }
        for one in pending {
            if one.waits.is_empty() && one.starts.is_empty() {
                let cells = one.done;
                self.desk.say(one.client, Say::Done { cells }, true);
            } else {
                self.desk.pending.push(one);
            }
        }
        Ok(())
    }

    /// The result for a cell that was started.
    pub(super) fn done_started(&self, at: usize) -> CellDone {
        let cell = self.name(at);
        if let Some(live) = self.live(at) {
            let pid = engine::Cell::pid(&live.app);
            return CellDone {
                text: format!("runs (pid {pid}, start {})", self.cells[at].generation),
                pid: Some(pid),
                end: None,
                cell,
            };
        }
        let why = self.cells[at].failure.clone();
        let held = self.state.cells.get(&cell);
        let held = held.and_then(|cell| cell.holds.first());
        CellDone {
            text: match (why, held) {
                (Some(why), _) => format!("could not be started: {why}"),
                (None, Some(hold)) => format!("not running: {}", hold.clause()),
                (None, None) if self.cells[at].phase.waits() => {
                    "starts once the cells it comes after are ready".to_owned()
                }
                (None, None) => "not running".to_owned(),
            },
            pid: None,
            end: None,
            cell,
        }
    }

    /// The result for a cell that was told to end.
    pub(super) fn done_ended(&self, cell: &str, then: &str) -> CellDone {
        let known = self.state.cells.get(cell);
        let end = known.and_then(|cell| cell.last_end.as_ref().map(|(_, _, end)| *end));
        let cause = known.and_then(|cell| cell.last_cause.as_ref());
        let by_need = known.is_some_and(|cell| {
            cell.holds.contains(&Hold::Needs) && !cell.holds.contains(&Hold::ByHand)
        });
        let then = if by_need && then == "stays stopped" {
            "stays stopped, because it needs a cell that does"
        } else {
            then
        };
        CellDone {
            cell: cell.to_owned(),
            pid: None,
            end,
            text: match end {
                Some(end) => format!("{}, {then}", ended(end, cause)),
                None => then.to_owned(),
            },
        }
    }
}
