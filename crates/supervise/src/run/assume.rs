//! Checks the assumptions of the bounds of tasks: once a second, for all cells.

use std::convert::Infallible;
use std::fs::File;
use std::os::unix::fs::FileExt;

use engine::agent::Agent;
use engine::app::{AppCell, Seccomp};
use host::root::Root;
use host::sched::{self, Class};
use model::Enforcer;

use super::best_effort::Grip;
use super::keeper::Keeper;
use super::others::Others;
use super::phase::Phase;
use super::version::Cell;
use super::watch::{Overrun, unseen_ns};
use super::{Event, RunError};
use crate::admit::{Admission, Unaccounted};
use crate::assume::{Answered, Bounds, Deviation, Locked, Look, Proof};
use crate::control::BoundStatus;
use crate::enforce::Enforce;
use crate::ledger::{self, Holder};
use crate::page::Totals;
use crate::state::Entry;
use crate::threads::{Match, Seen, Threads, Unmatched};

const SECOND_NS: i64 = 1_000_000_000;
/// When a real-time thread that nobody accounts for is looked for again before it counts, ns.
const SUSPECT_NS: i64 = 100_000_000;
/// How often it is seen whether a process that has locked no memory has done so by now, looks.
const LOCKS: u64 = 8;

/// A supervisor's state of the bounds of its mission's tasks.
#[derive(Debug)]
pub(super) struct Assuming {
    /// Those of each cell, in the order of the mission.
    proofs: Vec<Vec<Proof>>,
    /// When to look again, CLOCK_MONOTONIC ns; `None`: no bound is looked at.
    next_ns: Option<i64>,
    machine: Machine,
}

impl Assuming {
    pub(super) fn of(admission: &Admission, mission: &model::mission::Mission) -> Assuming {
        let cells = mission.cells.iter();
        Assuming {
            proofs: cells.map(|cell| Proof::all(admission, cell)).collect(),
            next_ns: None,
            machine: Machine::default(),
        }
    }

    /// Whether no task of a cell has a bound.
    pub(super) fn has_none(&self, at: usize) -> bool {
        self.proofs[at].is_empty()
    }

    /// When to look again; `None`: no bound is looked at.
    pub(super) fn next_ns(&self) -> Option<i64> {
        self.next_ns
    }
}

/// The machine as the last look saw it.
#[derive(Debug, Default)]
struct Machine {
    /// The settings at the first look.
    first: Option<Settings>,
    changed: Vec<String>,
    outside: Vec<Unaccounted>,
    /// Those that the last look saw for the first time: others may be about to enter them, or to end.
    suspects: Vec<i32>,
    /// How much later than planned the last look was, ns.
    away_ns: i64,
    /// Whether the supervisor has its reservation.
    is_reserved: bool,
}

impl Machine {
    /// Takes the real-time threads that nobody accounts for: those present at two looks count.
    fn suspect(&mut self, found: Vec<Unaccounted>) {
        let mut known: Vec<i32> = std::mem::take(&mut self.suspects);
        known.extend(self.outside.iter().map(|thread| thread.tid));
        let (outside, new): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|thread| known.contains(&thread.tid));
        self.suspects = new.iter().map(|thread| thread.tid).collect();
        self.outside = outside;
    }
}

/// Settings of the kernel on which bounds rest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Settings([(&'static str, Option<String>); 3]);

impl Settings {
    fn now() -> Settings {
        let root = Root::live();
        Settings(
            [
                "/proc/sys/kernel/sched_rt_runtime_us",
                "/proc/sys/kernel/sched_rt_period_us",
                "/sys/devices/system/cpu/online",
            ]
            .map(|path| (path, root.read(path).ok())),
        )
    }

    /// Those that are otherwise now, as clauses.
    fn changed(&self, now: &Settings) -> Vec<String> {
        let both = self.0.iter().zip(&now.0).filter(|(was, is)| was != is);
        let text = |value: &Option<String>| value.as_deref().unwrap_or("nothing").trim().to_owned();
        both.map(|((path, was), (_, is))| format!("{path} is {}, and was {}", text(is), text(was)))
            .collect()
    }
}

