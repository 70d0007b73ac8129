//! The scene to show at one instant, from any source, and the source for a running experiment.

use bench::live::{CellView, LiveReservation, Seen, Standing, TrialView, Watcher};
use host::cpu_use::{self, CpuTicks, RtLimit};
use host::root::Root;
use probe::clock;
use serde::Serialize;

use super::columns::{EXPERIMENT, Kind};

/// A source of scenes.
pub trait Source {
    /// The kind of its scenes.
    fn kind(&self) -> &'static Kind;
    /// Looks once.
    ///
    /// # Errors
    /// Why there is nothing to see, as a sentence.
    fn look(&mut self) -> Result<Scene, String>;
}

/// One look.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scene {
    /// Its columns, orders and heads.
    #[serde(skip)]
    pub kind: &'static Kind,
    /// Version of this object.
    pub schema: u64,
    /// The run's description: experiment, trial, round.
    pub what: String,
    /// Directory of the run.
    pub run: String,
    /// Process id of the coordinator or supervisor.
    pub pid: i32,
    /// Expected time until the end, ns.
    pub left_ns: i64,
    /// The loads beside the cells.
    pub loads: Vec<String>,
    /// The reservation that the cells share.
    pub shared_reservation: Option<String>,
    /// How much of each cpu the kernel lets real-time tasks use, in words.
    pub rt_limit: Option<String>,
    /// Share of each cpu that was used since the last look, 0 to 1.
    pub cpus: Vec<CpuShare>,
    /// Share of one cpu that this program used itself, 0 to 1.
    pub own_share: Option<f64>,
    /// The cells.
    pub rows: Vec<Row>,
}

/// How busy one cpu was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuShare {
    /// The cpu.
    pub cpu: u32,
    /// Share of its time, 0 to 1.
    pub busy: f64,
}

/// One cell, or one thread of a cell that runs a task set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// The engine that makes it.
    pub engine: String,
    /// Cpus that it may use.
    pub cpus: Vec<u32>,
    /// Its scheduling class; for a mission that of its first thread, empty if nothing runs.
    pub class: String,
    /// For a mission: its enforcer.
    pub enforcer: Option<String>,
    /// Its own reservation.
    pub reservation: Option<String>,
    /// Its state.
    pub state: &'static str,
    /// Why it failed.
    pub failure: Option<String>,
    /// Process id of its payload.
    pub pid: Option<i32>,
    /// Share of one cpu since the last look; 0 to the number of its threads.
    pub cpu_share: Option<f64>,
    /// Cpu time so far, ns.
    pub cpu_ns: Option<i64>,
    /// Jobs that ran.
    pub jobs: u64,
    /// Jobs that are planned; `None` if there is no end.
    pub planned: Option<u64>,
    /// Activations skipped.
    pub skipped: u64,
    /// Jobs whose records were lost.
    pub lost: u64,
    /// Jobs that this program was too late to look at: worse ones may be among them.
    pub unseen: u64,
    /// Largest wake-up latency, ns.
    pub worst_latency_ns: Option<i64>,
    /// Largest execution time, ns; `None` if jobs have no work.
    pub worst_execution_ns: Option<i64>,
    /// For a mission: the reports of its application, and its starts.
    #[serde(flatten)]
    pub kept: Option<Kept>,
    /// For a mission: the columns that it shares with its tasks, as texts.
    #[serde(skip)]
    pub figures: [String; 5],
    /// For a mission: its tasks.
    pub tasks: Vec<TaskRow>,
}

/// A task of a cell of a mission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// Its name.
    pub task: String,
    /// Jobs that have ended; `None`, here and below: nothing is reported.
    pub jobs: Option<u64>,
    /// Jobs that were late, and skipped releases.
    pub late: Option<u64>,
    /// Skipped releases.
    pub skipped: Option<u64>,
    /// The longest response time, ns.
    pub worst_response_ns: Option<i64>,
    /// Its bound, ns; `None`: it has none, or its bound is withdrawn.
    pub bound_ns: Option<u64>,
    /// The columns that it shares with its cell, as texts.
    #[serde(skip)]
    pub figures: [String; 5],
}

/// The figures of a cell of a mission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Starts so far.
    pub starts: u64,
    /// Jobs that were late, and skipped releases; `None` if nothing is reported.
    pub late: Option<u64>,
    /// Skipped releases.
    pub skipped: Option<u64>,
    /// The longest response time, ns.
    pub worst_response_ns: Option<i64>,
}

impl Scene {
    /// The scene as JSON, without the keys that do not apply to its kind.
    pub fn json(&self) -> String {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        let less = |value: &mut serde_json::Value| {
            if let Some(object) = value.as_object_mut() {
                object.retain(|key, _| !self.kind.lacks.contains(&key.as_str()));
            }
        };
        less(&mut json);
        let rows = json["rows"].as_array_mut();
        rows.into_iter().flatten().for_each(less);
        json.to_string()
    }
}

