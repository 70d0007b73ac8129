//! The options of `timecell analyze`.

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
    after_help = "Examples:
  timecell analyze tasks.toml --explain              explain each verdict, with a witness and fixes
  timecell analyze tasks.toml --plot demand.svg      draw demand against supply
  timecell analyze design tasks.toml                 find reservations, place cells
  timecell export tasks.toml --rt-app                write the tasks for rt-app to run

If a test is only sufficient (two criticalities, several cpus), its no counts as undecided, unless a miss is proven.

If a file has the name of a subcommand, write ./design.

Exit codes: 0 every deadline holds; 1 undecided or failed; 2 bad usage or input; 3 a deadline can be missed."
)]
pub struct Analyze {
    /// A question other than whether the deadlines hold.
    #[command(subcommand)]
    pub command: Option<AnalyzeCommand>,
    /// Whether the deadlines hold.
    #[command(flatten)]
    pub check: Check,
}

/// The other questions.
#[derive(Debug, Subcommand)]
pub enum AnalyzeCommand {
    /// Place each cell on a cpu, with the least reservation that it needs.
    Design(Design),
    /// Print a random task set.
    Generate(Generate),
    /// Draw the share of random task sets that each test accepts.
    Schedulability(Schedulability),
}

/// Where a task set comes from.
#[derive(Debug, Args)]
pub struct Source {
    /// Task set in any format that --format lists, gzipped or not; `-` is standard input and needs --format.
    #[arg(value_hint = ValueHint::FilePath, required = true)]
    pub file: Option<PathBuf>,
    /// Format of the file [default: by its extension].
    #[arg(long, value_parser = offered::format(Format::all()))]
    pub format: Option<Format>,
    /// Unit of the numbers in files that do not state it, such as SchedCAT's and CARTS's [default: us].
    #[arg(long, value_enum)]
    pub unit: Option<UnitName>,
    /// Policy of imported tasks whose file states none [default: edf].
    #[arg(long, value_enum)]
    pub policy: Option<PolicyName>,
}

/// Options of `analyze FILE`.
#[derive(Debug, Args)]
pub struct Check {
    /// The task set.
    #[command(flatten)]
    pub source: Source,
    /// Number of cpus, for threads of an rt-app file that may run on all [default: this machine's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print a witness for each deadline that can be missed, the smallest changes that fix it, and how much every wcet may grow.
    #[arg(long)]
    pub explain: bool,
    /// Draw demand against supply as SVG, for the cell that misses a deadline or comes nearest to a miss.
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Bound on wake-up latency, such as 150us from `timecell bench`; counts as blocking of every task.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = latency)]
    pub latency: Option<Duration>,
    /// The mechanism that holds the reservations.
    #[command(flatten)]
    pub kernel: Kernel,
}

/// Which mechanism of Linux holds the reservations, and how well.
#[derive(Debug, Args)]
pub struct Kernel {
    /// Mechanism whose admission test is applied, by its own arithmetic, not by this machine's kernel [default: the
    /// file's, else deadline].
    #[arg(long, value_name = "ENFORCER", value_parser = enforcer::one_of(Enforcer::OF_ANALYSIS))]
    pub enforcer: Option<Enforcer>,
    /// sched_rt_runtime_us and sched_rt_period_us, such as 900ms/1s, or none for no limit.
    #[arg(long, value_name = "RUNTIME/PERIOD", default_value = "950ms/1s")]
    pub rt_limit: RtLimit,
    /// For `freezer`: how late the thread that holds the budgets checks, and how long a cell may overrun its budget; append /noticed
    /// if the thread is notified of first use (on PREEMPT_RT only with irq_work above the cells).
    #[arg(long, value_name = "LATE/OVERRUN", default_value = "100us/430us")]
    pub reaction: ReactionText,
    /// Run of `bench supply` whose measurement of each reservation counts as well as the textbook's supply; for `freezer`, its worst
    /// reaction replaces --reaction (`design` uses it only for that).
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with = "reaction")]
    pub supply: Option<PathBuf>,
}

/// The values of `--fit`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FitName {
    /// The first cpu with room.
    First,
    /// The fullest cpu with room.
    Best,
    /// The emptiest cpu.
    Worst,
    /// The cpu of the last placed cell, or the next with room.
    Next,
    /// The cpu where least is wasted: the heuristic Ovh of Abeni, Biondi and Bini (2022), reconstructed from published
    /// results, not its authors' definition; made for tasks, applied to reservations; cells by increasing period.
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

/// The values of `--unit`.
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

/// The values of `--policy`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PolicyName {
    /// Fixed priorities, deadline monotonic.
    Fp,
    /// Earliest deadline first.
    Edf,
}