/// The observations of the bounds of a cell in one life of it.
#[derive(Debug, Default)]
pub(super) struct Assumed {
    pub(super) bounds: Bounds,
    tasks: Vec<Runner>,
    /// The parts that its enforcer does not hold.
    unheld: Vec<String>,
    stray: Option<String>,
    others: Others,
    /// Whether its ample budget was used up lately.
    used_up: bool,
    agent_is_gone: bool,
}

/// A task's thread over the looks at it.
#[derive(Debug, Default)]
struct Runner {
    files: Option<Files>,
    /// Its control groups when it was first seen, and how that differs by now, a clause.
    groups: String,
    moved: Option<String>,
    class: Option<Class>,
    cpus: Vec<u32>,
    spent: Option<Spent>,
    overran: Option<bool>,
    worst_ns: Option<i64>,
    locked: Locked,
    is_stopped: bool,
    /// How often its process was looked at.
    looks: u64,
}

/// Open files of a thread, which tell it from a later one with its id.
#[derive(Debug)]
struct Files {
    tid: i32,
    schedstat: File,
    cgroup: File,
}

impl Files {
    fn of(tid: i32) -> Option<Files> {
        let open = |name: &str| File::open(format!("/proc/{tid}/{name}")).ok();
        Some(Files {
            tid,
            schedstat: open("schedstat")?,
            cgroup: open("cgroup")?,
        })
    }
}

/// The cpu time of a thread, against that of its jobs.
#[derive(Debug)]
struct Spent {
    overrun: Overrun,
    /// Whether the application reports its jobs; else one is allowed in every period.
    is_reported: bool,
    /// Reported jobs that have been counted.
    jobs: u64,
    /// Until when periods have been counted.
    until_ns: i64,
}

impl Spent {
    fn of(proof: &Proof, totals: Option<&Totals>, now_ns: i64) -> Spent {
        let job = (proof.wcet_ns, proof.period_ns);
        let is_reported = totals.is_some();
        // Without reports a job may fall into the time between two looks in part at both ends.
        let running = if is_reported { 1 } else { 2 };
        Spent {
            overrun: Overrun::new(std::iter::repeat_n(job, running), unseen_ns(1)),
            is_reported,
            jobs: totals.map_or(0, |totals| totals.ended + totals.abandoned),
            until_ns: now_ns,
        }
    }

    /// Whether more was used than the jobs since the last look may have.
    fn has_overrun(
        &mut self,
        proof: &Proof,
        totals: Option<&Totals>,
        used_ns: i64,
        now_ns: i64,
    ) -> bool {
        self.overrun.earn(now_ns);
        let jobs = match totals {
            Some(totals) => {
                let all = totals.ended + totals.abandoned;
                all.saturating_sub(std::mem::replace(&mut self.jobs, all))
            }
            None => {
                let period_ns = proof.period_ns.max(1);
                let periods = (now_ns - self.until_ns) / period_ns;
                self.until_ns += periods * period_ns;
                periods.unsigned_abs()
            }
        };
        self.overrun.ended(0, jobs);
        self.overrun.look(used_ns)
    }
}

fn read(file: &File) -> Option<String> {
    let mut buffer = [0; 4096];
    let length = file.read_at(&mut buffer, 0).ok()?;
    String::from_utf8(buffer[..length].to_vec()).ok()
}

