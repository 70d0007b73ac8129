//! The state of a mission as clients receive it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use record::trial::HelperRecord;
use serde::{Deserialize, Serialize};

use crate::assume::{Assumption, State};
use crate::cause::{Cause, ended};
use crate::end::End;
use crate::state::{Cell, Hold, Limit, Mode};

/// Version of the JSON of [`Status`] and [`super::Happening`]; it rises when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// A mission as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When, on the wall clock in UTC.
    pub at_utc: String,
    /// Its name; `None`: nothing is to run here.
    pub mission: Option<String>,
    /// Its directory.
    pub dir: PathBuf,
    /// The caution that belongs to its times, such as `emulated: not representative of timing (qemu-tcg)`; `None`: they are a machine's.
    #[serde(default)]
    pub caution: Option<String>,
    /// Its supervisor; `None`: it has none.
    pub supervisor: Option<SupervisorStatus>,
    /// Its mode.
    pub mode: Mode,
    /// Number of the update in progress.
    pub update: Option<u64>,
    /// Its cells in the order of the file. During an update a cell that has two versions stands here twice.
    pub cells: Vec<CellStatus>,
}

impl Status {
    /// The caution that belongs to times of this machine, which it keeps until the next boot.
    pub(crate) fn caution() -> Option<String> {
        static CAUTION: OnceLock<Option<String>> = OnceLock::new();
        let detected = || host::virt::detect(&host::root::Root::live()).caution();
        CAUTION.get_or_init(detected).clone()
    }
}

/// A supervisor that listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorStatus {
    /// Its process.
    pub pid: u32,
    /// Version of its timecell.
    pub version: String,
    /// Cpu time that it has used, ns; `None`: the kernel does not say.
    pub cpu_ns: Option<i64>,
    /// Memory that it has resident, bytes.
    pub rss_bytes: Option<u64>,
    /// Its own reservation: cpu time of its threads in each period, ns; `None`: nothing, it is an ordinary process.
    #[serde(default)]
    pub budget_ns: Option<i64>,
    /// The period, ns.
    #[serde(default)]
    pub period_ns: Option<i64>,
    /// SCHED_FIFO priority of its threads until the budget is used up.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Cpus that are counted with it.
    #[serde(default)]
    pub cpus: Vec<u32>,
}

model::choice! {
    /// The state of a cell.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CellState: word {
        /// Its program runs, and is looked after.
        Running = "running",
        /// It is being made.
        Starting = "starting",
        /// It was told to end and has not yet, or its remains are being removed.
        Ending = "ending",
        /// It is started once those that it comes after are ready.
        Waiting = "waiting",
        /// It has ended and will be restarted.
        Restarting = "restarting",
        /// It does not run, and is not to.
        Stopped = "stopped",
        /// It runs without a supervisor.
        Orphan = "orphan",
        /// It ran when it was looked after, and does not now.
        Gone = "gone",
    }
}

impl CellState {
    /// Whether it has a process.
    pub fn runs(self) -> bool {
        matches!(
            self,
            CellState::Running | CellState::Ending | CellState::Orphan
        )
    }
}

/// A cell as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellStatus {
    /// Its name.
    pub cell: String,
    /// Its state.
    pub state: CellState,
    /// Whether it runs and those that wait for it may start; `false`, too, of a supervisor of an older version.
    #[serde(default)]
    pub ready: bool,
    /// Why it does not run, a clause.
    pub why: Option<String>,
    /// Why it is not to run.
    pub holds: BTreeSet<Hold>,
    /// Its first process.
    pub pid: Option<i32>,
    /// How often it has been started.
    pub starts: u64,
    /// When it was started the last time, wall clock, ns since 1970.
    pub started_unix_ns: Option<i64>,
    /// Cpu time of this life, all its processes, ns; `None`: the kernel does not say, or it does not run.
    pub cpu_ns: Option<i64>,
    /// Mechanism that holds it to a budget.
    pub enforcer: Option<String>,
    /// Its budget on each of its cpus, ns.
    pub budget_ns: Option<i64>,
    /// Period of the budget, ns.
    pub period_ns: Option<i64>,
    /// Its cpus; empty: not known.
    pub cpus: Vec<u32>,
    /// Its guarantee, a sentence.
    pub guarantee: Option<String>,
    /// Which mutexes of real-time programs work in it, a clause; `None`: it is best effort, or an earlier version does not say.
    #[serde(default)]
    pub mutexes: Option<String>,
    /// Its parts that are not held, as clauses: tasks without a thread, threads of a class that has no budget.
    #[serde(default)]
    pub unheld: Vec<String>,
    /// Of a virtual machine that runs: QEMU's threads that execute no virtual cpu.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<HelperRecord>,
    /// The bounds of its tasks.
    #[serde(default)]
    pub bounds: Vec<BoundStatus>,
    /// How its program ended the last time.
    pub last_end: Option<LastEnd>,
    /// Limits that it has come up against in its last life.
    #[serde(default)]
    pub limits: Vec<LimitStatus>,
    /// Its directory, in which `output` is.
    pub dir: PathBuf,
    /// The reports of its application on its tasks since its last start; empty: it does not run, or reports nothing.
    pub tasks: Vec<TaskStatus>,
    /// The same of all starts, as far as its supervisor has seen them.
    #[serde(default)]
    pub total: Total,
}

/// What a cell has used and reported in several lives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Cpu time of all its processes, ns; `None`: it has not run, or the kernel does not say.
    pub cpu_ns: Option<i64>,
    /// The reports of its application on each task that it had in one of them.
    pub tasks: Vec<TaskStatus>,
}

