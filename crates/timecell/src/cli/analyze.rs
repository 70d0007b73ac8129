//! What `timecell analyze` may be asked.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use feasibility::{Fit, ReactionText, RtLimit};
use model::Duration;
use model::Enforcer;
use record::import::taskset::{Format, Unit};

use super::{enforcer, offered};

/// Options of `analyze`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit codes: 0 every deadline holds; 1 undecided or failed; 2 bad usage or input; \
    3 a deadline can be missed.\n\nWhere a test is sufficient only (two criticalities, several \
    cpus), its no is undecided, unless a miss is proved.\n\nA file whose name is that of a subcommand is given as ./design.\n\n\
    Examples:\n  \
    timecell analyze tasks.toml --explain              each verdict with its witness and fixes\n  \
    timecell analyze tasks.toml --plot demand.svg      demand against supply\n  \
    timecell analyze design tasks.toml                 the least reservations, and which cell goes where\n  \
    timecell export tasks.toml --rt-app                the same tasks, for rt-app to run"
)]
pub struct Analyze {
    /// Another question than whether the deadlines hold.
    #[command(subcommand)]
    pub command: Option<AnalyzeCommand>,
    /// Whether the deadlines hold.
    #[command(flatten)]
    pub check: Check,
}

/// The other questions.
#[derive(Debug, Subcommand)]
pub enum AnalyzeCommand {
    /// Which cell goes onto which cpu, and what is the least that each must reserve?
    Design(Design),
    /// Print a random task set.
    Generate(Generate),
    /// How many random task sets do the tests accept? Draws acceptance-ratio curves.
    Schedulability(Schedulability),
}

/// Where a task set comes from.
#[derive(Debug, Args)]
pub struct Source {
    /// Task set, in any format that --format lists, packed by gzip or not; - is standard input, with --format.
    #[arg(value_hint = ValueHint::FilePath, required = true)]
    pub file: Option<PathBuf>,
    /// Format of the file [default: by its extension].
    #[arg(long, value_parser = offered::format(Format::all()))]
    pub format: Option<Format>,
    /// Unit of the numbers in files that have none, such as SchedCAT's and those of CARTS [default: us].
    #[arg(long, value_enum)]
    pub unit: Option<UnitName>,
    /// Policy of imported tasks whose file names none [default: edf].
    #[arg(long, value_enum)]
    pub policy: Option<PolicyName>,
}

/// Options of `analyze FILE`.
#[derive(Debug, Args)]
pub struct Check {
    /// The task set.
    #[command(flatten)]
    pub source: Source,
    /// Cpus of the machine, for threads of an rt-app file that may run on all [default: those of this machine].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the witness of each refusal, the smallest changes that would fix it, and how much more work each cell bears.
    #[arg(long)]
    pub explain: bool,
    /// Draw demand against supply of the cell that misses a deadline, or comes nearest to it, as SVG.
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// A wake-up latency bound, such as 150us from `timecell bench`; counts as blocking of every task.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = latency)]
    pub latency: Option<Duration>,
    /// What Linux is asked.
    #[command(flatten)]
    pub kernel: Kernel,
}

/// Which mechanism of Linux is to hold the reservations.
#[derive(Debug, Args)]
pub struct Kernel {
    /// The mechanism whose admission control is asked: its own arithmetic, not the kernel of this machine [default: the
    /// file's, else deadline].
    #[arg(long, value_name = "ENFORCER", value_parser = enforcer::one_of(Enforcer::OF_ANALYSIS))]
    pub enforcer: Option<Enforcer>,
    /// sched_rt_runtime_us and sched_rt_period_us as runtime/period, such as 900ms/1s, or none for no limit.
    #[arg(long, value_name = "RUNTIME/PERIOD", default_value = "950ms/1s")]
    pub rt_limit: RtLimit,
    /// With `freezer`: how late the thread that holds the budgets looks, and for how long a cell runs on beyond its budget, as
    /// lateness/overrun; with /noticed behind it where it has notice of use (PREEMPT_RT has it only with irq_work above the cells).
    #[arg(long, value_name = "LATE/OVERRUN", default_value = "100us/430us")]
    pub reaction: ReactionText,
    /// A run of `bench supply`: what it measured of each reservation counts as well as the textbook's supply (`design` refuses it
    /// there), and with `freezer` its worst reaction in the place of `--reaction`.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with = "reaction")]
    pub supply: Option<PathBuf>,
}

/// The heuristics that `--fit` may ask for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FitName {
    /// The first cpu with room.
    First,
    /// The fullest cpu with room.
    Best,
    /// The emptiest cpu.
    Worst,
    /// The cpu of the last cell, or one after it.
    Next,
    /// Where least is wasted: the heuristic Ovh of Abeni, Biondi and Bini (2022) as reconstructed from published
    /// results, not its authors' definition; made for tasks, here each reservation is one; cells by growing period.
    Ovh,
}

impl From<FitName> for Fit {
    fn from(name: FitName) -> Fit {
        match name {
            FitName::First => Fit::First,
            FitName::Best => Fit::Best,
            FitName::Worst => Fit::Worst,
            FitName::Next => Fit::Next,
            FitName::Ovh => Fit::Ovh,
        }
    }
}

