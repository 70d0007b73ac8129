//! The supervisor's loop: takes over what runs, waits for what happens, does what is due, and ends a mission.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use engine::Cell as _;
use model::mission::{Mission, MissionFile, WhenShed};

use super::ballast::Ballast;
use super::cell::{Given, Live, own_places, page_dir, place, work_dir};
use super::desk::{Desk, Served};
use super::health::Incidents;
use super::modes::Return;
use super::output::Output;
use super::plan::outdated;
use super::update::Turn;
use super::watch::CellWatch;
use super::work::{Clearing, Removing, Waker, Work};
use super::{Event, Notify, Plan, RunError, Signals, protect, sources, tend, wake};
use crate::admit::Admission;
use crate::cause::Reason;
use crate::control::Server;
use crate::end::End;
use crate::enforce::Mechanisms;
use crate::incident::OutputTail;
use crate::journal::{Journal, Told, Writer};
use crate::ledger::Ledger;
use crate::process::boot_id;
use crate::reserve::Reserve;
use crate::stamp::Stamp;
use crate::state::{Entry, Hold, Mode, Record, State, Supervisor, replay};
use crate::uids;

/// Longest sleep while cells are told to end, ns: a program that has ended is seen at once, the others are killed in time.
const ENDING_NS: i64 = 20_000_000;

/// How long somebody who has asked for the end twice waits for steps that hang, ns.
const HURRY_NS: i64 = 1_500_000_000;
/// And for the journal after that.
const LAST_WRITING: Duration = Duration::from_millis(500);

/// How long the beginning waits until what an earlier supervisor left is cleared, ns.
const CLEARING_NS: i64 = 1_000_000_000;

/// What the supervisor needs beside the mission.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of the mission's journal and cells; nobody else's files may be in it.
    pub dir: PathBuf,
    /// Version of timecell.
    pub version: String,
    /// Where the machine's supervisors say what is granted.
    pub ledger: Ledger,
    /// Where what cells write goes.
    pub output: OutputTo,
}

/// Where what cells write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTo {
    /// Into a log of each cell, of bounded size.
    Log,
    /// To the supervisor's own standard output and error, which are the cells' as they are, and so is its standard input; cells of podman have a
    /// log and no input all the same.
    Own,
}

/// What ended a mission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A signal.
    Signal,
    /// No cell runs any more, and none is to be restarted.
    NothingLeft,
    /// The same, and at least one of them has failed: it is not restarted any more, a rule has stopped it, or its
    /// program's last end was a failure.
    GivenUp,
    /// Somebody, over the control socket.
    Down,
}

/// A mission that is kept running.
pub(super) struct Keeper<'a> {
    pub(super) file: &'a MissionFile,
    pub(super) admission: &'a Admission,
    pub(super) dir: PathBuf,
    // Before the journal, whose lock keeps others from the socket's place.
    pub(super) desk: Desk,
    pub(super) journal: Writer<Record>,
    pub(super) state: State,
    /// Sequence number of the last entry of the journal.
    pub(super) last_sequence: u64,
    /// Whether an earlier supervisor ran in this boot.
    pub(super) same_boot: bool,
    pub(super) mechanisms: Mechanisms,
    pub(super) live: BTreeMap<usize, Live>,
    /// Cells that are being made and taken down, on other threads.
    pub(super) work: Work,
    /// Cells that are to be started once those that they wait for are ready.
    pub(super) pending: BTreeSet<usize>,
    /// When cells are to be started anew, CLOCK_MONOTONIC ns.
    pub(super) due: BTreeMap<usize, i64>,
    /// Each cell of the mission as it is watched.
    pub(super) watches: Vec<CellWatch>,
    /// What cells had written that are gone, until their end is on record.
    pub(super) last_output: BTreeMap<usize, OutputTail>,
    pub(super) incidents: Incidents,
    /// When all cells were last looked at for the limits that they have come up against, CLOCK_MONOTONIC ns.
    pub(super) limits_looked_ns: i64,
    pub(super) mode: Mode,
    pub(super) back: Option<Return>,
    pub(super) shed_by_mode: BTreeSet<usize>,
    pub(super) tell: &'a mut dyn FnMut(&Event),
}

