//! The lives of a mission's cells: which cell starts next, which has ended and which stays stopped; and carrying out the
//! decisions on each, with the results of the other threads.

use engine::Cell as _;
use model::mission;

use super::cell::{Given, Live};
use super::keeper::Keeper;
use super::making::Making;
use super::phase::{Ask, Effect, Event as Happens, Gone, Next, Phase};
use super::version::Cell;
use super::work::Done;
use super::{Event, RunError, Used, sources, spec};
use crate::cause::Cause;
use crate::dirs::{page_dir, work_dir};
use crate::end::End;
use crate::incident::OutputTail;
use crate::page::Place;
use crate::process::Process;
use crate::state::{Enforced, Entry, Hold, Started};

/// Characters of a failed start's reason that the journal keeps.
const WHY: usize = 500;

impl Keeper<'_> {
    /// The mission file's definition of this version.
    pub(super) fn declared(&self, at: usize) -> &mission::Cell {
        match &self.cells[at].aside {
            Some(aside) => &aside.declared,
            None => &self.mission().cells[at],
        }
    }

    pub(super) fn name(&self, at: usize) -> String {
        self.declared(at).name.clone()
    }

    /// Those that the mission means, in its order.
    pub(super) fn own(&self) -> &[Cell] {
        &self.cells[..self.mission().cells.len()]
    }

    /// Those that an update has put aside, by their positions.
    pub(super) fn put_aside(&self) -> std::ops::Range<usize> {
        self.mission().cells.len()..self.cells.len()
    }

    /// The version of this cell that an update has put aside, as long as it is there.
    pub(super) fn aside_of(&self, name: &str) -> Option<usize> {
        self.put_aside().find(|at| self.declared(*at).name == name)
    }

    /// The version of this cell that has this life.
    pub(super) fn of_life(&self, name: &str, generation: u64) -> Option<usize> {
        (0..self.cells.len())
            .find(|at| self.cells[*at].generation == generation && self.declared(*at).name == name)
    }

    /// The mission's cells that run, whether they are to end or not.
    pub(super) fn running(&self) -> impl Iterator<Item = (usize, &Live)> {
        let own = self.own().iter().enumerate();
        own.filter_map(|(at, cell)| Some((at, cell.phase.live()?)))
    }

    pub(super) fn live(&self, at: usize) -> Option<&Live> {
        self.cells[at].phase.live()
    }

    pub(super) fn is_running(&self, at: usize) -> bool {
        self.live(at).is_some()
    }

    /// Whether a cell runs, is being made, or is being taken down.
    pub(super) fn is_there(&self, at: usize) -> bool {
        self.generation_there(at).is_some()
    }

    /// Generation of the life that a cell has, is being given or is losing.
    pub(super) fn generation_there(&self, at: usize) -> Option<u64> {
        let cell = &self.cells[at];
        match cell.phase.is_there() {
            true => Some(cell.generation),
            false => self.work.clears(&self.declared(at).name),
        }
    }

    /// Whether nothing is being made, taken down or changed.
    pub(super) fn is_idle(&self) -> bool {
        let moves = |cell: &Cell| cell.phase.is_starting() || cell.phase.is_removing();
        self.work.is_idle() && !self.cells.iter().any(moves)
    }

    /// Sets the next step after the present life of a cell.
    pub(super) fn follow(&mut self, at: usize, next: Next) {
        let phase = std::mem::take(&mut self.cells[at].phase);
        (self.cells[at].phase, _) = phase.decide(Happens::Follow(next), 0);
    }

    pub(super) fn is_shed(&self, at: usize) -> bool {
        let known = self.state.cells.get(&self.declared(at).name);
        known.is_some_and(|cell| cell.holds.contains(&Hold::Shed))
    }

    /// Starts the cells whose turn has come: each once those that it waits for are ready, or will not be.
    pub(super) fn start_pending(&mut self) -> Result<(), RunError> {
        // Even if nothing is started: the obstacle is reported when that is over.
        self.work.turn_has_come(timecell_client::now_ns());
        if !self.own().iter().any(|cell| cell.phase.waits()) {
            return Ok(());
        }
        let kept_back = self.await_room();
        for at in self.mission().start_order() {
            if !self.work.turn_has_come(timecell_client::now_ns()) {
                return Ok(());
            }
            let is_next = self.cells[at].phase.waits() && !kept_back.contains(&at);
            if is_next && !self.is_there(at) && !self.waits(at) {
                self.start(at)?;
                if let Phase::Starting(began_ns, _) = self.cells[at].phase {
                    self.work.in_turn = Some((self.name(at), began_ns));
                }
            }
        }
        Ok(())
    }

    /// Whether a cell that this one comes after is still to become ready.
    fn waits(&self, at: usize) -> bool {
        let cell = &self.mission().cells[at];
        let mut before = cell.after.iter().chain(&cell.needs);
        before.any(|name| {
            self.mission().position(name).is_some_and(|other| {
                let cell = &self.cells[other];
                let to_come = match self.is_running(other) {
                    true => !cell.watch.is_ready(),
                    false => self.is_there(other),
                };
                to_come || cell.phase.next() != Next::Stays
            })
        })
    }

    /// Starts a cell of which nothing is there, and which is to run.
    pub(super) fn start(&mut self, at: usize) -> Result<(), RunError> {
        let cell = &self.mission().cells[at];
        let position = |name: &String| self.mission().position(name);
        let needed = (cell.needs.iter())
            .find(|needed| !position(needed).is_some_and(|at| self.is_running(at)));
        let Some(needed) = needed else {
            return self.happens(at, Happens::Start);
        };
        if position(needed).is_some_and(|at| self.cells[at].phase.is_starting()) {
            // Whether that one runs is seen shortly.
            self.follow(at, Next::Waits);
            return Ok(());
        }
        let why = format!("it needs `{needed}`, which is not running");
        self.follow(at, Next::Stays);
        self.hold(at, Hold::Needs, why);
        Ok(())
    }

    /// A cell is not to run from now on.
    fn hold(&mut self, at: usize, hold: Hold, why: String) {
        let cell = self.name(at);
        self.note(Entry::CellHeld {
            cell: cell.clone(),
            why: hold,
        });
        (self.tell)(&Event::Stays { cell, why });
    }

    /// Looks for cells that have ended, and kills those that did not end in the time that they had.
    pub(super) fn reap(&mut self) -> Result<(), RunError> {
        for at in 0..self.cells.len() {
            let cell = &mut self.cells[at];
            let Some(live) = cell.phase.live_mut() else {
                continue;
            };
            live.ask_again();
            let ended = live.ended();
            let ended = ended.map_err(RunError::system("learn how a cell ended"))?;
            let has_ended = live.tended.settles_ns().is_some();
            let killed_as_asked = live.killed_as_asked;
            if has_ended && cell.aside.is_none() {
                // Its groups may go with it.
                cell.watch.keep_counters(timecell_client::now_ns());
            }
            let event = match ended {
                Some(end) => Happens::Ended {
                    end,
                    memory: cell.watch.memory_kill(end).filter(|_| cell.aside.is_none()),
                },
                // Reported once it has settled.
                None if has_ended => continue,
                None => Happens::Runs { killed_as_asked },
            };
            self.happens(at, event)?;
        }
        Ok(())
    }

    /// A cell is not to run from now on, and neither are those that need it.
    pub(super) fn stays(&mut self, at: usize, hold: Hold) -> Result<(), RunError> {
        self.follow(at, Next::Stays);
        self.hold(at, hold, hold.because().to_owned());
        for dependent in self.mission().dependents(at) {
            let waited = self.cells[dependent].phase.waits();
            self.follow(dependent, Next::Stays);
            if waited || self.is_there(dependent) {
                let why = format!("it needs `{}`, which stays stopped", self.name(at));
                self.hold(dependent, Hold::Needs, why);
                self.tell_to_end(dependent)?;
            }
        }
        Ok(())
    }

    pub(super) fn restart_due(&mut self) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        for at in 0..self.own().len() {
            let is_due = (self.cells[at].phase.due_ns()).is_some_and(|due| due <= now_ns);
            // A cell that was killed for it is waited for.
            if !is_due || self.is_there(at) {
                continue;
            }
            match self.state.should_run(&self.name(at)) {
                true => self.start(at)?,
                // It was shed, and comes back when it no longer is.
                false => self.follow(at, Next::Stays),
            }
        }
        Ok(())
    }

    /// SIGTERM; a cell that has not ended when its time is over is killed.
    pub(super) fn tell_to_end(&mut self, at: usize) -> Result<(), RunError> {
        self.tell_to_end_by(libc::SIGTERM, at)
    }

    /// The same by another signal.
    pub(super) fn tell_to_end_by(&mut self, signal: i32, at: usize) -> Result<(), RunError> {
        let patience_ns = self.declared(at).stop_timeout.ns();
        let ask = Ask {
            signal,
            patience_ns,
        };
        self.happens(at, Happens::AskEnd(ask))
    }

    /// Advances a cell by an event.
    pub(super) fn happens(&mut self, at: usize, event: Happens<Live>) -> Result<(), RunError> {
        let phase = std::mem::take(&mut self.cells[at].phase);
        let (phase, effects) = phase.decide(event, timecell_client::now_ns());
        self.cells[at].phase = phase;
        effects
            .into_iter()
            .try_for_each(|effect| self.act(at, effect))
    }

    fn act(&mut self, at: usize, effect: Effect<Live>) -> Result<(), RunError> {
        let cell = &mut self.cells[at];
        let is_own = cell.aside.is_none();
        match effect {
            Effect::Make => self.make(at),
            Effect::Begin(began_ns) => self.begin(at, began_ns)?,
            Effect::TellNotMade(why) => self.tell_not_made(at, why),
            Effect::JudgeNotMade => self.never_started(at)?,
            Effect::Ask(signal) => {
                cell.watch.stopping(timecell_client::now_ns());
                if let Some(live) = cell.phase.live_mut() {
                    live.ask_to_end(signal);
                }
            }
            Effect::Kill => {
                if let Some(live) = cell.phase.live() {
                    let killed = live.app.kill(libc::SIGKILL).or_else(gone);
                    killed.map_err(RunError::system("kill a cell"))?;
                }
            }
            Effect::Remove(live) => self.remove(at, live)?,
            Effect::TellEnd(gone) => self.tell_end(at, gone),
            Effect::Judge(end) if is_own => {
                self.ended_untold(at, end)?;
                self.cells[at].tail = None;
            }
            // Nobody asks for the next step of a version that was put aside.
            Effect::Judge(_) | Effect::Forget => {
                cell.watch.gone();
                cell.tail = None;
            }
        }
        Ok(())
    }

    /// Has a cell made.
    fn make(&mut self, at: usize) {
        let cell = &self.mission().cells[at];
        let name = cell.name.clone();
        let before = self.state.cells.get(&name);
        let generation = before.map_or(0, |cell| cell.generation) + 1;
        let beside = self.place_for(&name);
        (self.cells[at].generation, self.cells[at].beside) = (generation, beside);
        // The cause of a restart comes before it in the journal.
        self.write_incidents();
        self.note(Entry::CellStarting {
            cell: name.clone(),
            generation,
            beside,
        });
        let given = Given::to(self.admission, &name, beside);
        let dir = work_dir(&self.dir, &name, beside);
        // The most memory of a cell for which the file leaves it open.
        let memory = self.admission.memory.as_ref();
        let memory_bytes = memory.and_then(|memory| memory.default_bytes);
        let mut spec = spec::of(self.file, cell, Some(&given), memory_bytes, &dir);
        spec.within = self.mechanisms.within(given.partition());
        sources::hold(&mut spec, &self.state.sources);
        let system = (self.mission().jailhouse.as_ref())
            .map(|jailhouse| spec::host_path(self.file, &jailhouse.system));
        let mut cell = cell.clone();
        let loads = cell
            .partition
            .iter_mut()
            .flat_map(|partition| &mut partition.load);
        loads.for_each(|load| load.file = spec::host_path(self.file, &load.file));
        let making = Making {
            mission: self.mission().name.clone(),
            uids: self.mission().uids,
            spec,
            system,
            mechanisms: self.mechanisms.clone(),
            given,
            cell,
            generation,
            paging: self.cells[at].watch.paging(),
            page: page_dir(&self.dir, &name, beside),
            output: self.work.output_to,
        };
        let written = self.journal.written();
        self.work.start(move || written.wait(), making);
    }

    /// A cell has been made and runs.
    fn begin(&mut self, at: usize, began_ns: i64) -> Result<(), RunError> {
        let name = self.name(at);
        let cell = &mut self.cells[at];
        let Some(live) = cell.phase.live_mut() else {
            return Ok(());
        };
        let (pid, guarantee) = (live.app.pid(), live.hold.guarantee());
        let (generation, started_ns) = (cell.generation, live.started_ns);
        let counters = std::mem::take(&mut live.counters);
        let page = live.page.take().and_then(|page| {
            page.map_err(|what| {
                let cell = name.clone();
                (self.tell)(&Event::Unwatched { cell, what });
            })
            .ok()
        });
        let process = Process::of(pid)?;
        // From here on it is watched, regardless of the journal.
        cell.watch.started(page, counters, started_ns);
        cell.failure = None;
        self.keep_output(at);
        let grant = self.admission.grant(&name);
        let reservation = grant.and_then(|grant| {
            Some(Enforced {
                budget_ns: i64::try_from(grant.budget_ns?).ok()?,
                period_ns: i64::try_from(grant.period_ns?).ok()?,
            })
        });
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
            });
        }
        let mutexes = grant.map(|grant| format!("mutexes: {}", grant.mutexes()));
        (self.tell)(&Event::Started {
            cell: name.clone(),
            generation,
            pid,
            guarantee,
            took_ns: started_ns - began_ns,
        });
        if let Some(what) = mutexes {
            (self.tell)(&Event::Held { cell: name, what });
        }
        Ok(())
    }

    /// A cell runs: its output is kept from now on.
    pub(super) fn keep_output(&mut self, at: usize) {
        let name = self.name(at);
        let cell = &mut self.cells[at];
        let log = cell.phase.live_mut().and_then(|live| live.app.lend_log());
        if let Some(log) = log {
            self.work.output().give(&name, cell.generation, log);
        }
    }

    fn tell_not_made(&mut self, at: usize, why: String) {
        let cell = self.name(at);
        self.note(Entry::CellEnded {
            cell: cell.clone(),
            generation: self.cells[at].generation,
            end: End::Unknown,
            // An engine may say a lot, and the journal is not its log: the lines after the first tell where it failed.
            cause: why.lines().next().map(|why| Cause::NotStarted {
                why: why.chars().take(WHY).collect(),
            }),
        });
        self.cells[at].failure = Some(why.clone());
        (self.tell)(&Event::NotStarted { cell, why });
    }

    /// Has the remains of a cell removed that has ended, or is killed by that; its end is on record once that is done.
    fn remove(&mut self, at: usize, mut live: Live) -> Result<(), RunError> {
        let name = self.name(at);
        for what in live.threads.refused(live.app.agent()) {
            let cell = name.clone();
            (self.tell)(&Event::Held { cell, what });
        }
        let is_own = self.cells[at].aside.is_none();
        if is_own {
            // Its groups may go with it.
            self.cells[at]
                .watch
                .keep_counters(timecell_client::now_ns());
        }
        let watch = &self.cells[at].watch;
        let (cpu_ns, tasks) = (watch.used_ns(), watch.reported());
        let earlier = self.earlier.entry(name.clone()).or_default();
        earlier.add(cpu_ns, &tasks);
        if is_own {
            let cause = match &self.cells[at].phase {
                Phase::Removing(gone, _) => gone.cause.clone(),
                _ => None,
            };
            self.tell_limits(at, cause.as_ref());
            let used = Used {
                cpu_ns,
                lasted_ns: timecell_client::now_ns().saturating_sub(live.started_ns),
                tasks,
                counted: live.hold.counted(),
            };
            (self.tell)(&Event::Used {
                cell: name.clone(),
                used: Box::new(used),
            });
        }
        self.work.remove(name, self.cells[at].generation, live);
        Ok(())
    }

    /// Nothing is left of a life.
    fn tell_end(&mut self, at: usize, gone: Gone) {
        let Gone { end, cause, asked } = gone;
        let (cell, generation) = (self.name(at), self.cells[at].generation);
        self.note(Entry::CellEnded {
            cell: cell.clone(),
            generation,
            end,
            cause: cause.clone(),
        });
        (self.tell)(&Event::Ended {
            cell: cell.clone(),
            end,
            cause,
            asked,
        });
        if self.cells[at].aside.is_some() {
            self.remove_page(&cell, self.cells[at].beside);
        }
    }

    /// Removes the page of a cell that has ended.
    pub(super) fn remove_page(&mut self, cell: &str, beside: bool) {
        let page = Place::at(&page_dir(&self.dir, cell, beside)).remove();
        if let Err(error) = page {
            (self.tell)(&Event::Left {
                cell: cell.to_owned(),
                what: error.to_string(),
            });
        }
    }

    /// Goes on with the results of other threads.
    pub(super) fn fetch_work(&mut self) -> Result<(), RunError> {
        for done in self.work.fetch() {
            match done {
                Done::Started {
                    cell,
                    generation,
                    result,
                } => {
                    self.work.in_turn.take_if(|(name, _)| *name == cell);
                    let made = match result {
                        Ok(live) => Happens::Made(*live),
                        Err(why) => Happens::NotMade(why),
                    };
                    match (self.of_life(&cell, generation), made) {
                        (Some(at), made) => self.happens(at, made)?,
                        // Nobody waits for it any more, and it must not stay.
                        (None, Happens::Made(live)) => self.work.remove(cell, generation, live),
                        (None, _) => {}
                    }
                }
                Done::Removed {
                    cell,
                    generation,
                    end,
                    tail,
                    left,
                } => {
                    for what in left {
                        let cell = cell.clone();
                        (self.tell)(&Event::Left { cell, what });
                    }
                    self.removed(cell, generation, end, tail)?;
                }
                Done::Frozen {
                    cell,
                    generation,
                    result,
                } => self.stands_still(&cell, generation, result)?,
                Done::Stepped {
                    cell,
                    generation,
                    result,
                } => self.stepped(&cell, generation, result)?,
                Done::Fitted { why, result } => self.work.fitting.came(why, result),
            }
        }
        Ok(())
    }

    fn removed(
        &mut self,
        cell: String,
        generation: u64,
        end: Option<End>,
        tail: Option<OutputTail>,
    ) -> Result<(), RunError> {
        let life = (cell, generation);
        if self.work.clearing.remove(&life).is_some() {
            let (cell, end, cause) = (life.0, End::Unknown, None);
            self.note(Entry::CellEnded {
                cell,
                generation,
                end,
                cause,
            });
            return Ok(());
        }
        if let Some(at) = self.of_life(&life.0, generation) {
            self.cells[at].tail = tail;
            self.happens(at, Happens::Removed(end))?;
            self.cells
                .retain(|cell| cell.aside.is_none() || cell.phase.is_there());
        }
        Ok(())
    }
}

/// A process that has just ended need not be killed.
fn gone(error: std::io::Error) -> std::io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}