/// Use of the cpus and of this program itself between two looks.
#[derive(Default)]
pub struct Machine {
    ticks: Vec<CpuTicks>,
    own: Option<(i64, i64)>,
}

impl Machine {
    /// Share of each cpu that was used.
    pub fn cpus(&mut self) -> Vec<CpuShare> {
        let now = cpu_use::ticks(&Root::live()).unwrap_or_default();
        let shares = cpu_use::shares(&self.ticks, &now);
        self.ticks = now;
        let share = |(cpu, busy)| CpuShare { cpu, busy };
        shares.into_iter().map(share).collect()
    }

    /// Share of one cpu that this program used.
    pub fn own_share(&mut self) -> Option<f64> {
        let now = (clock::now(), own_cpu_ns());
        let (then, before) = self.own.replace(now)?;
        let window = now.0 - then;
        (window > 0).then(|| (now.1 - before) as f64 / window as f64)
    }
}

/// The running experiment.
pub struct Running {
    watcher: Watcher,
    machine: Machine,
}

impl Running {
    /// Before the first look.
    pub fn new() -> Running {
        Running {
            watcher: Watcher::new(),
            machine: Machine::default(),
        }
    }

    /// Whether a measurement runs, watchable or not.
    pub fn is_there(&mut self) -> bool {
        !matches!(self.watcher.look(), Seen::NoRun)
    }
}

impl Source for Running {
    fn kind(&self) -> &'static Kind {
        &EXPERIMENT
    }

    fn look(&mut self) -> Result<Scene, String> {
        let (cpus, own_share) = (self.machine.cpus(), self.machine.own_share());
        match self.watcher.look() {
            Seen::Trial(view) => Ok(scene(view, cpus, own_share)),
            Seen::NoRun => Err(
                "nothing runs here that this user may watch; start `timecell bench` or `timecell up` in another terminal".to_owned(),
            ),
            Seen::NoTrial { pid, why: None } => Err(format!(
                "process {pid} is measuring, but has no cells to watch right now"
            )),
            Seen::NoTrial {
                pid,
                why: Some(why),
            } => Err(format!("process {pid} is measuring, but cannot be watched: {why}")),
        }
    }
}

/// Cpu time of this process, ns.
fn own_cpu_ns() -> i64 {
    host::clock::read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

fn scene(view: &TrialView, cpus: Vec<CpuShare>, own_share: Option<f64>) -> Scene {
    let live = &view.live;
    let rows = live.cells.iter().zip(&view.cells);
    Scene {
        kind: &EXPERIMENT,
        schema: 1,
        what: format!(
            "{}: trial {} of {}, {}, round {} of {}",
            live.experiment, live.number, live.trials, live.trial, live.round, live.rounds
        ),
        run: live.run.display().to_string(),
        pid: view.pid,
        left_ns: (live.expected_end_ns - view.at_ns).max(0),
        loads: live.loads.clone(),
        shared_reservation: live.shared_reservation.as_ref().map(words),
        rt_limit: rt_limit(),
        cpus,
        own_share,
        rows: rows
            .map(|(cell, seen)| Row {
                id: cell.id.clone(),
                engine: cell.engine.name().to_owned(),
                cpus: cell.cpus.clone(),
                class: cell.class.clone(),
                enforcer: None,
                reservation: cell.reservation.as_ref().map(words),
                state: state(seen.standing),
                failure: seen.failure.clone(),
                pid: seen.pid,
                cpu_share: seen.cpu_share,
                cpu_ns: seen.cpu_ns,
                jobs: seen.sums.executed,
                planned: Some(cell.planned.into()),
                skipped: seen.sums.skipped,
                lost: seen.sums.lost,
                unseen: seen.sums.unseen,
                worst_latency_ns: seen.sums.worst_latency_ns,
                worst_execution_ns: worked(live.works, seen),
                kept: None,
                figures: Default::default(),
                tasks: Vec::new(),
            })
            .collect(),
    }
}

fn worked(works: bool, seen: &CellView) -> Option<i64> {
    seen.sums.worst_execution_ns.filter(|_| works)
}

fn words(held: &LiveReservation) -> String {
    format!(
        "{} every {} by {}",
        report::time(held.budget_ns as f64),
        report::time(held.period_ns as f64),
        held.enforcer
    )
}

/// How much of a cpu the kernel lets real-time tasks use, in words.
pub fn rt_limit() -> Option<String> {
    cpu_use::rt_limit(&Root::live()).map(limit)
}

fn limit(limit: RtLimit) -> String {
    match limit {
        RtLimit::Off => "no limit on real-time tasks".to_owned(),
        RtLimit::Of {
            runtime_us,
            period_us,
        } => format!(
            "real-time tasks may take {:.0} % of a cpu",
            100.0 * runtime_us as f64 / period_us.max(1) as f64
        ),
    }
}

fn state(standing: Standing) -> &'static str {
    match standing {
        Standing::Absent => "absent",
        Standing::Present => "present",
        Standing::Armed => "armed",
        Standing::Running => "running",
        Standing::Done => "done",
        Standing::Failed => "failed",
    }
}
