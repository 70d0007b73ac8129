//! The lives of a mission's cells: whose turn it is to start, what a cell is made of, and what follows when one ends.

use engine::Cell as _;

use super::cell::{Given, page_dir, work_dir};
use super::making::{Made, Making};
use super::work::Starting;
use super::{Event, Keeper, RunError, Used, sources, spec};
use crate::process::Process;
use crate::state::{Enforced, Entry, Hold, Started};

impl Keeper<'_> {
    /// Starts the cells whose turn has come: each once those that it waits for are ready, or will not be.
    pub(super) fn start_pending(&mut self) -> Result<(), RunError> {
        // Also where nothing is started: what keeps it is told when it is over.
        self.work.turn_has_come(timecell_client::now_ns());
        if self.pending.is_empty() {
            return Ok(());
        }
        let kept_back = self.await_room();
        for at in self.mission().start_order() {
            if !self.work.turn_has_come(timecell_client::now_ns()) {
                return Ok(());
            }
            let is_next = self.pending.contains(&at) && !kept_back.contains(&at);
            if is_next && !self.is_there(at) && !self.waits(at) {
                self.pending.remove(&at);
                self.start(at)?;
                self.work.in_turn = Some(self.name(at));
            }
        }
        Ok(())
    }

    /// Whether a cell that this one comes after is still to become ready.
    pub(super) fn waits(&self, at: usize) -> bool {
        let cell = &self.mission().cells[at];
        let mut before = cell.after.iter().chain(&cell.needs);
        before.any(|name| {
            let Some(other) = self.mission().position(name) else {
                return false;
            };
            let to_come = self.pending.contains(&other) || self.due.contains_key(&other);
            let not_yet = self.live.contains_key(&other) && !self.watches[other].is_ready();
            to_come || not_yet || self.work.is_at(name)
        })
    }

    pub(super) fn start(&mut self, at: usize) -> Result<(), RunError> {
        let cell = &self.mission().cells[at];
        let name = cell.name.clone();
        self.due.remove(&at);
        self.pending.remove(&at);
        let runs = |name: &str| {
            let at = self.mission().position(name);
            at.is_some_and(|at| self.live.contains_key(&at))
        };
        let needed = cell.needs.iter().find(|needed| !runs(needed));
        if needed.is_some_and(|needed| self.work.starting.contains_key(needed)) {
            // Whether that one runs is seen shortly.
            self.pending.insert(at);
            return Ok(());
        }
        if let Some(needed) = needed {
            let why = format!("it needs `{needed}`, which does not run");
            self.note(Entry::CellHeld {
                cell: name.clone(),
                why: Hold::Needs,
            })?;
            (self.tell)(&Event::Stays { cell: name, why });
            return Ok(());
        }
        let generation = self
            .state
            .cells
            .get(&name)
            .map_or(0, |cell| cell.generation)
            + 1;
        let beside = self.place_for(&name);
        // What a restart answers comes before it, for whoever reads the journal.
        self.write_incidents()?;
        self.note(Entry::CellStarting {
            cell: name.clone(),
            generation,
            beside,
        })?;
        let began_ns = timecell_client::now_ns();
        let given = Given::to(self.admission, &name, beside);
        let dir = work_dir(&self.dir, &name, beside);
        let mut spec = spec::of(self.file, cell, given.grant(), self.memory_bytes(), &dir);
        spec.within = self.mechanisms.within(given.partition());
        sources::hold(&mut spec, &self.state.sources);
        let starting = Starting {
            generation,
            beside,
            began_ns,
            ends_by: None,
        };
        let making = Making {
            mission: self.mission().name.clone(),
            uids: self.mission().uids,
            spec,
            mechanisms: self.mechanisms.clone(),
            given,
            cell: cell.clone(),
            generation,
            paging: self.watches[at].paging(),
            page: page_dir(&self.dir, &name, beside),
            output: self.work.output_to,
        };
        let written = self.journal.written();
        self.work.start(starting, move || written.wait(), making);
        Ok(())
    }

    /// The most memory of a cell for which the file leaves it open.
    fn memory_bytes(&self) -> Option<u64> {
        (self.admission.memory.as_ref()).and_then(|memory| memory.default_bytes)
    }

    /// A cell has been made and runs.
    pub(super) fn started(&mut self, at: usize, made: Made, began_ns: i64) -> Result<(), RunError> {
        let name = self.mission().cells[at].name.clone();
        let Made { mut live, page } = made;
        let page = page.map_err(|what| {
            let cell = name.clone();
            (self.tell)(&Event::Unwatched { cell, what });
        });
        let pid = live.app.pid();
        let grant = self.admission.grant(&name);
        let guarantee = match &live.hold {
            Some(hold) => hold.guarantee(),
            None => "best effort, nothing is guaranteed".to_owned(),
        };
        let reservation = grant.and_then(|grant| {
            Some(Enforced {
                budget_ns: i64::try_from(grant.budget_ns?).ok()?,
                period_ns: i64::try_from(grant.period_ns?).ok()?,
            })
        });
        let generation = live.generation;
        let took_ns = live.started_ns - began_ns;
        let process = Process::of(pid)?;
        // From here on it is watched, whatever the journal says.
        let counters = std::mem::take(&mut live.counters);
        self.watches[at].started(page.ok(), counters, live.started_ns);
        self.insert_live(at, live);
        self.desk.failures.remove(&name);
        if let Some(process) = process {
            self.note(Entry::CellStarted {
                cell: name.clone(),
                generation,
                started: Started {
                    process,
                    enforcer: grant.map(|grant| grant.enforcer.name().to_owned()),
                    reservation,
                    cpus: match grant {
                        Some(grant) => grant.cpus.clone(),
                        None => (self.admission.best_effort(&name).unwrap_or_default()).to_vec(),
                    },
                },
            })?;
        }
        (self.tell)(&Event::Started {
            cell: name,
            generation,
            pid,
            guarantee,
            took_ns,
        });
        Ok(())
    }

    /// Looks for cells that have ended, and kills those that did not end in the time that they had.
    pub(super) fn reap(&mut self) -> Result<(), RunError> {
        let all: Vec<usize> = self.live.keys().copied().collect();
        for at in all {
            let Some(live) = self.live.get_mut(&at) else {
                continue;
            };
            let over = live.over()?;
            if over.is_some() || live.app.end().is_some() {
                // Its groups may go with it.
                self.watches[at].keep_counters(timecell_client::now_ns());
            }
            let Some((end, cause)) = over else {
                continue;
            };
            let cause = cause.or_else(|| self.watches[at].memory_kill(end));
            self.tell_limits(at, cause.as_ref())?;
            let Some(live) = self.live.get(&at) else {
                continue;
            };
            let asked = live.told_until_ns.is_some();
            let used = Used {
                cpu_ns: self.watches[at].used_ns(),
                lasted_ns: timecell_client::now_ns().saturating_sub(live.started_ns),
                tasks: self.watches[at].reported(),
                counted: live.hold.as_ref().and_then(|hold| hold.counted()),
            };
            let event = Event::Used {
                cell: self.name(at),
                used: Box::new(used),
            };
            (self.tell)(&event);
            if let Some(live) = self.live.remove(&at) {
                let name = &self.mission().cells[at].name;
                let beside = self.is_beside(name);
                self.put_away(name.clone(), live, (end, cause), beside, asked, false);
            }
        }
        Ok(())
    }

    /// A cell is not to run from now on, and neither are those that need it.
    pub(super) fn stays(&mut self, at: usize, hold: Hold) -> Result<(), RunError> {
        let cell = self.mission().cells[at].name.clone();
        self.due.remove(&at);
        self.note(Entry::CellHeld {
            cell: cell.clone(),
            why: hold,
        })?;
        (self.tell)(&Event::Stays {
            cell: cell.clone(),
            why: hold.because().to_owned(),
        });
        for dependent in self.mission().dependents(at) {
            self.due.remove(&dependent);
            let waited = self.pending.remove(&dependent);
            if waited || self.is_there(dependent) {
                let name = self.mission().cells[dependent].name.clone();
                self.note(Entry::CellHeld {
                    cell: name.clone(),
                    why: Hold::Needs,
                })?;
                (self.tell)(&Event::Stays {
                    cell: name,
                    why: format!("it needs `{cell}`, which stays stopped"),
                });
                self.tell_to_end(dependent);
            }
        }
        Ok(())
    }

    pub(super) fn restart_due(&mut self) -> Result<(), RunError> {
        let now = timecell_client::now_ns();
        let due: Vec<usize> = (self.due.iter())
            // One that was killed for it is waited for.
            .filter(|(cell, at)| **at <= now && !self.is_there(**cell))
            .map(|(cell, _)| *cell)
            .collect();
        for at in due {
            self.due.remove(&at);
            self.start(at)?;
        }
        Ok(())
    }

    /// SIGTERM; who has not ended when his time is over is killed.
    pub(super) fn tell_to_end(&mut self, at: usize) {
        self.tell_to_end_by(libc::SIGTERM, at);
    }

    /// The same by another signal.
    pub(super) fn tell_to_end_by(&mut self, signal: i32, at: usize) {
        let patience = self.mission().cells[at].stop_timeout.ns();
        let now_ns = timecell_client::now_ns();
        self.work
            .ask_for_end_by(signal, &self.mission().cells[at].name);
        if let Some(live) = self.live.get_mut(&at)
            && live.told_until_ns.is_none()
        {
            self.watches[at].stopping(now_ns);
            live.tell_to_end(signal, patience);
        }
    }
}
