//! The options of measurements, in groups that one or several scenarios take.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use model::{Duration, Enforcer, EngineKind, ExecutionStage, LoadKind, TaskPolicy, Threshold};

use super::enforcer;
use super::judge::Judge;
use super::offered::{Offered, engines};

/// The values of `--class`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ClassName {
    /// SCHED_FIFO; needs privilege.
    Fifo,
    /// SCHED_OTHER, best effort: results are labelled "not real-time".
    Other,
}

/// The values of `--stage`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum StageName {
    /// As threads of Linux.
    Inband,
    /// Out of band, as threads of EVL (Xenomai 4), beside the trials in band.
    Oob,
}

impl From<StageName> for ExecutionStage {
    fn from(stage: StageName) -> ExecutionStage {
        match stage {
            StageName::Inband => ExecutionStage::InBand,
            StageName::Oob => ExecutionStage::OutOfBand,
        }
    }
}

/// The values of `--policy`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SetPolicy {
    /// SCHED_FIFO, with priorities by deadline or as given, and each cell on its own cpu.
    Fifo,
    /// SCHED_DEADLINE: a runtime, deadline and period for every task, on all cpus.
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

/// Options of every measurement.
#[derive(Debug, Args)]
pub struct Measured {
    /// Directory to create the run directory in.
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Print the plan and its requirements, and measure nothing, except the baseline for a second if trials take turns.
    #[arg(long)]
    pub dry_run: bool,
    /// Measure even on cpus that a mission holds: its cells disturb the results, and may be late.
    #[arg(long)]
    pub beside_missions: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of every run.
#[derive(Debug, Args)]
pub struct Judged {
    /// Thresholds and the baseline.
    #[command(flatten)]
    pub judge: Judge,
    /// Options of every measurement.
    #[command(flatten)]
    pub measured: Measured,
}

/// Options of trials whose cells run jobs.
#[derive(Debug, Args)]
pub struct Trials {
    /// Smoke run: fewer jobs and rounds, under 30 s, or under 60 s with more than 12 trials.
    #[arg(long)]
    pub quick: bool,
    /// Length of each cell's measurement in each round, such as 10s; sets the number of jobs.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Cpus for the cells, such as 1 or 2-3; cell i is pinned to the i-th, cyclically.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// SCHED_FIFO priority, 1 to 99.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Scheduling class.
    #[arg(long, value_enum, conflicts_with = "priority")]
    pub class: Option<ClassName>,
    /// Number of rounds, in each of which every trial runs once.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<i64>,
    /// Run only trials of these engines, comma-separated.
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = Offered::<EngineKind>::of(engines))]
    pub engine: Vec<EngineKind>,
    /// Unprivileged user who runs rootless cells.
    #[arg(long, value_name = "NAME")]
    pub rootless_user: Option<String>,
    /// Set a key of the experiment as if it stood in the file, such as workload.steps=5000, scale.parallel=4 or, for the trial of that
    /// name, trial.crun.jobs=100; without a value, remove it. Other options come after. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// The program that runs the jobs, for experiments without a task set.
#[derive(Debug, Default, Args)]
pub struct OwnProgram {
    /// Run the jobs in your own program, with its arguments after `--`. A program that reports its jobs through timecell's client
    /// (`timecell header` prints it for C) is started once in each cell; otherwise each execution is a job; if it neither ends nor
    /// reports, its start, cpu time and exit are compared. Every engine runs the same file with its shared libraries; a program
    /// inside an image cannot be measured.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub program: Option<PathBuf>,
    /// Compare the cells by this task of --program, which reports several; by default by the one of the shortest period. The others are
    /// measured in the same time, in rows of their own.
    #[arg(long, value_name = "NAME", requires = "program")]
    pub task: Option<String>,
    /// Arguments of --program.
    #[arg(last = true, value_name = "ARG", requires = "program")]
    pub program_args: Vec<String>,
}

/// The number and times of jobs, for experiments without a task set.
#[derive(Debug, Default, Args)]
pub struct Pace {
    /// Stage on which the tasks run.
    #[arg(long, value_enum)]
    pub stage: Option<StageName>,
    /// Activations of each cell in each round.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with = "duration"
    )]
    pub jobs: Option<i64>,
    /// Time between releases, such as 1ms or 100us.
    #[arg(long, value_name = "TIME")]
    pub period: Option<Duration>,
    /// Time after its release by which a job must end, or else it is late [default: the period].
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<Duration>,
}

/// Loads beside the cells, for experiments without growing numbers of cells.
#[derive(Debug, Default, Args)]
pub struct Loads {
    /// Loads beside the cells of every trial, comma-separated; `bench --list-loads` lists them.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
}

