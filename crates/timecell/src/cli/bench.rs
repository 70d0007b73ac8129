//! What `timecell bench` may be asked.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use model::Enforcer;
use model::{Bytes, Duration, EngineKind, LoadKind};

use super::enforcer;
use super::judge::Judge;
use super::offered::{Offered, engines, scenarios};

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

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Scenarios: overhead (bare metal against every container engine, one cell at a time), \
    concurrency (rootful and rootless containers together), latency (wake-up every 100 us in every engine, idle and \
    under loads), taskset (a periodic task set against its deadlines and its analysis), reservations (the same inside budgets, under each \
    enforcer), device (wake-up on every cpu by \
    load and period, before and after cpus are kept free), scale (growing numbers of cells together, up to 2,048 and \
    beyond), startup (create, run, exit and delete, by every launcher), \
    recovery (until a killed or wedged cell \
    runs again), footprint (memory of an idle real-time cell), nqueens (a computation on 1, 2 and 4 threads, with and \
    without cpu load elsewhere), supply (what rt-cgroups, SCHED_DEADLINE and the freezer really give to a cell, against the textbook's \
    bound, and the deadlines that the difference costs), isolation (a cell beside one that runs longer than it declared, with each enforcer and with none; parts: \
    contest, received), self (timecell itself against cyclictest, a polling barrier and other launchers; parts: \
    wakeup, barrier, startup, memory, loads).\n\n\
    Real-time classes need privilege: run with sudo. Without it the same command runs with SCHED_OTHER and every \
    result is labelled \"not real-time\".\n\n\
    Examples:\n  \
    sudo timecell bench overhead --quick                        every engine against bare metal, under 30 s\n  \
    timecell bench --template > mine.toml                       an experiment of your own, to be changed\n  \
    sudo timecell bench latency --until 'latency.p99.99 < 100us' as long as it takes to know\n  \
    sudo timecell bench mine.toml --load cpu,disk               the same, disturbed\n  \
    sudo timecell bench overhead --program ./app -- --rate 100  your own program in every engine\n  \
    sudo timecell bench latency --histogram --duration 24h      a day, in constant memory\n  \
    sudo timecell bench mine.toml --fail-if 'latency.p99 > 100us' --fail-if 'missed > 0'\n  \
    sudo timecell bench mine.toml --baseline runs/... --fail-if 'execution.median > 1.1x'\n\n\
    Exit codes with --fail-if: 3 a threshold is missed; else 1 a trial failed or a threshold is undecided; else 4 a \
    threshold is not applicable (no real-time class, too few jobs, not measured); else 0. With --decide: 1 if a ratio is \
    neither known well enough nor shown to differ, or there is none."
)]
pub struct Bench {
    /// Scenario, or path of an experiment file.
    #[arg(value_hint = ValueHint::FilePath, value_parser = Offered::<String>::of(scenarios), hide_possible_values = true, required_unless_present_any = ["list", "list_loads", "resume", "template"])]
    pub experiment: Option<String>,
    /// Parts of `bench self`, or of `bench isolation` (contest, received); all when none is named.
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
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
    /// Measure although a mission holds cpus that are measured on: its cells are in the numbers then, and may be late.
    #[arg(long)]
    pub beside_missions: bool,
    /// Cpus for the cells, such as 1 or 2-3; cell i is pinned to the i-th, in turn. Scenario `nqueens`: cpus that its
    /// threads may use, the highest first.
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
    pub until: Vec<String>,
    /// Longest time for a run with --decide or --until, such as 10min: what is not known by then stays open.
    #[arg(long, value_name = "TIME")]
    pub at_most: Option<Duration>,
    /// Only trials of these engines, comma-separated.
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = Offered::<EngineKind>::of(engines))]
    pub engine: Vec<EngineKind>,
    /// Loads beside the cells of every trial, comma-separated; --list-loads shows them. In scenario `isolation` one after the
    /// other, with `idle` for none; in `supply` one.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// Keep a histogram of each minute and the 1,000 worst jobs instead of every sample: for runs of days.
    #[arg(long)]
    pub histogram: bool,
    /// Keep a histogram of each such interval, 1s to 1h; a power cut takes away one interval at most.
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// Go on with this run (`latest`: the newest below runs), which ended before its time: a power cut, an interrupt, a full disk.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "experiment", "program", "quick", "duration", "jobs", "period", "deadline", "cpus", "priority", "class", "rounds", "decide", "until", "at_most", "engine",
        "rootless_user", "heartbeat_timeout", "enforcer", "reservation", "no_try", "threads", "utilisation", "overrun", "seed", "load", "histogram", "interval", "out",
    ])]
    pub resume: Option<PathBuf>,
    /// Age of the last heartbeat at which scenario `recovery` takes a payload for wedged, such as 10ms [default: 10ms].
    #[arg(long, value_name = "TIME")]
    pub heartbeat_timeout: Option<Duration>,
    /// The task set to run in scenario `taskset` or an experiment with kind = "taskset": a file that `analyze` reads.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tasks: Option<PathBuf>,
    /// Class of the threads of a task set.
    #[arg(long, value_enum)]
    pub policy: Option<SetPolicy>,
    /// Scenario `scale`: numbers of cells that run together, ascending, comma-separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub counts: Vec<u32>,
    /// Scenario `scale`: cells that are created at the same time [default: 8].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub parallel: Option<i64>,
    /// Scenario `scale`: the share of one trial's cells that may fail; more of them end the study of that engine
    /// [default: 0.01].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub failure_limit: Option<f64>,
    /// Scenario `scale`: how each cell is held to an equal share of the cpus in every second, by rt-cgroup or deadline. A task set: what holds
    /// its cells to their reservations, of which those that the set does not give are the least by analysis [default: none].
    #[arg(long, value_parser = enforcer::reserve())]
    pub reserve: Option<enforcer::Reserve>,
    /// Scenario `scale`: memory of the machine that is left to everybody else, such as 2GiB; below it no more cells are made
    /// and those that run are stopped [default: a twentieth of the machine's].
    #[arg(long, value_name = "SIZE")]
    pub memory_reserve: Option<Bytes>,
    /// Scenario `scale`: stop the cells when ordinary work has had no turn for so long, 1s to 60s [default: 5s].
    #[arg(long, value_name = "TIME")]
    pub starvation_limit: Option<Duration>,
    /// Scenarios `supply` and `isolation`: the enforcers to measure, comma-separated [default: all].
    #[arg(long, value_name = "ENFORCER", value_delimiter = ',', value_parser = enforcer::one_of(Enforcer::OF_BENCH))]
    pub enforcer: Vec<Enforcer>,
    /// Scenarios `supply` and `isolation`: budget/period of each reservation, comma-separated [default:
    /// 30ms/100ms,10ms/50ms,3ms/10ms,1ms/10ms; in `isolation` 10, 15, 20 and 25ms/100ms beside each other].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub reservation: Vec<String>,
    /// Scenario `supply`: leave out the task sets that are run inside the measured budgets.
    #[arg(long)]
    pub no_try: bool,
    /// Scenario `supply`: threads that share each budget, 1 to 64, all but the measured one a step less urgent [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<i64>,
    /// Scenario `isolation`: declared utilisations of both cells together, comma-separated [default: 0.4,0.5,0.6,0.8].
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub utilisation: Vec<f64>,
    /// Scenario `isolation`: how long an overrunning attacker's jobs are, as a multiple of what it declared [default: 1.8].
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub overrun: Option<f64>,
    /// Scenario `isolation`: seed of the task sets; the same seed gives the same sets [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The unprivileged user who runs rootless cells.
    #[arg(long, value_name = "NAME")]
    pub rootless_user: Option<String>,
    /// Directory in which the run directory is made.
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Print the plan and its unmet requirements; measure nothing, but for a second where trials take turns.
    #[arg(long)]
    pub dry_run: bool,
    /// Refuse to measure without a real-time class (exit code 4).
    #[arg(long)]
    pub require_rt: bool,
    /// Thresholds and the baseline.
    #[command(flatten)]
    pub judge: Judge,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print an experiment file with every key explained, to be changed at will.
    #[arg(long, exclusive = true)]
    pub template: bool,
    /// List the scenarios.
    #[arg(long)]
    pub list: bool,
    /// List the loads: what each does, its program and the Debian package that has it.
    #[arg(long)]
    pub list_loads: bool,
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
