//! What measurements may be asked, in groups of options that one scenario or several of them take.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use model::{Bytes, Duration, Enforcer, EngineKind, LoadKind, TaskPolicy, Threshold};

use super::enforcer;
use super::judge::Judge;
use super::offered::{Offered, engines};

/// The classes that `--class` may ask for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ClassName {
    /// SCHED_FIFO; needs privilege.
    Fifo,
    /// SCHED_OTHER, best effort: results are labelled "not real-time".
    Other,
}

/// The classes that `--policy` may ask for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SetPolicy {
    /// SCHED_FIFO, priorities by deadline or as given, each cell on a cpu of its own.
    Fifo,
    /// SCHED_DEADLINE: runtime, deadline and period for every task, on all cpus.
    Deadline,
}

impl From<SetPolicy> for TaskPolicy {
    fn from(policy: SetPolicy) -> TaskPolicy {
        match policy {
            SetPolicy::Fifo => TaskPolicy::Fifo,
            SetPolicy::Deadline => TaskPolicy::Deadline,
        }
    }
}

/// What every measurement may be asked.
#[derive(Debug, Args)]
pub struct Measured {
    /// Directory in which the run directory is made.
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Print the plan and its unmet requirements; measure nothing, but for a second where trials take turns.
    #[arg(long)]
    pub dry_run: bool,
    /// Measure although a mission holds cpus that are measured on: its cells are in the numbers then, and may be late.
    #[arg(long)]
    pub beside_missions: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What every run may be asked.
#[derive(Debug, Args)]
pub struct Judged {
    /// Thresholds and the baseline.
    #[command(flatten)]
    pub judge: Judge,
    /// As of every measurement.
    #[command(flatten)]
    pub measured: Measured,
}

/// What trials of cells that run jobs may be asked.
#[derive(Debug, Args)]
pub struct Trials {
    /// Your own program does the jobs, its arguments behind `--`. One that reports its jobs through timecell's client (`timecell
    /// header` prints it for C) is started once in each cell; of another each execution is a job; of one that neither ends nor reports, start, cpu time and exit are compared. Every
    /// engine runs the same file, and its shared libraries come along; a program inside an image is not measured.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub program: Option<PathBuf>,
    /// Arguments of --program.
    #[arg(last = true, value_name = "ARG", requires = "program")]
    pub program_args: Vec<String>,
    /// Smoke run: fewer jobs and rounds, under 30 s; under 60 s where there are more than 12 trials.
    #[arg(long)]
    pub quick: bool,
    /// Length of each cell's measurement in each round, such as 10s; sets the number of jobs.
    #[arg(long, value_name = "TIME", conflicts_with = "jobs")]
    pub duration: Option<Duration>,
    /// Activations of each cell in each round.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub jobs: Option<i64>,
    /// Time between releases, such as 1ms or 100us.
    #[arg(long, value_name = "TIME")]
    pub period: Option<Duration>,
    /// When a job must have ended, after its release; one that ends later is late [default: the period].
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<Duration>,
    /// Cpus for the cells, such as 1 or 2-3; cell i is pinned to the i-th, in turn.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// SCHED_FIFO priority, 1 to 99.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Scheduling class.
    #[arg(long, value_enum, conflicts_with = "priority")]
    pub class: Option<ClassName>,
    /// How often every trial is repeated, interleaved.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<i64>,
    /// Ends once every ratio of medians of the run's main metric to the baseline is known to within so much, such as 2%, or is shown to
    /// differ from 1: looks up to five times, and after four times the rounds, or --rounds, at the latest. If one is neither by then, or by
    /// --at-most, or there is none, the exit code is 1. Only where trials take turns.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub decide: Option<f64>,
    /// Goes on until it is known with 95% confidence whether this holds, such as 'latency.p99.99 < 100us', and fails if it does not (exit
    /// code 3); may be given several times. Looks up to five times, each after twice as many rounds, at most for 16 times the jobs that
    /// the first look needs, or for --rounds. The form is that of --fail-if, for quantiles of times.
    #[arg(long, value_name = "CONDITION")]
    pub until: Vec<Threshold>,
    /// Longest time for a run with --decide or --until, such as 10min: what is not known by then stays open.
    #[arg(long, value_name = "TIME")]
    pub at_most: Option<Duration>,
    /// Only trials of these engines, comma-separated.
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = Offered::<EngineKind>::of(engines))]
    pub engine: Vec<EngineKind>,
    /// Loads beside the cells of every trial, comma-separated; --list-loads shows them.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// Keep a histogram of each minute and the 1,000 worst jobs instead of every sample: for runs of days.
    #[arg(long)]
    pub histogram: bool,
    /// Keep a histogram of each such interval, 1s to 1h; a power cut takes away one interval at most.
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// The unprivileged user who runs rootless cells.
    #[arg(long, value_name = "NAME")]
    pub rootless_user: Option<String>,
}