impl Runner {
    /// Looks at the thread that runs the task now.
    fn look(
        &mut self,
        found: Option<&Match>,
        proof: &Proof,
        totals: Option<&Totals>,
        worst_ns: i64,
        now_ns: i64,
    ) {
        let tid = found
            .and_then(|found| found.as_ref().ok())
            .map(|(tid, _)| *tid);
        // Before the jobs are counted: those that end meanwhile may have used more.
        let used_ns =
            |files: &Files| host::process::scheduled_in(read(&files.schedstat)?.as_bytes());
        let same = self.files.as_ref().filter(|files| Some(files.tid) == tid);
        let mut used = same.and_then(used_ns);
        if used.is_none() {
            let files = tid.and_then(Files::of);
            used = files.as_ref().and_then(used_ns);
            let (locked, looks) = (self.locked, self.looks);
            *self = Runner {
                files,
                locked,
                looks,
                ..Runner::default()
            };
        }
        let Some(files) = &self.files else {
            return;
        };
        self.cpus = sched::get_affinity(files.tid).unwrap_or_default();
        let groups = read(&files.cgroup).unwrap_or_default();
        if self.groups.is_empty() {
            self.groups.clone_from(&groups);
        }
        self.moved = (groups.lines().zip(self.groups.lines()))
            .find(|(is, was)| is != was)
            .map(|(is, was)| format!("others have moved its thread from {was} to {is}"));
        let totals = totals.filter(|totals| totals.begun > 0);
        let spent = self.spent.take();
        let spent = spent.filter(|spent| spent.is_reported == totals.is_some());
        let mut spent = spent.unwrap_or_else(|| Spent::of(proof, totals, now_ns));
        self.overran = used.map(|used_ns| spent.has_overrun(proof, totals, used_ns, now_ns));
        self.worst_ns = totals.map(|_| worst_ns);
        self.spent = Some(spent);
    }

    fn look_at_process(&mut self, process: i32) {
        let looks = self.looks;
        self.looks += 1;
        let may_wait = self.locked == Locked::Never && !self.is_stopped;
        if may_wait && !looks.is_multiple_of(LOCKS) {
            return;
        }
        let status = host::process::status(process);
        self.is_stopped = status.contains("\nState:\tT");
        let has_locked = host::process::bytes(&status, "VmLck").map(|bytes| bytes > 0);
        self.locked = match (self.locked, has_locked) {
            (_, Some(true)) => Locked::Yes,
            (Locked::Never, _) | (_, None) => self.locked,
            (_, Some(false)) => Locked::NoMore,
        };
    }
}

impl Assumed {
    /// Looks at the threads of a cell and at its hold. The application has counted `totals`, and its longest response times since the look
    /// before are `worst_ns`.
    fn look(
        &mut self,
        live: &Held<'_>,
        proofs: &[Proof],
        totals: &[Totals],
        worst_ns: &[i64],
        (begins, now_ns): (bool, i64),
    ) {
        if self.tasks.len() != proofs.len() {
            self.tasks.resize_with(proofs.len(), Runner::default);
            self.bounds = Bounds::new(proofs.len());
        }
        let matches = live.threads.matches();
        let tasks = self.tasks.iter_mut().enumerate();
        for ((task, runner), proof) in tasks.zip(proofs) {
            let worst_ns = worst_ns.get(task).copied().unwrap_or(0);
            runner.look(matches.get(task), proof, totals.get(task), worst_ns, now_ns);
            if let Some(seen) = live.threads.of_task(task) {
                runner.class = class_of(seen, live.hold);
                runner.look_at_process(seen.process);
            }
        }
        self.unheld = live.hold.unheld(&live.threads.classes());
        self.stray = live.threads.stray();
        if let Some(proof) = proofs.iter().find(|proof| proof.spare_ns.is_some()) {
            let every = proof.enforcer == Enforcer::Freezer;
            self.others.look(live.threads, every, begins);
        }
        self.agent_is_gone |= live.agent.is_some_and(|agent| !agent.is_there());
    }

    /// The last look at a task; `None`: there was none.
    fn seen<'a>(&'a self, task: usize, live: &Held<'a>, machine: &'a Machine) -> Option<Look<'a>> {
        const NOT_YET: &Match = &Err(Unmatched::NotLooked);
        let runner = self.tasks.get(task)?;
        Some(Look {
            thread: live.threads.matches().get(task).unwrap_or(NOT_YET),
            seen: live.threads.of_task(task),
            class: runner.class.as_ref(),
            cpus: &runner.cpus,
            moved: runner.moved.as_deref(),
            answered: match (live.agent, self.agent_is_gone) {
                (Some(_), true) => Answered::ByNobody,
                (Some(_), false) => Answered::ByAgent,
                (None, _) if live.has_filter => Answered::ByFilter,
                (None, _) => Answered::ByKernel,
            },
            unheld: &self.unheld,
            stray: self.stray.as_deref(),
            others_ns: self.others.used_ns(),
            overran: runner.overran,
            worst_ns: runner.worst_ns,
            locked: runner.locked,
            is_stopped: runner.is_stopped,
            used_up: self.used_up,
            outside: &machine.outside,
            settings: &machine.changed,
            away_ns: machine.away_ns,
            is_reserved: machine.is_reserved,
        })
    }
}

