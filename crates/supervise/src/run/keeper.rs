//! The supervisor's loop: adopts running cells, waits for events, does the due work, and ends a mission.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use engine::Cell as _;
use jailhouse::register::Register;
use model::mission::{Mission, MissionFile, WhenShed};

use super::assume::Assuming;
use super::ballast::Ballast;
use super::cell::{Given, Live};
use super::desk::{Desk, Served};
use super::health::Incidents;
use super::modes::Return;
use super::options::{Asked, Options};
use super::output::Output;
use super::phase::{Event as Happens, Next, Phase};
use super::plan::outdated;
use super::tend::keeps_classes;
use super::update::Turn;
use super::version::Cell;
use super::waker::Waker;
use super::work::{Clearing, Work};
use super::{Event, Notify, Plan, RunError, Signals, protect, sources, wake};
use crate::admit::Admission;
use crate::cause::Reason;
use crate::control::{Server, Total};
use crate::dirs::{own_places, page_dir, place, work_dir};
use crate::enforce::Mechanisms;
use crate::journal::{Journal, Told, Writer};
use crate::process::boot_id;
use crate::reserve::{self, Reserve};
use crate::stamp::Stamp;
use crate::state::{Entry, Hold, Record, State, Supervisor, replay};
use crate::uids;

/// Longest sleep while cells are being ended, ns: a program that has ended is seen at once, the others are killed in
/// time.
const ENDING_NS: i64 = 20_000_000;

/// How long a second request to end waits for steps that hang, ns.
const HURRY_NS: i64 = 1_500_000_000;
/// And for the journal after that.
const LAST_WRITING: Duration = Duration::from_millis(500);

/// How long the beginning waits until the remains of an earlier supervisor are cleared, ns.
const CLEARING_NS: i64 = 1_000_000_000;

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
    pub(super) mechanisms: Mechanisms,
    /// Work for cells on other threads.
    pub(super) work: Work,
    /// The mission's cells in its order, and after them versions that an update has put aside.
    pub(super) cells: Vec<Cell>,
    /// By the names of cells: the sums of their lives that are over, of all their versions.
    pub(super) earlier: BTreeMap<String, Total>,
    pub(super) incidents: Incidents,
    /// When all cells were last looked at for the limits that they have come up against, CLOCK_MONOTONIC ns.
    pub(super) limits_looked_ns: i64,
    /// The bounds of the mission's tasks.
    pub(super) assuming: Assuming,
    /// `None`: in low mode.
    pub(super) back: Option<Return>,
    /// Names of the cells that high mode has shed.
    pub(super) shed_by_mode: BTreeSet<String>,
    pub(super) tell: &'a mut dyn FnMut(&Event),
}