/// Whether it must be real time.
#[derive(Debug, Args)]
pub struct RealTime {
    /// Refuse to measure without a real-time class (exit code 4).
    #[arg(long)]
    pub require_rt: bool,
}

/// What a task set may be asked.
#[derive(Debug, Default, Args)]
pub struct TaskSet {
    /// The task set to run: a file that `analyze` reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tasks: Option<PathBuf>,
    /// Class of the threads of a task set.
    #[arg(long, value_enum)]
    pub policy: Option<SetPolicy>,
}

/// What growing numbers of cells may be asked.
#[derive(Debug, Default, Args)]
pub struct Growth {
    /// Numbers of cells that run together, ascending, comma-separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub counts: Vec<u32>,
    /// Cells that are created at the same time [default: 8].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub parallel: Option<i64>,
    /// The share of one trial's cells that may fail; more of them end the study of that engine
    /// [default: 0.01].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub failure_limit: Option<f64>,
    /// Memory of the machine that is left to everybody else, such as 2GiB; below it no more cells are made
    /// and those that run are stopped [default: a twentieth of the machine's].
    #[arg(long, value_name = "SIZE")]
    pub memory_reserve: Option<Bytes>,
    /// Stop the cells when ordinary work has had no turn for so long, 1s to 60s [default: 5s].
    #[arg(long, value_name = "TIME")]
    pub starvation_limit: Option<Duration>,
}

/// How cells are held.
#[derive(Debug, Default, Args)]
pub struct Reserved {
    /// How each cell of a growing number is held to an equal share of the cpus in every second, by rt-cgroup or deadline. A task set: what holds
    /// its cells to their reservations, of which those that the set does not give are the least by analysis [default: none].
    #[arg(long, value_parser = enforcer::reserve())]
    pub reserve: Option<enforcer::Reserve>,
}

/// What an experiment may be asked. Named scenarios have only the groups that say something to them.
#[derive(Debug, Args)]
pub struct Experiment {
    /// Of any.
    #[command(flatten)]
    pub trials: Trials,
    /// Of one that runs a task set.
    #[command(flatten)]
    pub set: TaskSet,
    /// Of one with growing numbers of cells.
    #[command(flatten)]
    pub growth: Growth,
    /// Of both of these.
    #[command(flatten)]
    pub reserved: Reserved,
    /// Of any.
    #[command(flatten)]
    pub real_time: RealTime,
    /// As of every run.
    #[command(flatten)]
    pub run: Judged,
}

/// What single measurements, repeated, may be asked.
#[derive(Debug, Args)]
pub struct Series {
    /// Smoke run: few rounds.
    #[arg(long)]
    pub quick: bool,
    /// How often everything is measured, interleaved.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<i64>,
    /// Only cells of these engines, comma-separated.
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = Offered::<EngineKind>::of(engines))]
    pub engine: Vec<EngineKind>,
    /// The unprivileged user who runs rootless cells.
    #[arg(long, value_name = "NAME")]
    pub rootless_user: Option<String>,
    /// As of every run.
    #[command(flatten)]
    pub run: Judged,
    /// Of one of them.
    #[arg(skip)]
    pub own: Own,
}

