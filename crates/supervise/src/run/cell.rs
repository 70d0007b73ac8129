//! A running cell: started, ended, removed.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Cell as _;
use engine::app::{self, AppCell, AppSpec, Asking, Ended, Launcher, Looks};

use model::mission;

use super::ample::AmpleUse;
use super::assume::Assumed;
use super::best_effort::{Classes, Grip};
use super::options::OutputTo;
use super::spec;
use super::tend::{Tended, Unheld};
use super::watch::Counters;
use crate::admit::{Admission, Grant};
use crate::dirs::place;
use crate::end::End;
use crate::enforce::{
    BestEffort, Enforce, EnforceError, Inside, Mechanism, Mechanisms, beyond, leave_real_time,
};
use crate::page::{Page, Place};
use crate::threads::Threads;

/// Between two looks at the fate of a signal that was blocked when it was sent, ns.
const AGAIN_NS: i64 = 5_000_000;

/// How long after its start the threads of a cell's tasks are looked for all the time, ns; later, once a second.
const SEEKS_NS: i64 = 10_000_000_000;

/// Threads of one life that are told because of their class.
const MOST_TAKEN: usize = 16;

/// A cell that runs.
pub(super) struct Live {
    pub(super) app: AppCell,
    /// Its processes; looking for its groups takes some twenty files, and they stay as long as the cell.
    pub(super) inside: Inside,
    pub(super) hold: Box<dyn Enforce>,
    pub(super) started_ns: i64,
    /// The kernel's counts of it, until somebody watches it.
    pub(super) counters: Counters,
    /// The page that was made for it, until then, or why it has none.
    pub(super) page: Option<Result<Page, String>>,
    /// When to check the effect of the signal that asked it to end, that signal, and the looks so far; `None`: that is
    /// known.
    asks_again: Option<(i64, i32, Looks)>,
    /// Whether it was killed because it was asked, since it does not handle that.
    pub(super) killed_as_asked: bool,
    /// Those that its threads have lost for now.
    pub(super) classes: Classes,
    /// A supervisor that is gone took them from it, and its record of them went with it.
    pub(super) forgotten: bool,
    /// Whether it was shed to best effort.
    pub(super) grip: Grip,
    /// Takes a freeze back that is still under way.
    pub(super) unfreeze: Option<Arc<AtomicBool>>,
    pub(super) tended: Tended,
    /// The observations of its budget, where that is ample.
    pub(super) ample: AmpleUse,
    /// The observations of the assumptions behind the bounds of its tasks.
    pub(super) assumed: Assumed,
    /// The parts of it that are not held.
    pub(super) unheld: Unheld,
    /// Its threads, and which of them runs which task.
    pub(super) threads: Threads,
    /// Those that were told because of their class.
    taken: BTreeSet<i32>,
}

/// A cell's admitted resources.
#[derive(Debug, Clone)]
pub(super) enum Given {
    /// A reservation.
    Grant(Grant),
    /// Nothing but these cpus, and the partition in which they are, if they are in one.
    BestEffort(Vec<u32>, Option<Vec<u32>>),
}

impl Given {
    /// To the cell of this name, in its first or second place.
    pub(super) fn to(admission: &Admission, cell: &str, beside: bool) -> Given {
        match admission.grant(cell) {
            Some(grant) => Given::Grant(grant.at(place(cell, beside))),
            None => {
                let cpus = admission.best_effort(cell).unwrap_or_default();
                let partition = admission.partition_of(cpus).map(<[u32]>::to_vec);
                Given::BestEffort(cpus.to_vec(), partition)
            }
        }
    }

    pub(super) fn grant(&self) -> Option<&Grant> {
        match self {
            Given::Grant(grant) => Some(grant),
            Given::BestEffort(..) => None,
        }
    }

    /// The cell's hold, as given by a mechanism for its grant.
    fn held_by(
        &self,
        mechanisms: &Mechanisms,
        give: impl FnOnce(&dyn Mechanism, &Grant) -> Result<Box<dyn Enforce>, EnforceError>,
    ) -> Result<Box<dyn Enforce>, EnforceError> {
        match self {
            Given::Grant(grant) => give(mechanisms.of_grant(grant)?, grant),
            Given::BestEffort(cpus, _) => Ok(Box::new(BestEffort::new(cpus))),
        }
    }