impl<'a> Keeper<'a> {
    /// Opens the journal of an admitted mission and takes over the cells that an earlier supervisor left running.
    ///
    /// # Errors
    /// When the journal cannot be opened, another mission's cells run under it, or the kernel refuses the mission's
    /// group.
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
        let same_boot = earlier.is_some_and(|supervisor| supervisor.boot_id == boot);
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
        let failed = || RunError::system("create a thread for its cells' output");
        let waker = Waker::new().map_err(failed())?;
        let output = Output::start(waker.clone()).map_err(failed())?;
        let wake = waker.clone();
        let reserve = Reserve::default();
        let journal = Writer::start(journal, reserve.clone(), move || wake.wake())
            .map_err(RunError::system("create a thread for its journal"))?;
        let mut work = Work::new(waker, output, Ballast::take(&options.dir), reserve);
        work.output_to = options.output;
        let mut keeper = Keeper {
            work,
            file,
            admission,
            dir: options.dir.clone(),
            desk,
            journal,
            last_sequence: 0,
            state: before,
            mechanisms: Mechanisms::of(&mission.name),
            cells: Vec::new(),
            earlier: BTreeMap::new(),
            incidents: Incidents::default(),
            limits_looked_ns: 0,
            assuming: Assuming::of(admission, mission),
            back: None,
            shed_by_mode: BTreeSet::new(),
            tell,
        };
        keeper.watch_all(same_boot)?;
        keeper.note(Entry::SupervisorStarted(Supervisor {
            pid: std::process::id(),
            version: options.version.clone(),
            boot_id: boot,
        }));
        keeper.adopt()?;
        keeper.take_over_shed()?;
        let until = timecell_client::now_ns() + CLEARING_NS;
        while !keeper.is_idle() && timecell_client::now_ns() < until {
            std::thread::sleep(Duration::from_millis(1));
            keeper.fetch_work()?;
            keeper.fetch_written();
        }
        keeper.take_over_mode()?;
        keeper.take_back_unfinished();
        keeper.fit_kept_now()?;
        let sources = sources::of([file], &keeper.state.sources);
        keeper.note(Entry::MissionAdmitted {
            name: mission.name.clone(),
            file: plan.inputs.noted(),
            unaccounted: plan.admission.unaccounted.clone(),
            sources,
        });
        Ok(keeper)
    }

    pub(super) fn mission(&self) -> &'a Mission {
        self.file.mission()
    }

    /// Queues an entry. Steps that must not happen before it is on the disk wait for it elsewhere: the creation of a
    /// cell, and answers.
    pub(super) fn note(&mut self, entry: Entry) {
        let record = Record {
            at: Stamp::now(),
            entry,
        };
        self.state.apply(&record);
        self.desk.noted += 1;
        self.journal.append(record);
    }

    /// Goes on with the written entries.
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
                        "{why}; the mission continues, and its events are kept in memory until they can be written"
                    );
                    (self.tell)(&Event::Note { text });
                }
                Told::Written { lost } => {
                    self.work.ballast().yields(false);
                    let lost = match lost {
                        0 => String::new(),
                        lost => {
                            format!(", except {lost} entries of which only the outcome was kept")
                        }
                    };
                    let text = format!(
                        "the journal is written again, including all that was kept in memory{lost}"
                    );
                    (self.tell)(&Event::Note { text });
                }
            }
        }
        self.desk.deliver(self.journal.seen_to());
    }

    /// Takes over the cells that run, clears the remains of the others, and tells which cells are not to run.
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
                    Live::adopt(&self.mechanisms, &dir, &given, cell, since, is_let_go)
                }
                // It is no part of the mission any more.
                None => Ok(None),
            };
            match (found, at) {
                (Ok(Some(live)), Some(at)) => {
                    let pid = live.app.pid();
                    let cell = &mut self.cells[at];
                    cell.phase = Phase::Running(live);
                    (cell.generation, cell.beside) = (generation, beside);
                    self.keep_output(at);
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
                    self.work.clear(name, generation, beside, clearing);
                }
            }
        }
        for at in 0..self.own().len() {
            let cell = self.name(at);
            let is_down = self.cells[at].phase.live().is_none();
            if let Some(hold) = self.state.hold(&cell).filter(|_| is_down) {
                let why = hold.because().to_owned();
                (self.tell)(&Event::Stays { cell, why });
            }
        }
        Ok(())
    }

    /// Starts the cells that do not run, and keeps all running until a signal comes, somebody asks for the end, or none
    /// is left; then ends them and leaves nothing. Or until an update of the mission file, which the caller handles.
    ///
    /// # Errors
    /// When the journal cannot be written or the system refuses to wait. Running cells continue then.
    pub(super) fn run(mut self, signals: &Signals) -> Result<Turn, RunError> {
        self.take_reservation();
        self.fit_to_mode()?;
        self.begin_update()?;
        for at in 0..self.own().len() {
            let phase = &self.cells[at].phase;
            let begins = phase.live().is_none() && !phase.is_starting();
            if begins && phase.due_ns().is_none() {
                self.follow(
                    at,
                    match self.state.should_run(&self.name(at)) {
                        true => Next::Waits,
                        false => Next::Stays,
                    },
                );
            }
        }
        let asked = loop {
            self.start_pending()?;
            self.write_incidents();
            if signals.came() {
                break Asked::Signal;
            }
            match self.serve()? {
                Some(Served::Down) => break Asked::Down,
                Some(Served::Wanted) => return Ok(Turn::Wanted(Box::new(self.carried()))),
                Some(Served::TakenBack) => return Ok(Turn::TakenBack(Box::new(self.carried()))),
                None => {}
            }
            let is_over = |cell: &Cell| matches!(cell.phase, Phase::Down(Next::Stays));
            let none_to_come = self.own().iter().all(is_over) && self.is_idle();
            if none_to_come && !self.is_waited_for() {
                break match self.has_given_up() {
                    true => Asked::GivenUp,
                    false => Asked::NothingLeft,
                };
            }
            let until = self.next_due();
            if self.sleep(&self.alarms(), signals, until)? {
                self.look_at_limits();
            }
            self.fetch_work()?;
            self.fetch_written();
            self.tell_lost_output();
            self.reap()?;
            self.look()?;
            // Those that a rule has killed.
            self.reap()?;
            self.look_for_return()?;
            self.tend()?;
            self.look_at_assumptions()?;
            self.look_at_ample_budgets();
            self.restart_due()?;
        };
        self.end(signals)?;
        Ok(Turn::Over(asked))
    }

    /// Takes the supervisor's own reservation as it was admitted.
    fn take_reservation(&mut self) {
        let own = &self.admission.supervisor;
        reserve::keep_off(&own.cpus, &own.spared);
        if let Err(why) = self.work.reserve.set(own.reservation()) {
            let text = format!(
                "the supervisor is an ordinary process, because it could not get its reservation: {why}"
            );
            (self.tell)(&Event::Note { text });
        }
    }

    /// Sleeps until something is due; returns whether one of these `alarms` woke it.
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
        (self.cells.iter())
            .filter_map(|cell| cell.phase.live()?.ends())
            .chain(desk)
            .chain([self.work.fd()])
            .collect()
    }

    /// A full disk costs a cell its output, and nothing else.
    fn tell_lost_output(&mut self) {
        for (cell, why) in self.work.output().lost() {
            let what = format!("its output could not be kept: {why}");
            (self.tell)(&Event::Left { cell, what });
        }
    }

    /// Tends the enforcers of the cells.
    fn tend(&mut self) -> Result<(), RunError> {
        self.keep_to_best_effort()?;
        let now = timecell_client::now_ns();
        for at in 0..self.own().len() {
            if !self.live(at).is_some_and(|live| live.tended.is_due(now)) {
                continue;
            }
            self.cells[at].count_out_of_band();
            let (is_shed, name) = (self.is_shed(at), self.name(at));
            let begun = self.cells[at].watch.threads();
            let granted = keeps_classes(&self.mission().cells[at], self.admission.grant(&name));
            let Some(live) = self.cells[at].phase.live_mut() else {
                continue;
            };
            if live.tended.waits(now, is_shed, live.grip) {
                continue;
            }
            // Not while it starts.
            let highest = granted.filter(|_| live.tended.unheld_ns.is_none());
            let taken = highest.map_or(Vec::new(), |highest| live.classes_taken(highest));
            let mut told = live.hold.tend(&live.inside);
            told.extend(live.look_at_threads(&begun, now));
            if live.tended.unheld_ns.is_some_and(|told| told <= now) {
                live.tended.unheld_ns = None;
                told.extend(live.hold.unheld(&live.inside.classes()));
                // That of a task withdraws its bound, which is told.
                if self.assuming.has_none(at) {
                    told.extend(live.threads.unheld());
                }
            }
            live.tended
                .looked(now, live.hold.tend_again_ns(), live.seeks(now));
            for what in told.iter().chain(&taken) {
                let (cell, what) = (name.clone(), what.clone());
                (self.tell)(&Event::Held { cell, what });
            }
            for what in taken {
                let cell = name.clone();
                self.note(Entry::ClassTaken { cell, what });
            }
        }
        Ok(())
    }

    fn next_due(&self) -> Option<i64> {
        let told = self.cells.iter().filter_map(Cell::next_ns);
        let others = [
            self.next_look(),
            self.next_return(),
            self.desk.next_ns(),
            self.assuming.next_ns(),
        ];
        let others = others.into_iter().flatten();
        let tended = self.running().filter_map(|(_, live)| live.tended.due_ns());
        // A cell that is being created or removed reports when it is done.
        let due = (self.own().iter().enumerate())
            .filter(|(at, _)| !self.is_there(*at))
            .filter_map(|(_, cell)| cell.phase.due_ns());
        let turn = self.work.asks_for_turn_ns();
        let turn = turn.filter(|_| self.own().iter().any(|cell| cell.phase.waits()));
        (due.chain(told).chain(others))
            .chain(turn)
            .chain(tended)
            .min()
    }

    /// Reports hanging steps, and leaves them to the next supervisor, which finds them in the journal.
    fn wait_no_longer(mut self) -> Result<(), RunError> {
        self.work.output().stop();
        let (mut hang, mut running) = (Vec::new(), Vec::new());
        for at in 0..self.cells.len() {
            match self.cells[at].phase {
                Phase::Down(_) => {}
                Phase::Starting(..) => hang.push((self.name(at), "started")),
                Phase::Running(_) | Phase::Ending(..) => running.push(self.name(at)),
                Phase::Removing(..) => hang.push((self.name(at), "removed")),
            }
        }
        let cleared = self.work.clearing.keys();
        hang.extend(cleared.map(|(cell, _)| (cell.clone(), "removed")));
        for (cell, what) in &hang {
            let (cell, what) = (cell.clone(), format!("it is still being {what}"));
            (self.tell)(&Event::Left { cell, what });
        }
        for cell in &running {
            let (cell, what) = (cell.clone(), "it was killed but has not ended".to_owned());
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
        for at in 0..self.own().len() {
            self.follow(at, Next::Stays);
        }
        self.refuse_all();
        let order = self.mission().start_order();
        let ending: Vec<String> = (order.iter().filter(|at| self.is_there(**at)))
            .map(|at| self.mission().cells[*at].name.clone())
            .collect();
        for at in order.into_iter().rev() {
            self.tell_to_end_by(signals.ends_by(), at)?;
        }
        self.tell_leaving_to_end()?;
        let mut waited_until = None;
        while self.cells.iter().any(|cell| cell.phase.is_there()) || !self.work.is_idle() {
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
                // A second request does not want to wait.
                for at in 0..self.cells.len() {
                    self.happens(at, Happens::Kill(Reason::AskedTwice))?;
                }
            }
            self.reap()?;
        }
        self.work.output().stop();
        self.write_incidents();
        for cell in &self.mission().cells {
            for beside in [false, true] {
                self.remove_page(&cell.name, beside);
            }
        }
        self.note(Entry::CleanDown);
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
        if let Err(error) = Register::default().end_all(&self.mission().name) {
            let text = error.to_string();
            (self.tell)(&Event::Note { text });
        }
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

/// Until when a second request to end waits for hanging steps.
fn hurry() -> i64 {
    timecell_client::now_ns() + HURRY_NS
}

fn is_over(until_ns: Option<i64>) -> bool {
    until_ns.is_some_and(|until| until <= timecell_client::now_ns())
}