/// The units that `--unit` may ask for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum UnitName {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl From<UnitName> for Unit {
    fn from(name: UnitName) -> Unit {
        match name {
            UnitName::Ns => Unit::Ns,
            UnitName::Us => Unit::Us,
            UnitName::Ms => Unit::Ms,
            UnitName::S => Unit::S,
        }
    }
}

/// The policies that `--policy` may ask for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PolicyName {
    /// Fixed priorities, deadline monotonic.
    Fp,
    /// Earliest deadline first.
    Edf,
}

/// How random task sets are made.
#[derive(Debug, Args)]
pub struct Making {
    /// Tasks in a set.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tasks: u32,
    /// Shortest period.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub shortest: Duration,
    /// Longest period; periods are log-uniform.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub longest: Duration,
    /// Seed; the same seed gives the same sets.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Options of `analyze design`.
#[derive(Debug, Args)]
#[command(
    after_help = "Reservations and servers that the file gives are not used; each cell gets the reservation of least \
    bandwidth that its tasks need, and a place by --fit in the order of falling bandwidth."
)]
pub struct Design {
    /// The task set.
    #[command(flatten)]
    pub source: Source,
    /// Cpus [default: the file's, else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: Option<u32>,
    /// The period of every reservation, instead of the one that needs least of the cpu.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["shortest", "step"])]
    pub period: Option<Duration>,
    /// Shortest period of a reservation.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub shortest: Duration,
    /// Step from one period to the next.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub step: Duration,
    /// Budgets are multiples of this.
    #[arg(long, value_name = "TIME", default_value = "1us")]
    pub grid: Duration,
    /// Cpu time that each period costs beside the budget, for switching.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    pub overhead: Duration,
    /// The part of each cpu that reservations may take together, in percent; Linux admits 95, some 90 beside its fair
    /// server.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub share: u32,
    /// On which of the cpus with room a cell goes; cells by falling bandwidth.
    #[arg(long, value_enum, default_value = "first")]
    pub fit: FitName,
    /// A wake-up latency bound, such as 150us from `timecell bench`; counts as blocking of every task.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = latency)]
    pub latency: Option<Duration>,
    /// What Linux is asked.
    #[command(flatten)]
    pub kernel: Kernel,
    /// Print the cells with their reservations as a task-set file instead of the tables.
    #[arg(long, conflicts_with = "json")]
    pub toml: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `analyze generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// How the set is made.
    #[command(flatten)]
    pub making: Making,
    /// Total utilization, such as 0.8.
    #[arg(long, value_name = "U", default_value_t = 0.8)]
    pub utilization: f64,
    /// Deadlines lie between the period and this part of the way from the wcet to the period; 1 makes them periods.
    #[arg(long, value_name = "X", default_value = "1", allow_negative_numbers = true, value_parser = part)]
    pub deadlines: f64,
    /// Policy of the cell.
    #[arg(long, value_enum, default_value = "fp")]
    pub policy: PolicyName,
}

/// Options of `analyze schedulability`.
#[derive(Debug, Args)]
#[command(
    after_help = "All tests see the same sets with the same deadlines. With the deadlines at the periods they are the \
    Liu-Layland bound, the hyperbolic bound and exact response times under rate-monotonic priorities, and EDF by exact \
    demand. With --deadlines below 1 the two bounds do not apply and are left out; priorities are deadline monotonic."
)]
pub struct Schedulability {
    /// How the sets are made.
    #[command(flatten)]
    pub making: Making,
    /// Total utilizations, from and to.
    #[arg(long, value_name = "FROM..TO", default_value = "0.5..1.0", value_parser = range)]
    pub utilizations: (f64, f64),
    /// Points between them.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub points: u32,
    /// Sets at each point.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub sets: u32,
    /// Deadlines lie between the period and this part of the way from the wcet to the period; 1 makes them periods.
    #[arg(long, value_name = "X", default_value = "1", allow_negative_numbers = true, value_parser = part)]
    pub deadlines: f64,
    /// Threads [default: all cpus].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// File for the curves.
    #[arg(long, value_name = "FILE.svg", default_value = "schedulability.svg", value_hint = ValueHint::FilePath)]
    pub plot: PathBuf,
    /// File for the numbers.
    #[arg(long, value_name = "FILE.csv", default_value = "schedulability.csv", value_hint = ValueHint::FilePath)]
    pub csv: PathBuf,
}

/// `0.5..1.0`.
fn range(text: &str) -> Result<(f64, f64), String> {
    let parts = text.split_once("..");
    let number = |text: &str| text.trim_start_matches('=').trim().parse::<f64>().ok();
    match parts.map(|(from, to)| (number(from), number(to))) {
        Some((Some(from), Some(to))) if 0.0 < from && from < to && to <= 64.0 => Ok((from, to)),
        _ => Err("write two utilizations, the lesser first, such as 0.5..1.0".to_owned()),
    }
}

/// `0.5`.
fn part(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok();
    number
        .filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| {
            "write a part from 0 to 1, such as 0.5; 1 makes the deadlines the periods".to_owned()
        })
}

/// A time. A negative one is taken for one, to be refused by what it says; the next option is none.
fn latency(text: &str) -> Result<Duration, String> {
    if text.starts_with("--") {
        return Err(format!(
            "the option has no value, {text} is the next option; write a time such as 150us"
        ));
    }
    text.parse()
        .map_err(|error: model::DurationError| error.to_string())
}