    /// The cpus of the partition that the cell belongs in; `None`: none.
    pub(super) fn partition(&self) -> Option<&[u32]> {
        match self {
            Given::Grant(grant) => grant.partition.as_deref(),
            Given::BestEffort(_, partition) => partition.as_deref(),
        }
    }
}

impl Live {
    fn new(
        app: AppCell,
        inside: Inside,
        hold: Box<dyn Enforce>,
        started_ns: i64,
        counters: Counters,
        (given, cell): (&Given, &mission::Cell),
    ) -> Live {
        Live {
            app,
            inside,
            hold,
            started_ns,
            counters,
            page: None,
            asks_again: None,
            killed_as_asked: false,
            classes: Classes::default(),
            forgotten: false,
            grip: Grip::default(),
            unfreeze: None,
            tended: Tended::from_now(cell),
            ample: AmpleUse::default(),
            assumed: Assumed::default(),
            unheld: Unheld::default(),
            threads: Threads::of(given.grant(), cell),
            taken: BTreeSet::new(),
        }
    }

    /// Makes a cell, puts it under its enforcer while it waits, and lets it begin.
    pub(super) fn start(
        spec: &AppSpec,
        mechanisms: &Mechanisms,
        given: &Given,
        cell: &mission::Cell,
        output: OutputTo,
    ) -> Result<Live, String> {
        // Remains of an earlier life's removal, because its engine did not answer for instance. Nobody watches it.
        if engine::is_left(&spec.work_dir)
            && let Some(left) = sweep(&spec.work_dir)
        {
            return Err(left);
        }
        let spec = &match cell.engine.is_machine() {
            true => app::machine(
                spec.clone(),
                &cell.machine,
                cell.rights.memory.map(model::Bytes::bytes),
            )
            .map_err(|error| error.to_string())?,
            false => spec.clone(),
        };
        let mut hold = (given.held_by(mechanisms, |mechanism, grant| mechanism.make(grant, cell)))
            .map_err(|error| error.to_string())?;
        let mut spec = spec.clone();
        spec.env.extend(hold.variable());
        let spec = &spec;
        (mechanisms.ready(given.partition())).map_err(|error| error.to_string())?;
        let created = Launcher::own()
            .map_err(|error| error.to_string())
            .and_then(|launcher| {
                let streams =
                    spec::streams(output, spec.engine).map_err(|error| error.to_string())?;
                app::create(spec, streams, &launcher).map_err(|error| error.to_string())
            });
        let mut app = match created {
            Ok(app) => app,
            Err(why) => {
                // The cell's own failure is reported; the group is removed with the mission's.
                let _ = hold.release();
                return Err(why);
            }
        };
        // The embedded engine moves its process into the groups while that waits. A sleeping thread stays on its last
        // cpu until it wakes up, and the kernel takes a thread into SCHED_DEADLINE by the root domain of that cpu: a
        // stop wakes it up.
        let sleeps = app.sleeps_before_start();
        let there = match given.partition().filter(|_| sleeps) {
            Some(_) => (app.freeze().and_then(|()| app.thaw())).map_err(|error| error.to_string()),
            None => Ok(()),
        };
        let held = there.and_then(|()| hold.hold(app.pid()).map_err(|error| error.to_string()));
        let inside = inside(&app);
        let counters = Counters::of(app.pid(), &inside.groups);
        let started = held.and_then(|()| app.start().map_err(|error| error.to_string()));
        if let Err(why) = started {
            // Its last output is still in its pipe.
            if let Some(log) = app.log() {
                let _ = log.drain();
            }
            let said = app.log_tail();
            let why = match said.trim() {
                "" => why,
                said => format!("{why}; it wrote: {said}"),
            };
            leave_real_time(&inside);
            let removed = app.remove().map_err(|error| error.to_string());
            let _ = hold.release();
            return Err(match removed {
                Ok(()) => why,
                Err(left) => format!("{why}; and {left}"),
            });
        }
        let now_ns = timecell_client::now_ns();
        let of = (given, cell);
        Ok(Live::new(app, inside, hold, now_ns, counters, of))
    }