impl Total {
    /// Adds a life.
    pub(crate) fn add(&mut self, cpu_ns: Option<i64>, tasks: &[TaskStatus]) {
        if let Some(cpu_ns) = cpu_ns {
            self.cpu_ns = Some(self.cpu_ns.unwrap_or(0).saturating_add(cpu_ns));
        }
        for task in tasks {
            match (self.tasks.iter_mut()).find(|known| known.task == task.task) {
                Some(known) => known.add(task),
                None => self.tasks.push(task.clone()),
            }
        }
    }
}

/// The bound of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundStatus {
    /// Name of the task.
    pub task: String,
    /// Bound on its response time, ns.
    pub bound_ns: u64,
    /// Whether it counts.
    #[serde(flatten)]
    pub state: State,
    /// Its assumptions; empty: they were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Assumption>,
}

impl BoundStatus {
    /// Why it counts no more, a clause; `None`: it counts, or its cell has only begun.
    pub fn withdrawn(&self) -> Option<&str> {
        match &self.state {
            State::Withdrawn { why, .. } => Some(why),
            State::InForce | State::Pending => None,
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEnd {
    /// Number of the start that it ended.
    pub generation: u64,
    /// When it was seen, wall clock in UTC.
    pub at_utc: String,
    /// How.
    pub end: End,
    /// Why, where that end alone does not tell.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Both in words.
    pub text: String,
}

/// A limit that a cell has reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Which.
    #[serde(flatten)]
    pub limit: Limit,
    /// The same in words.
    pub text: String,
}

/// The report of an application on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its name.
    pub task: String,
    /// Jobs that have ended.
    pub jobs: u64,
    /// Missed deadlines: jobs that were late or begun and never ended, and releases that were left out.
    pub late: u64,
    /// The longest response time of them, ns; `None`: no job has ended, or a supervisor of an older version does not tell.
    #[serde(default)]
    pub worst_response_ns: Option<i64>,
    /// Skipped releases of a periodic task since the last start, as revealed by later jobs.
    #[serde(default)]
    pub skipped: u64,
    /// Its jobs by their response times.
    #[serde(default, skip_serializing_if = "Responses::is_unknown")]
    pub responses: Responses,
}

/// Jobs by their response times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Responses {
    /// How many there were up to 1,024 ns, then up to twice that, and so on; the last number is that of all longer ones. Empty:
    /// the application does not count them, as with a client of an older version.
    pub counts: Vec<u64>,
    /// Sum of their response times, ns.
    pub sum_ns: u64,
}

impl Responses {
    pub(crate) fn is_unknown(&self) -> bool {
        self.counts.is_empty()
    }
}

impl TaskStatus {
    /// Adds the counts of the same task in other lives, or of other tasks.
    pub fn add(&mut self, more: &TaskStatus) {
        let sum = |own: &mut u64, more: u64| *own = own.saturating_add(more);
        sum(&mut self.jobs, more.jobs);
        sum(&mut self.late, more.late);
        sum(&mut self.skipped, more.skipped);
        sum(&mut self.responses.sum_ns, more.responses.sum_ns);
        self.worst_response_ns = self.worst_response_ns.max(more.worst_response_ns);
        let counts = &mut self.responses.counts;
        counts.resize(counts.len().max(more.responses.counts.len()), 0);
        for (own, more) in counts.iter_mut().zip(&more.responses.counts) {
            sum(own, *more);
        }
    }
}

impl CellStatus {
    /// The status of a cell by the journal; `known`: its record there.
    pub(crate) fn of(cell: &str, known: Option<&Cell>, dir: PathBuf) -> CellStatus {
        let holds = known.map(|known| known.holds.clone()).unwrap_or_default();
        let started = known.and_then(|known| known.instances.values().next_back());
        let process = started.and_then(|instance| instance.started.as_ref());
        CellStatus {
            cell: cell.to_owned(),
            state: CellState::Stopped,
            ready: false,
            why: (holds.first()).map(|hold| hold.clause().to_owned()),
            holds,
            pid: process.map(|started| started.process.pid),
            starts: known.map_or(0, |known| known.generation),
            started_unix_ns: started.map(|instance| instance.since.wall_unix_ns),
            cpu_ns: None,
            enforcer: process.and_then(|started| started.enforcer.clone()),
            budget_ns: process
                .and_then(|started| started.reservation)
                .map(|reservation| reservation.budget_ns),
            period_ns: process
                .and_then(|started| started.reservation)
                .map(|reservation| reservation.period_ns),
            cpus: process.map_or(Vec::new(), |started| started.cpus.clone()),
            guarantee: None,
            mutexes: None,
            unheld: Vec::new(),
            helpers: Vec::new(),
            bounds: Vec::new(),
            last_end: known.and_then(|known| known.last_end.as_ref()).map(
                |(generation, at, end)| LastEnd {
                    generation: *generation,
                    at_utc: at.utc(),
                    end: *end,
                    cause: known.and_then(|known| known.last_cause.clone()),
                    text: ended(*end, known.and_then(|known| known.last_cause.as_ref())),
                },
            ),
            limits: known
                .map_or(&[][..], |known| &known.limits)
                .iter()
                .map(|limit| LimitStatus {
                    limit: *limit,
                    text: limit.to_string(),
                })
                .collect(),
            dir,
            tasks: Vec::new(),
            total: Total::default(),
        }
    }
}