/// The class of a thread, or the one that it gets back where its enforcer has lowered it.
fn class_of(seen: &Seen, hold: &dyn Enforce) -> Option<Class> {
    match seen.class {
        // It may have got it back meanwhile.
        Some(Class::Idle) => hold
            .gets_back(seen.tid)
            .or_else(|| sched::get_class(seen.tid).ok()),
        ref own => own.clone(),
    }
}

/// The parts of a running cell that a look needs.
struct Held<'a> {
    threads: &'a Threads,
    hold: &'a dyn Enforce,
    agent: Option<&'a Agent>,
    has_filter: bool,
}

impl<'a> Held<'a> {
    fn of(threads: &'a Threads, hold: &'a dyn Enforce, app: &'a AppCell) -> Held<'a> {
        Held {
            threads,
            hold,
            agent: app.agent(),
            has_filter: app.spec().grants.seccomp != Seccomp::Off,
        }
    }
}

impl Keeper<'_> {
    /// Checks the assumptions of the bounds of all cells, if it is time.
    pub(super) fn look_at_assumptions(&mut self) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        let planned = self.assuming.next_ns;
        if planned.is_some_and(|planned| now_ns < planned) {
            return Ok(());
        }
        let looked_at: Vec<usize> = (0..self.own().len())
            .filter(|at| self.is_looked_at(*at))
            .collect();
        if looked_at.is_empty() {
            self.assuming.next_ns = None;
            return Ok(());
        }
        let second = now_ns - now_ns.rem_euclid(SECOND_NS) + SECOND_NS;
        self.assuming.next_ns = Some(second);
        let outside = self.outside();
        let is_reserved = self.work.reserve.is_held();
        let machine = &mut self.assuming.machine;
        machine.away_ns = planned.map_or(0, |planned| now_ns - planned);
        let settings = Settings::now();
        machine.changed =
            (machine.first.get_or_insert_with(|| settings.clone())).changed(&settings);
        machine.suspect(outside);
        if !machine.suspects.is_empty() {
            self.assuming.next_ns = Some(second.min(now_ns + SUSPECT_NS));
        }
        machine.is_reserved = is_reserved;
        for at in 0..self.own().len() {
            if looked_at.contains(&at) {
                self.look_at_bounds(at, now_ns)?;
            } else if let Some(live) = self.cells[at].phase.live_mut() {
                // It ends, or is shed and held by nobody on purpose.
                live.assumed = Assumed::default();
            }
        }
        Ok(())
    }

    /// Whether it runs, is held, and has bounds.
    fn is_looked_at(&self, at: usize) -> bool {
        let runs = matches!(&self.cells[at].phase, Phase::Running(live)
            if matches!(live.grip, Grip::Held) && live.tended.settles_ns().is_none());
        runs && !self.assuming.proofs[at].is_empty() && !self.is_shed(at)
    }

    /// Real-time threads of programs that nobody accounts for.
    fn outside(&self) -> Vec<Unaccounted> {
        let name = &self.mission().name;
        let is_own = |holder: &Holder| matches!(holder, Holder::Mission { name: other, .. } if other == name);
        let pids: Vec<i32> = self.running().map(|(_, live)| live.inside.pid).collect();
        let found = ledger::found_twice(|| {
            // A ledger that cannot be read accounts for nobody.
            let mut entries = self.desk.ledger.entries().unwrap_or_default();
            entries.retain(|entry| !is_own(&entry.holder));
            Ok::<_, Infallible>(ledger::unaccounted(&entries, Some(name), &pids))
        });
        found.unwrap_or_else(|never| match never {})
    }

    fn look_at_bounds(&mut self, at: usize, now_ns: i64) -> Result<(), RunError> {
        let begins_ns = self.mission().cells[at].start_timeout.ns();
        let Assuming {
            proofs, machine, ..
        } = &self.assuming;
        let proofs = &proofs[at];
        let Cell { phase, watch, .. } = &mut self.cells[at];
        let totals = watch.totals();
        let worst_ns = watch.take_worst_ns(&totals, now_ns);
        let Phase::Running(live) = phase else {
            return Ok(());
        };
        live.assumed.used_up = live.ample.was_used_up(now_ns);
        let held = Held::of(&live.threads, live.hold.as_ref(), &live.app);
        let begins = now_ns - live.started_ns < begins_ns;
        let when = (begins, now_ns);
        (live.assumed).look(&held, proofs, &totals, &worst_ns, when);
        let deviations: Vec<Option<Deviation>> = (proofs.iter().enumerate())
            .map(|(task, proof)| proof.deviation(&live.assumed.seen(task, &held, machine)?))
            .collect();
        // A program that ends takes its threads with it.
        if deviations.iter().any(Option::is_some) && host::process::is_dying(live.inside.pid) {
            return Ok(());
        }
        let changed = live.assumed.bounds.look(deviations, begins, now_ns);
        let bounds: Vec<(String, u64)> = (changed.iter())
            .map(|changed| {
                let proof = &proofs[changed.task];
                (proof.task.clone(), proof.bound_ns)
            })
            .collect();
        for (changed, (task, bound_ns)) in changed.into_iter().zip(bounds) {
            let cell = self.name(at);
            self.note(match changed.withdrawn.clone() {
                Some(why) => Entry::BoundWithdrawn {
                    cell: cell.clone(),
                    task: task.clone(),
                    bound_ns,
                    why,
                },
                None => Entry::BoundInForce {
                    cell: cell.clone(),
                    task: task.clone(),
                    bound_ns,
                },
            });
            let is_withdrawn = changed.withdrawn.is_some();
            (self.tell)(&Event::Bound {
                cell,
                task,
                bound_ns,
                withdrawn: changed.withdrawn,
            });
            if is_withdrawn {
                let findings = self.cells[at].watch.unproved(now_ns, changed.task);
                self.judge(at, findings)?;
            }
        }
        Ok(())
    }

    /// The bounds of a cell that runs, and if wanted their assumptions.
    pub(super) fn bounds(&self, at: usize, with_assumptions: bool) -> Vec<BoundStatus> {
        let Some(live) = self.live(at).filter(|_| self.is_looked_at(at)) else {
            return Vec::new();
        };
        let held = Held::of(&live.threads, live.hold.as_ref(), &live.app);
        let proofs = self.assuming.proofs[at].iter().enumerate();
        let states = live.assumed.bounds.states().cloned().map(Some);
        let states = states.chain(std::iter::repeat(None));
        let each = proofs.zip(states).map(|((task, proof), state)| {
            let seen = || live.assumed.seen(task, &held, &self.assuming.machine);
            BoundStatus {
                task: proof.task.clone(),
                bound_ns: proof.bound_ns,
                state: state.unwrap_or_default(),
                assumptions: match (with_assumptions, seen()) {
                    (false, _) => Vec::new(),
                    (true, Some(look)) => proof.seen(&look),
                    (true, None) => proof.assumptions(),
                },
            }
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_thread_counts_once_it_is_seen_twice() {
        let of = |tid: i32| Unaccounted {
            pid: tid,
            tid,
            name: "x".to_owned(),
            class: "FIFO 95".to_owned(),
            cpus: vec![1],
        };
        let mut machine = Machine::default();
        for (found, counts) in [
            (vec![1], vec![]),
            (vec![1, 2], vec![1]),
            (vec![1, 2], vec![1, 2]),
            (vec![2], vec![2]),
            (vec![], vec![]),
            (vec![2], vec![]),
        ] {
            machine.suspect(found.into_iter().map(of).collect());
            let outside: Vec<i32> = machine.outside.iter().map(|thread| thread.tid).collect();
            assert_eq!(outside, counts);
        }
    }

    #[test]
    fn a_setting_that_is_otherwise_is_named_with_both_values() {
        let of =
            |us: &str| Settings([("/proc/a", Some(us.to_owned())), ("/b", None), ("/c", None)]);
        assert_eq!(of("950000\n").changed(&of("950000\n")), [] as [String; 0]);
        assert_eq!(
            of("950000\n").changed(&of("-1\n")),
            ["/proc/a is -1, and was 950000"]
        );
    }
}