    /// Takes over a cell of a supervisor that is gone, if its program still runs; one that is shed to best effort is held by nobody
    /// (`is_let_go`).
    pub(super) fn adopt(
        mechanisms: &Mechanisms,
        work_dir: &Path,
        given: &Given,
        cell: &mission::Cell,
        started_ns: i64,
        is_let_go: bool,
    ) -> Result<Option<Live>, String> {
        let app = match app::adopt(work_dir).map_err(|error| error.to_string())? {
            app::Adoption::Taken(app) => *app,
            app::Adoption::Ended | app::Adoption::Nothing => return Ok(None),
        };
        // It cannot be moved with everything that its groups enforce: it is cleared, and restarted where it belongs.
        if app.spec().within != mechanisms.within(given.partition()) {
            return Ok(None);
        }
        let hold = given.held_by(mechanisms, |mechanism, grant| {
            mechanism.adopt(grant, cell, is_let_go)
        });
        let hold = hold.map_err(|error| error.to_string())?;
        let (inside, counters) = (inside(&app), Counters::default());
        let live = Live::new(app, inside, hold, started_ns, counters, (given, cell));
        Ok(Some(live))
    }

    /// A descriptor that becomes readable when its program has ended; `None`: its end has been seen, and is reported
    /// once it has settled.
    pub(super) fn ends(&self) -> Option<RawFd> {
        let own = self.app.as_fd().as_raw_fd();
        self.tended.settles_ns().is_none().then_some(own)
    }

    /// Keeps its program's output.
    pub(super) fn drain(&mut self) -> std::io::Result<u64> {
        self.app.log().map_or(Ok(0), engine::app::Log::drain)
    }

    /// How its program ended; `None` as long as it runs, and as long as the kernel still counts its holdings.
    pub(super) fn ended(&mut self) -> std::io::Result<Option<End>> {
        let mut ended = self.app.try_wait_kernel()?;
        if ended.is_some() {
            let held_ns = self.hold.settle_ns();
            ended = ended.filter(|_| self.tended.has_settled(held_ns));
        }
        Ok(ended.map(end_of))
    }

    /// Asks it to end by this signal.
    pub(super) fn ask_to_end(&mut self, signal: i32) {
        // A program that has just ended cannot be signalled; it is seen as ended.
        let asking = self.app.ask_to_end(signal).unwrap_or(Asking::Heard);
        self.was_asked(signal, asking, timecell_client::now_ns());
    }

    /// When to ask it again, CLOCK_MONOTONIC ns.
    pub(super) fn asks_again_ns(&self) -> Option<i64> {
        self.asks_again.map(|(at_ns, ..)| at_ns)
    }

    /// A program that blocked the signal that asked it to end may not have seen it.
    pub(super) fn ask_again(&mut self) {
        let now_ns = timecell_client::now_ns();
        let asks = self.asks_again.filter(|(at_ns, ..)| *at_ns <= now_ns);
        if let Some((_, signal, looks)) = asks {
            let asking = self.app.ask_again(signal, looks).unwrap_or(Asking::Heard);
            self.was_asked(signal, asking, now_ns);
        }
    }

    fn was_asked(&mut self, signal: i32, asking: Asking, now_ns: i64) {
        self.asks_again = match asking {
            Asking::Blocked(looks) => Some((now_ns.saturating_add(AGAIN_NS), signal, looks)),
            Asking::Heard | Asking::Killed => None,
        };
        self.killed_as_asked |= asking == Asking::Killed;
    }

    /// Looks at its threads; returns news for the user, as clauses. `begun` has the thread of each task by the word of the application.
    pub(super) fn look_at_threads(&mut self, begun: &[u32], now_ns: i64) -> Vec<String> {
        self.threads
            .look(&self.inside, self.app.agent(), begun, now_ns)
    }