/// Histograms instead of samples, for trials that support them.
#[derive(Debug, Default, Args)]
pub struct Kept {
    /// Keep a histogram of each minute and the 1,000 worst jobs instead of every sample, for runs of days.
    #[arg(long)]
    pub histogram: bool,
    /// Keep a histogram of each such interval, 1s to 1h; a power cut loses at most one interval.
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Duration>,
}

/// When known ratios end a run, for trials that take turns.
#[derive(Debug, Default, Args)]
pub struct Decided {
    /// Stop once every ratio of medians of the run's main metric to the baseline is known to within this, such as 2%, or shown to
    /// differ from 1. Looks up to five times, the last after four times the rounds, or after --rounds. If a ratio is neither by then,
    /// or by --at-most, or there is no ratio, the exit code is 1.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub decide: Option<f64>,
}

/// Conditions that end a run once they are decided.
#[derive(Debug, Default, Args)]
pub struct Until {
    /// Continue until it is known with 95 % confidence whether this holds, such as 'latency.p99.99 < 100us', and fail if it does not
    /// (exit code 3); may be repeated. Looks up to five times, each time after twice as many rounds, up to 16 times the jobs that the
    /// first look needs, or --rounds. Written like --fail-if, for quantiles of times.
    #[arg(long, value_name = "CONDITION")]
    pub until: Vec<Threshold>,
    /// Longest time for a run with --decide or --until, such as 10min; a question not decided by then stays undecided.
    #[arg(long, value_name = "TIME")]
    pub at_most: Option<Duration>,
}

/// Whether real time is required.
#[derive(Debug, Args)]
pub struct RealTime {
    /// Refuse to measure without a real-time class (exit code 4).
    #[arg(long)]
    pub require_rt: bool,
}

/// Options of a task set.
#[derive(Debug, Default, Args)]
pub struct TaskSet {
    /// Task set to run, in any format that `analyze` reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tasks: Option<PathBuf>,
    /// Scheduling class of the task set's threads.
    #[arg(long, value_enum)]
    pub policy: Option<SetPolicy>,
}

/// Options of growing numbers of cells.
#[derive(Debug, Default, Args)]
pub struct Growth {
    /// Numbers of cells that run together, ascending, comma-separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub counts: Vec<u32>,
}

/// How cells are held to reservations.
#[derive(Debug, Default, Args)]
pub struct Reserved {
    /// The enforcer that holds the cells of a scale study to equal shares of the cpus in every second (rt-cgroup or deadline), or the cells of a task
    /// set to their reservations; one that the set does not give is the least by analysis [default: none].
    #[arg(long, value_parser = enforcer::reserve())]
    pub reserve: Option<enforcer::Reserve>,
}

/// Options of an experiment. A scenario has only the groups that apply to it.
#[derive(Debug, Args)]
pub struct Experiment {
    /// Of any experiment.
    #[command(flatten)]
    pub trials: Trials,
    /// For an experiment without a task set.
    #[command(flatten)]
    pub program: OwnProgram,
    /// For an experiment without a task set.
    #[command(flatten)]
    pub pace: Pace,
    /// For an experiment without growing numbers of cells.
    #[command(flatten)]
    pub loads: Loads,
    /// For an experiment with neither.
    #[command(flatten)]
    pub kept: Kept,
    /// For an experiment whose trials take turns.
    #[command(flatten)]
    pub decided: Decided,
    /// For an experiment without growing numbers of cells.
    #[command(flatten)]
    pub until: Until,
    /// For an experiment that runs a task set.
    #[command(flatten)]
    pub set: TaskSet,
    /// Of an experiment with growing numbers of cells.
    #[command(flatten)]
    pub growth: Growth,
    /// Of both of these.
    #[command(flatten)]
    pub reserved: Reserved,
    /// Of any experiment.
    #[command(flatten)]
    pub real_time: RealTime,
    /// Options of every run.
    #[command(flatten)]
    pub run: Judged,
}

/// Options of single measurements, repeated.
#[derive(Debug, Args)]
pub struct Series {
    /// Smoke run: few rounds.
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds, in each of which everything is measured once.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<i64>,
    /// Options of every run.
    #[command(flatten)]
    pub run: Judged,
    /// The cells that are measured, where a mission file does not say it.
    #[arg(skip)]
    pub cells: SeriesCells,
    /// Options that only one of these scenarios takes.
    #[arg(skip)]
    pub own: Own,
}

/// Cells of single measurements.
#[derive(Debug, Default, Args)]
pub struct SeriesCells {
    /// Measure only cells of these engines, comma-separated; virtual machines (qemu) are measured only if named.
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = Offered::<EngineKind>::of(engines))]
    pub engine: Vec<EngineKind>,
    /// Unprivileged user who runs rootless cells.
    #[arg(long, value_name = "NAME")]
    pub rootless_user: Option<String>,
}