/// What one scenario of single measurements has for itself.
#[derive(Debug, Default)]
pub struct Own {
    /// Where its threads run.
    pub cpus: Option<String>,
    /// When its payload is taken for wedged.
    pub heartbeat_timeout: Option<Duration>,
}

/// Where threads run.
#[derive(Debug, Default, Args)]
pub struct Cpus {
    /// Cpus that the threads may use, such as 1 or 2-3, the highest first.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
}

/// When a payload is taken for wedged.
#[derive(Debug, Default, Args)]
pub struct Heartbeat {
    /// Age of the last heartbeat at which a payload is taken for wedged, such as 10ms [default: 10ms].
    #[arg(long, value_name = "TIME")]
    pub heartbeat_timeout: Option<Duration>,
}

/// What studies of enforcers may be asked.
#[derive(Debug, Args)]
pub struct Enforced {
    /// Smoke run: few and short trials.
    #[arg(long)]
    pub quick: bool,
    /// The enforcers to measure, comma-separated [default: all].
    #[arg(long, value_name = "ENFORCER", value_delimiter = ',', value_parser = enforcer::one_of(Enforcer::OF_BENCH))]
    pub enforcer: Vec<Enforcer>,
    /// Budget/period of each reservation, comma-separated [default:
    /// 30ms/100ms,10ms/50ms,3ms/10ms,1ms/10ms; in `isolation` 10, 15, 20 and 25ms/100ms beside each other].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub reservation: Vec<String>,
    /// Length of each trial, such as 10s.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// How often every trial is repeated, interleaved; of contests, sets of each utilisation.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<i64>,
    /// The cpu to measure on.
    #[arg(long, value_name = "CPU")]
    pub cpus: Option<String>,
    /// SCHED_FIFO priority, up to 99.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Load beside the cells, with `idle` for none; --list-loads shows them. Where contests are measured, several, comma-separated, one
    /// after the other.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// As of every run.
    #[command(flatten)]
    pub run: Judged,
}

/// What a supply study may be asked.
#[derive(Debug, Args)]
pub struct Supply {
    /// As of every study of enforcers.
    #[command(flatten)]
    pub enforced: Enforced,
    /// Leave out the task sets that are run inside the measured budgets.
    #[arg(long)]
    pub no_try: bool,
    /// Threads that share each budget, 1 to 64, all but the measured one a step less urgent [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<i64>,
}

/// What a study of temporal isolation may be asked.
#[derive(Debug, Args)]
pub struct Isolation {
    /// Parts: contest, received; both when none is named.
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
    /// As of every study of enforcers.
    #[command(flatten)]
    pub enforced: Enforced,
    /// Declared utilisations of both cells together, comma-separated [default: 0.4,0.5,0.6,0.8].
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub utilisation: Vec<f64>,
    /// How long an overrunning attacker's jobs are, as a multiple of what it declared [default: 1.8].
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub overrun: Option<f64>,
    /// Seed of the task sets; the same seed gives the same sets [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// What timecell's measurement of itself may be asked.
#[derive(Debug, Args)]
pub struct Itself {
    /// Parts: wakeup, barrier, startup, memory, loads, crowd; all when none is named.
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
    /// Few rounds: shows that everything works, not what it is worth.
    #[arg(long)]
    pub quick: bool,
    /// The cpu to measure on.
    #[arg(long, value_name = "CPU")]
    pub cpus: Option<String>,
    /// SCHED_FIFO priority, 1 to 99.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Loads of part `loads`, comma-separated [default: all].
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// As of every measurement.
    #[command(flatten)]
    pub measured: Measured,
}

/// A part of a whole, in percent or as a number.
fn part(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let number: f64 =
        (number.parse()).map_err(|_| "a part such as 2% or 0.02 is wanted".to_owned())?;
    Ok(number / whole)
}

/// A load's name; `idle` stands for none.
fn load(name: &str) -> Result<Option<LoadKind>, String> {
    match name {
        model::IDLE => Ok(None),
        name => name.parse().map(Some),
    }
}