    /// Threads with a class beyond the highest priority that was granted, as clauses: each once, and 16 in a life.
    pub(super) fn classes_taken(&mut self, highest: Option<u8>) -> Vec<String> {
        let threads = self.inside.classes();
        let new = beyond(&threads, highest)
            .filter(|(tid, _)| self.taken.len() < MOST_TAKEN && self.taken.insert(*tid));
        new.map(|(_, clause)| clause).collect()
    }

    /// Whether threads of its tasks are still sought, which appear soon after its start.
    pub(super) fn seeks(&self, now_ns: i64) -> bool {
        self.threads.lacks_some() && now_ns - self.started_ns < SEEKS_NS
    }

    /// Checks for parts of it that are not held, for status requests.
    pub(super) fn look_for_unheld(&mut self, now_ns: i64) {
        match self.grip {
            Grip::Held => {
                let (hold, threads, inside) = (&self.hold, &self.threads, &self.inside);
                let look = || {
                    let mut unheld = hold.unheld(&inside.classes());
                    unheld.extend(threads.unheld());
                    unheld
                };
                self.unheld.look(now_ns, look);
            }
            // It is shed, and held by nothing on purpose.
            _ => self.unheld = Unheld::default(),
        }
    }

    /// Takes their real-time class from all of its threads; one that keeps it is an error, a clause.
    pub(super) fn take_classes(&mut self) -> Result<(), String> {
        if let Some(agent) = self.app.agent() {
            agent.suspend(true);
        }
        self.classes.take(|| pids(&self.app))
    }

    /// Each of its threads gets back the class that it had.
    pub(super) fn give_classes_back(&mut self) {
        if let Some(agent) = self.app.agent() {
            agent.suspend(false);
        }
        self.classes.give_back();
    }

    /// A freeze that is under way is not wanted any more.
    pub(super) fn unfreeze(&mut self) {
        if let Some(unwanted) = self.unfreeze.take() {
            unwanted.store(true, Ordering::SeqCst);
        }
    }

    /// Removes it with all that was made for it: how it ended, where that is known only now, and the failed removals, as
    /// sentences.
    pub(super) fn remove(mut self) -> (Option<End>, Vec<String>) {
        let mut left: Vec<String> = take_down(&mut self.app).into_iter().collect();
        if let Err(error) = self.hold.release() {
            left.push(error.to_string());
        }
        let told = self.app.is_told_of_by_engine();
        (self.app.end().filter(|_| told).map(end_of), left)
    }
}

/// The processes of a cell.
pub(super) fn pids(app: &AppCell) -> Vec<i32> {
    let others = app.processes().into_iter().map(|process| process.pid);
    std::iter::once(app.pid()).chain(others).collect()
}

pub(super) fn end_of(ended: Ended) -> End {
    match ended {
        Ended::Exited(code) => End::Exited { code },
        Ended::Killed(signal) => End::Killed {
            signal,
            core_dumped: false,
        },
        Ended::Unknown => End::Unknown,
    }
}

fn inside(app: &AppCell) -> Inside {
    let mut groups = app.groups();
    // An enforcer may have moved its threads to a group of its own in the hierarchy of budgets: the others tell first.
    groups.sort_by_key(|group| group.starts_with("/sys/fs/cgroup/cpu"));
    Inside {
        pid: app.pid(),
        groups,
    }
}

/// Kills a cell and removes it; returns the failure, a sentence. A class that the kernel would count on is left first.
pub(super) fn take_down(app: &mut AppCell) -> Option<String> {
    // A program that has just ended cannot be killed; its removal reports its remains.
    let _ = app.kill(libc::SIGKILL);
    leave_real_time(&inside(app));
    app.remove().err().map(|error| error.to_string())
}

/// The same for the remains of a cell that nobody watches.
pub(super) fn sweep(work_dir: &Path) -> Option<String> {
    if let Ok(app::Adoption::Taken(app)) = app::adopt(work_dir) {
        leave_real_time(&inside(&app));
    }
    let swept = engine::sweep(work_dir);
    swept.err().map(|error| error.to_string())
}

/// Removes the page of a cell: why it could not be, a sentence.
pub(super) fn remove_page(page_dir: &Path) -> Option<String> {
    let removed = Place::at(page_dir).remove();
    removed.err().map(|error| error.to_string())
}