/// How random task sets are generated.
#[derive(Debug, Args)]
pub struct Making {
    /// Number of tasks in a set.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tasks: u32,
    /// Shortest period.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub shortest: Duration,
    /// Longest period; periods are log-uniform.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub longest: Duration,
    /// Seed of the task sets; the same seed gives the same sets.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Options of `analyze design`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell analyze design tasks.toml                  the least reservations, on one cpu
  timecell analyze design tasks.toml --cpus 4 --period 10ms

Reservations and servers in the file are ignored; each cell gets the reservation of least bandwidth \
    that its tasks need, and is placed by --fit in order of decreasing bandwidth.")]
pub struct Design {
    /// The task set.
    #[command(flatten)]
    pub source: Source,
    /// Number of cpus [default: the file's, else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: Option<u32>,
    /// Period of every reservation [default: the period that needs least cpu time].
    #[arg(long, value_name = "TIME", conflicts_with_all = ["shortest", "step"])]
    pub period: Option<Duration>,
    /// Shortest period of a reservation.
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub shortest: Duration,
    /// Step from one period to the next.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub step: Duration,
    /// Granularity of budgets.
    #[arg(long, value_name = "TIME", default_value = "1us")]
    pub grid: Duration,
    /// Cpu time that each period costs besides the budget, for switching.
    #[arg(long, value_name = "TIME", default_value = "0us")]
    pub overhead: Duration,
    /// Percentage of each cpu that reservations may take together; Linux admits 95, or about 90 with its fair
    /// server.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub share: u32,
    /// How to choose among the cpus with room for a cell; cells by decreasing bandwidth.
    #[arg(long, value_enum, default_value = "first")]
    pub fit: FitName,
    /// Bound on wake-up latency, such as 150us from `timecell bench`; counts as blocking of every task.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = latency)]
    pub latency: Option<Duration>,
    /// The mechanism that holds the reservations.
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
#[command(after_help = "Examples:
  timecell analyze generate > random.toml
  timecell analyze generate --utilization 0.6 --seed 7 --policy edf > random.toml")]
pub struct Generate {
    /// How the set is generated.
    #[command(flatten)]
    pub making: Making,
    /// Total utilization, such as 0.8.
    #[arg(long, value_name = "U", default_value_t = 0.8)]
    pub utilization: f64,
    /// Draw deadlines between the period and this fraction of the way from the wcet to the period; 1 makes deadlines periods.
    #[arg(long, value_name = "X", default_value = "1", allow_negative_numbers = true, value_parser = part)]
    pub deadlines: f64,
    /// Policy of the cell.
    #[arg(long, value_enum, default_value = "fp")]
    pub policy: PolicyName,
}

/// Options of `analyze schedulability`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell analyze schedulability                     draw schedulability.svg
  timecell analyze schedulability --sets 100 --points 20

All tests see the same sets with the same deadlines. If deadlines equal periods, the tests are the \
    Liu-Layland bound, the hyperbolic bound and exact response times under rate-monotonic priorities, and EDF by exact \
    demand. With --deadlines below 1, the two bounds do not apply and are omitted; priorities are deadline monotonic.")]
pub struct Schedulability {
    /// How the sets are generated.
    #[command(flatten)]
    pub making: Making,
    /// Range of total utilizations.
    #[arg(long, value_name = "FROM..TO", default_value = "0.5..1.0", value_parser = range)]
    pub utilizations: (f64, f64),
    /// Number of points in the range.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub points: u32,
    /// Number of sets at each point.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub sets: u32,
    /// Draw deadlines between the period and this fraction of the way from the wcet to the period; 1 makes deadlines periods.
    #[arg(long, value_name = "X", default_value = "1", allow_negative_numbers = true, value_parser = part)]
    pub deadlines: f64,
    /// Number of worker threads [default: one per cpu].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// File to write the curves to.
    #[arg(long, value_name = "FILE.svg", default_value = "schedulability.svg", value_hint = ValueHint::FilePath)]
    pub plot: PathBuf,
    /// File to write the numbers to.
    #[arg(long, value_name = "FILE.csv", default_value = "schedulability.csv", value_hint = ValueHint::FilePath)]
    pub csv: PathBuf,
}

/// `0.5..1.0`.
fn range(text: &str) -> Result<(f64, f64), String> {
    let parts = text.split_once("..");
    let number = |text: &str| text.trim_start_matches('=').trim().parse::<f64>().ok();
    match parts.map(|(from, to)| (number(from), number(to))) {
        Some((Some(from), Some(to))) if 0.0 < from && from < to && to <= 64.0 => Ok((from, to)),
        _ => Err("write two utilizations, the smaller first, such as 0.5..1.0".to_owned()),
    }
}

/// `0.5`.
fn part(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok();
    number
        .filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| {
            "write a fraction from 0 to 1, such as 0.5; 1 makes deadlines periods".to_owned()
        })
}

/// A time. A negative time is parsed too, so that its own error is printed; the next option is not taken for a time.
fn latency(text: &str) -> Result<Duration, String> {
    if text.starts_with("--") {
        return Err(format!(
            "the option has no value, {text} is the next option; write a time such as 150us"
        ));
    }
    text.parse()
        .map_err(|error: model::DurationError| error.to_string())
}