/// Options that only one scenario of single measurements takes.
#[derive(Debug, Default)]
pub struct Own {
    /// Where its threads run.
    pub cpus: Option<String>,
    /// Age of the last heartbeat at which its payload counts as wedged.
    pub heartbeat_timeout: Option<Duration>,
    /// Sizes of cells.
    pub sweep: Vec<String>,
    /// The mission.
    pub mission: Option<PathBuf>,
}

/// The mission that is measured.
#[derive(Debug, Default, Args)]
pub struct OfMission {
    /// Mission file.
    #[arg(value_name = "MISSION", value_hint = ValueHint::FilePath, required = true)]
    pub mission: Option<PathBuf>,
}

/// Where threads run.
#[derive(Debug, Default, Args)]
pub struct Cpus {
    /// Cpus that the threads may use, such as 1 or 2-3; the highest is used first.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
}

/// When a payload counts as wedged.
#[derive(Debug, Default, Args)]
pub struct Heartbeat {
    /// Age of the last heartbeat at which a payload counts as wedged, 3ms or more [default: 10ms].
    #[arg(long, value_name = "TIME")]
    pub heartbeat_timeout: Option<Duration>,
}

/// Sizes of cells.
#[derive(Debug, Default, Args)]
pub struct Sweep {
    /// Measure cells of every size: `vcpus=1,2,4` and `memory=128MiB,1GiB`, or both for every combination: cpus and memory of virtual
    /// machines, limits of cpu time and memory of containers.
    #[arg(long, value_name = "KEY=VALUE,VALUE...")]
    pub sweep: Vec<String>,
}

/// Options of studies of enforcers.
#[derive(Debug, Args)]
pub struct Enforced {
    /// Smoke run: few and short trials.
    #[arg(long)]
    pub quick: bool,
    /// Enforcers to measure, comma-separated; `evl-quota` and `evl-tp` in `supply` only [default: all others].
    #[arg(long, value_name = "ENFORCER", value_delimiter = ',', value_parser = enforcer::one_of(Enforcer::OF_SUPPLY))]
    pub enforcer: Vec<Enforcer>,
    /// Reservations as BUDGET/PERIOD, comma-separated [default: 30ms/100ms,10ms/50ms,3ms/10ms,1ms/10ms; for `isolation` 10, 15, 20
    /// and 25ms/100ms beside each other].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub reservation: Vec<String>,
    /// Length of each trial, such as 10s.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Number of rounds, in each of which every trial runs once; for contests, number of task sets of each utilisation.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rounds: Option<i64>,
    /// Cpu to measure on.
    #[arg(long, value_name = "CPU")]
    pub cpus: Option<String>,
    /// SCHED_FIFO priority, up to 99.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Load beside the cells, or `idle` for none; `bench --list-loads` lists them. For contests, several, comma-separated, one after
    /// the other.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// Options of every run.
    #[command(flatten)]
    pub run: Judged,
}

/// Options of a supply study.
#[derive(Debug, Args)]
pub struct Supply {
    /// Options of every study of enforcers.
    #[command(flatten)]
    pub enforced: Enforced,
    /// Skip the task sets that run inside the measured budgets.
    #[arg(long)]
    pub no_try: bool,
    /// Number of threads that share each budget, 1 to 64; all but the measured one have the next lower priority [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<i64>,
}

/// Options of a study of temporal isolation.
#[derive(Debug, Args)]
pub struct Isolation {
    /// Parts to run: contest, received [default: both].
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
    /// Options of every study of enforcers.
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
    /// Length of an overrunning attacker's jobs, as a multiple of the declared length [default: 1.8].
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub overrun: Option<f64>,
    /// Seed of the task sets; the same seed gives the same sets [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Options of timecell's measurement of itself.
#[derive(Debug, Args)]
pub struct Itself {
    /// Parts to run: wakeup, barrier, startup, memory, loads, crowd [default: all].
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
    /// Smoke run: few rounds, to show that everything works.
    #[arg(long)]
    pub quick: bool,
    /// Cpu to measure on.
    #[arg(long, value_name = "CPU")]
    pub cpus: Option<String>,
    /// SCHED_FIFO priority, 1 to 99.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Loads for part `loads`, comma-separated [default: all].
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// Options of every measurement.
    #[command(flatten)]
    pub measured: Measured,
}

/// A fraction, in percent or as a number.
fn part(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let number: f64 =
        (number.parse()).map_err(|_| "it must be a fraction such as 2% or 0.02".to_owned())?;
    Ok(number / whole)
}

/// A load's name; `idle` stands for none.
fn load(name: &str) -> Result<Option<LoadKind>, String> {
    match name {
        model::IDLE => Ok(None),
        name => name.parse().map(Some),
    }
}