impl<'a> Keeper<'a> {
    /// Opens the journal of an admitted mission and takes over the cells that an earlier supervisor left running.
    ///
    /// # Errors
    /// When the journal cannot be had, another mission's cells run under it, or the kernel refuses the mission's group.
    pub(super) fn open(
        plan: &'a Plan,
        options: &Options,
        notify: Notify,
        tell: &'a mut dyn FnMut(&Event),
    ) -> Result<Keeper<'a>, RunError> {
        let (file, admission) = (&plan.inputs.file, &plan.admission);
        let (journal, loaded) = Journal::<Record>::open(&options.dir)?;
        own_places(&options.dir)?;
        let before = replay(loaded.entries.iter().map(|(_, record)| record));
        let mission = file.mission();
        if let Some(running) = before
            .mission
            .as_ref()
            .filter(|running| **running != mission.name)
        {
            return Err(RunError::Other {
                running: running.clone(),
            });
        }
        engine::app::become_subreaper()
            .map_err(RunError::system("become the parent of its cells"))?;
        let boot = boot_id()?;
        let earlier = before.supervisor.as_ref();
        for text in protect::supervisor() {
            tell(&Event::Note { text });
        }
        let (mut desk, uncontrolled) = Desk::open(&options.dir, notify);
        desk.ledger = options.ledger.clone();
        desk.outdated = outdated(before.file.as_ref(), file);
        if let Some(why) = uncontrolled {
            let text = format!("the mission cannot be controlled from outside: {why}");
            tell(&Event::Note { text });
        }
        let failed = || RunError::system("make a thread for its cells' output");
        let waker = Waker::new().map_err(failed())?;
        let output = Output::start(waker.clone()).map_err(failed())?;
        let wake = waker.clone();
        let reserve = Reserve::default();
        let journal = Writer::start(journal, reserve.clone(), move || wake.wake())
            .map_err(RunError::system("make a thread for its journal"))?;
        let mut work = Work::new(waker, output, Ballast::take(&options.dir), reserve);
        work.output_to = options.output;
        let mut keeper = Keeper {
            work,
            same_boot: earlier.is_some_and(|supervisor| supervisor.boot_id == boot),
            file,
            admission,
            dir: options.dir.clone(),
            desk,
            journal,
            last_sequence: 0,
            state: before,
            mechanisms: Mechanisms::of(&mission.name),
            live: BTreeMap::new(),
            pending: BTreeSet::new(),
            due: BTreeMap::new(),
            watches: Vec::new(),
            last_output: BTreeMap::new(),
            incidents: Incidents::default(),
            limits_looked_ns: 0,
            mode: Mode::Low,
            back: None,
            shed_by_mode: BTreeSet::new(),
            tell,
        };
        keeper.watch_all()?;
        keeper.note(Entry::SupervisorStarted(Supervisor {
            pid: std::process::id(),
            version: options.version.clone(),
            boot_id: boot,
        }))?;
        keeper.adopt()?;
        keeper.take_over_shed();
        let until = timecell_client::now_ns() + CLEARING_NS;
        while !keeper.work.is_idle() && timecell_client::now_ns() < until {
            std::thread::sleep(Duration::from_millis(1));
            keeper.fetch_work()?;
            keeper.fetch_written();
        }
        keeper.take_over_mode()?;
        keeper.take_back_unfinished()?;
        keeper.fit_kept_now()?;
        let sources = sources::of([file], &keeper.state.sources);
        keeper.note(Entry::MissionAdmitted {
            name: mission.name.clone(),
            file: plan.inputs.noted(),
            unaccounted: plan.admission.unaccounted.clone(),
            sources,
        })?;
        Ok(keeper)
    }

    pub(super) fn mission(&self) -> &'a Mission {
        self.file.mission()
    }

    /// Has an entry written down. What must not be before it is on the disk waits for it elsewhere: a cell that is made, and
    /// whoever has asked for something.
    pub(super) fn note(&mut self, entry: Entry) -> Result<(), RunError> {
        let record = Record {
            at: Stamp::now(),
            entry,
        };
        self.state.apply(&record);
        self.desk.noted += 1;
        self.journal.append(record);
        Ok(())
    }

    /// Goes on with what was written.
    fn fetch_written(&mut self) {
        for told in self.journal.fetch() {
            match told {
                Told::Noted(sequence, record) => {
                    self.last_sequence = sequence;
                    self.desk.publish(sequence, &record);
                }
                Told::WantsSnapshot => self.journal.compact(self.state.snapshot(Stamp::now())),
                Told::Kept => {}
                Told::Stuck(why) => {
                    self.work.ballast().yields(true);
                    let text = format!(
                        "{why}; the mission goes on, what happens is kept in memory until it can be written"
                    );
                    (self.tell)(&Event::Note { text });
                }
                Told::Written { lost } => {
                    self.work.ballast().yields(false);
                    let lost = match lost {
                        0 => String::new(),
                        lost => format!(", but for {lost} entries of which only the outcome is"),
                    };
                    let text = format!(
                        "the journal is written again, with all that was kept in memory{lost}"
                    );
                    (self.tell)(&Event::Note { text });
                }
            }
        }
        self.desk.deliver(self.journal.seen_to());
    }

    /// Takes over the cells that run, and clears what the others left.
    fn adopt(&mut self) -> Result<(), RunError> {
        let instances: Vec<(String, u64, i64, bool)> = (self.state.instances())
            .map(|(cell, generation, instance)| {
                let since = instance.since.monotonic_ns;
                (cell.to_owned(), generation, since, instance.beside)
            })
            .collect();
        for (name, generation, since, beside) in instances {
            let dir = work_dir(&self.dir, &name, beside);
            let at = (self.mission().position(&name)).filter(|at| self.is_still_meant(*at, since));
            let given = Given::to(self.admission, &name, beside);
            let found = match at {
                Some(at) => {
                    let cell = &self.mission().cells[at];
                    let is_let_go = self.is_shed(at) && cell.when_shed == WhenShed::BestEffort;
                    let life = (generation, since);
                    Live::adopt(&self.mechanisms, &dir, &given, cell, life, is_let_go)
                }
                // It is no part of the mission any more.
                None => Ok(None),
            };
            match (found, at) {
                (Ok(Some(live)), Some(at)) => {
                    let pid = live.app.pid();
                    self.insert_live(at, live);
                    self.watch_adopted(at);
                    (self.tell)(&Event::Adopted { cell: name, pid });
                }
                (found, _) => {
                    if let Err(why) = found {
                        (self.tell)(&Event::NotStarted {
                            cell: name.clone(),
                            why,
                        });
                    }
                    let clearing = Clearing {
                        dir,
                        page: page_dir(&self.dir, &name, beside),
                        mechanisms: self.mechanisms.clone(),
                        place: place(&name, beside),
                    };
                    let removing = Removing {
                        end: End::Unknown,
                        cause: None,
                        asked: true,
                        beside,
                        put_aside: false,
                        cleared: true,
                    };
                    self.work.clear(name, generation, removing, clearing);
                }
            }
        }
        Ok(())
    }

    /// A cell runs: its output is kept from now on.
    pub(super) fn insert_live(&mut self, at: usize, mut live: Live) {
        if let Some(log) = live.app.lend_log() {
            let name = &self.mission().cells[at].name;
            self.work.output().give(name, live.generation, log);
        }
        self.live.insert(at, live);
    }

    /// Whether a cell runs, is being made, or is being taken down.
    pub(super) fn is_there(&self, at: usize) -> bool {
        self.live.contains_key(&at) || self.work.is_at(&self.mission().cells[at].name)
    }

    /// Generation of the life that a cell has, is being given or is losing.
    pub(super) fn generation_there(&self, at: usize) -> Option<u64> {
        let name = &self.mission().cells[at].name;
        let live = self.live.get(&at).map(|live| live.generation);
        let starting = || Some(self.work.starting.get(name)?.generation);
        let removing = || Some(self.work.removing_of(name)?.0);
        live.or_else(starting).or_else(removing)
    }

    /// Starts the cells that do not run, and keeps all running until a signal comes, somebody asks for the end, or none is left;
    /// then ends them and leaves nothing. Or until the mission file becomes another one, which the caller sees to.
    ///
    /// # Errors
    /// When the journal cannot be written or the system refuses to wait. Cells that run go on then.
    pub(super) fn run(mut self, signals: &Signals) -> Result<Turn, RunError> {
        self.take_reservation();
        self.fit_to_mode()?;
        self.begin_update()?;
        self.pending = (0..self.mission().cells.len())
            .filter(|at| !self.live.contains_key(at) && !self.due.contains_key(at))
            .filter(|at| !(self.work.starting).contains_key(&self.mission().cells[*at].name))
            .filter(|at| self.state.should_run(&self.mission().cells[*at].name))
            .collect();
        let asked = loop {
            self.start_pending()?;
            self.write_incidents()?;
            if signals.came() {
                break Asked::Signal;
            }
            match self.serve()? {
                Some(Served::Down) => break Asked::Down,
                Some(Served::Wanted) => return Ok(Turn::Wanted(Box::new(self.carried()))),
                Some(Served::TakenBack) => return Ok(Turn::TakenBack(Box::new(self.carried()))),
                None => {}
            }
            let none_to_come = self.due.is_empty() && self.pending.is_empty();
            let none_there = self.live.is_empty() && self.work.is_idle();
            if none_there && none_to_come && !self.is_waited_for() {
                break match self.has_given_up() {
                    true => Asked::GivenUp,
                    false => Asked::NothingLeft,
                };
            }
            let until = self.next_due();
            if self.sleep(&self.alarms(), signals, until)? {
                self.look_at_limits()?;
            }
            self.fetch_work()?;
            self.fetch_written();
            self.tell_lost_output();
            self.reap()?;
            self.reap_leaving()?;
            self.look()?;
            // Those that a rule has killed.
            self.reap()?;
            self.look_for_return()?;
            self.tend();
            self.look_at_ample_budgets()?;
            self.restart_due()?;
        };
        self.end(signals)?;
        Ok(Turn::Over(asked))
    }

    /// Has the supervisor's own reservation as it was admitted.
    fn take_reservation(&mut self) {
        let own = self.admission.supervisor.reservation();
        if let Err(why) = self.work.reserve.set(own) {
            let text = format!(
                "the supervisor is an ordinary process, though it was to have a reservation: {why}"
            );
            (self.tell)(&Event::Note { text });
        }
    }

    /// Sleeps until something is to be done; whether one of these `alarms` wakes it.
    fn sleep(
        &self,
        alarms: &[RawFd],
        signals: &Signals,
        until: Option<i64>,
    ) -> Result<bool, RunError> {
        self.work.member.rest();
        let slept = wake::sleep(&self.ends(), alarms, signals, until);
        self.work.member.wake();
        slept
    }

    /// Whether a cell stays away because it has failed.
    fn has_given_up(&self) -> bool {
        (self.mission().cells.iter())
            .filter_map(|cell| self.state.cells.get(&cell.name))
            .any(|known| {
                let failed = (known.last_end.as_ref()).is_some_and(|(_, _, end)| end.is_failure());
                (known.holds.iter()).any(|hold| match hold {
                    Hold::RestartLimit | Hold::ByRule => true,
                    Hold::Ended => failed,
                    Hold::ByHand | Hold::Shed | Hold::Needs => false,
                })
            })
    }

    fn ends(&self) -> Vec<RawFd> {
        let desk = self.desk.server.as_ref().map(Server::ready);
        let leaving = self.desk.leaving.values();
        (self.live.values())
            .chain(leaving.map(|leaving| &leaving.live))
            .filter_map(Live::ends)
            .chain(desk)
            .chain([self.work.fd()])
            .collect()
    }

    /// A full disk costs a cell its output and nothing else.
    fn tell_lost_output(&mut self) {
        for (cell, why) in self.work.output().lost() {
            let what = format!("its output could not be kept: {why}");
            (self.tell)(&Event::Left { cell, what });
        }
    }

    /// Looks after what holds the cells.
    fn tend(&mut self) {
        self.keep_to_best_effort();
        let state = &self.state;
        let shed = |cell: &str| {
            let known = state.cells.get(cell);
            known.is_some_and(|cell| cell.holds.contains(&Hold::Shed))
        };
        tend::all(self.file.mission(), &mut self.live, &shed, self.tell);
    }

    fn next_due(&self) -> Option<i64> {
        let told = self.live.values().filter_map(Live::told_next_ns);
        let others = [self.next_look(), self.next_return(), self.desk.next_ns()];
        let others = others.into_iter().flatten();
        let tended = self.live.values().filter_map(|live| live.tended.due_ns());
        // One that is being made or taken down tells when it is time.
        let due = self.due.iter().filter(|(at, _)| !self.is_there(**at));
        let turn = self.work.asks_for_turn_ns();
        let turn = turn.filter(|_| !self.pending.is_empty());
        (due.map(|(_, due)| *due).chain(told).chain(others))
            .chain(turn)
            .chain(tended)
            .min()
    }

    /// Names what hangs, and leaves it to the next supervisor, which finds it in the journal.
    fn wait_no_longer(mut self) -> Result<(), RunError> {
        self.work.output().stop();
        let steps = (self.work.starting.keys().map(|cell| (cell, "started")))
            .chain((self.work.removing.keys()).map(|(cell, _)| (cell, "removed")));
        let hang: Vec<(String, &str)> = steps.map(|(cell, what)| (cell.clone(), what)).collect();
        let running = (self.live.keys()).map(|at| self.mission().cells[*at].name.clone());
        let running: Vec<String> = running.chain(self.desk.leaving.keys().cloned()).collect();
        for (cell, what) in &hang {
            let (cell, what) = (cell.clone(), format!("it is still being {what}"));
            (self.tell)(&Event::Left { cell, what });
        }
        for cell in &running {
            let (cell, what) = (cell.clone(), "it was killed and has not ended".to_owned());
            (self.tell)(&Event::Left { cell, what });
        }
        let left = self.journal.finish_within(LAST_WRITING);
        let left = left.unwrap_or_else(|| self.journal.give_up());
        self.fetch_written();
        let cells: Vec<String> = (hang.into_iter().map(|(cell, _)| cell))
            .chain(running)
            .map(|cell| format!("`{cell}`"))
            .collect();
        Err(RunError::NotWaitedFor {
            cells: cells.join(", "),
            unwritten: left.unwritten,
        })
    }

    /// Ends every cell, those that others wait for last, and leaves nothing.
    fn end(mut self, signals: &Signals) -> Result<(), RunError> {
        self.due.clear();
        self.pending.clear();
        self.refuse_all();
        let order = self.mission().start_order();
        let ending: Vec<String> = (order.iter().filter(|at| self.is_there(**at)))
            .map(|at| self.mission().cells[*at].name.clone())
            .collect();
        for at in order.into_iter().rev() {
            self.tell_to_end_by(signals.ends_by(), at);
        }
        self.tell_leaving_to_end();
        let mut waited_until = None;
        while !self.live.is_empty() || !self.desk.leaving.is_empty() || !self.work.is_idle() {
            let until = timecell_client::now_ns() + ENDING_NS;
            self.sleep(&[], signals, Some(until))?;
            self.serve_ending();
            self.tell_lost_output();
            self.fetch_work()?;
            self.fetch_written();
            if is_over(waited_until) {
                return self.wait_no_longer();
            }
            if signals.came() {
                waited_until.get_or_insert_with(hurry);
                // Whoever asks twice does not want to wait.
                let leaving = self.desk.leaving.values_mut();
                let leaving = leaving.map(|leaving| &mut leaving.live);
                for live in self.live.values_mut().chain(leaving) {
                    live.told_until_ns = Some(0);
                    live.killed_for.get_or_insert(Reason::AskedTwice);
                }
            }
            self.reap()?;
            self.reap_leaving()?;
        }
        self.work.output().stop();
        self.write_incidents()?;
        for cell in &self.mission().cells {
            for beside in [false, true] {
                self.remove_page(&cell.name, beside);
            }
        }
        self.note(Entry::CleanDown)?;
        let turn = Duration::from_nanos(ENDING_NS.unsigned_abs());
        let left = loop {
            if let Some(left) = self.journal.finish_within(turn) {
                break left;
            }
            if signals.came() {
                waited_until.get_or_insert_with(hurry);
            }
            if is_over(waited_until) {
                return self.wait_no_longer();
            }
        };
        self.fetch_written();
        self.mechanisms.keep_only(&[])?;
        if let Err(text) = uids::Record::of_this_machine().free(&self.mission().name) {
            (self.tell)(&Event::Note { text });
        }
        self.tell_downs(&ending);
        match left.unwritten {
            Some((entries, why)) => Err(RunError::Unwritten { entries, why }),
            None => Ok(()),
        }
    }
}

/// Until when somebody who has just asked for the end again waits for what hangs.
fn hurry() -> i64 {
    timecell_client::now_ns() + HURRY_NS
}

fn is_over(until_ns: Option<i64>) -> bool {
    until_ns.is_some_and(|until| until <= timecell_client::now_ns())
}
