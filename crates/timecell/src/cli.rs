//! The command line: what may be asked, in words. `--help`, man pages and completions come from here.

mod analyze;
mod control;
mod judge;
mod offered;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use model::taskset::Enforcer;
use model::{Bytes, Duration, EngineKind, LoadKind};
use record::import::measured::Format as MeasuredFormat;

pub use analyze::{
    Analyze, AnalyzeCommand, Check, Design, Generate, Making, PolicyName, Schedulability, Source,
    UnitName,
};
pub use control::{Down, Events, Logs, OfCells, Ps, Update, Which, WhichFirst};
pub use judge::Judge;
use offered::{Offered, engines, scenarios};

/// Real-time containers that keep time on Linux, and prove it.
#[derive(Debug, Parser)]
#[command(
    name = "timecell",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 fine; 1 failed; 2 bad usage or input; 3 a threshold or guarantee was missed; \
                  4 a requirement is unmet."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Is this machine fit for real time, and what would make it fitter?
    Doctor(Doctor),
    /// How does real-time work behave here, on bare metal and in containers?
    Bench(Box<Bench>),
    /// What was measured: drawn, compared, with confidence.
    Report(Report),
    /// Do these task sets meet their deadlines, and what is the least CPU each cell must reserve?
    Analyze(Analyze),
    /// Write a run, or a task set, for other tools: tables, cyclictest's forms, rt-app.
    Export(Export),
    /// Print a mission that runs as it is, to begin with.
    #[command(after_help = "Examples:
  timecell demo > demo.toml
  timecell admit demo.toml            what is guaranteed, and why
  sudo timecell up demo.toml          keeps it running, until Ctrl-C
  sudo timecell ps demo               in another terminal: jobs, late jobs, longest responses

The program of its cells is timecell itself, where it is now.")]
    Demo,
    /// Could this mission be started here, and under which assumptions? Nothing is started.
    Admit(Admit),
    /// Admit a mission and keep it running: cells held by kernel budgets, restarted by their policies.
    Up(Up),
    /// What runs of a mission: cells, jobs, cpu time, budgets, and why stopped cells are stopped.
    Ps(Ps),
    /// What a cell of a mission has written.
    Logs(Logs),
    /// Past and live mission events.
    Events(Events),
    /// Stop cells of a mission with those that need them; they stay stopped until `start`.
    Stop(OfCells),
    /// Let stopped cells of a mission run again.
    Start(OfCells),
    /// End cells of a mission and start them anew.
    Restart(OfCells),
    /// Apply a changed file to a running mission: new versions beside the old where there is room, taken back when they fail.
    Update(Update),
    /// End a mission; its logs and journal stay.
    Down(Down),
    /// What runs now: cells, cpu time, jobs, late or missed ones and worst times of a mission or experiment.
    Top(Top),
    /// Save what a killed timecell had measured, and remove what it left behind: cells, cgroups, shared memory.
    Clean(Clean),
    /// Print the shell's completion script.
    Completions(Completions),
    /// Write the man pages.
    Man(Man),
    /// Print the C header with which a program in a cell reports its jobs and heartbeats.
    Header,
}

/// Options of `up`.
#[derive(Debug, Args)]
#[command(
    after_help = "It runs in the foreground, or as a service of systemd (dist/timecell@.service), and ends all cells at Ctrl-C, SIGTERM or `timecell \
    down`. When it is killed its cells go on, held as before; the next `timecell up` of the mission takes them over. \
    ps, logs, events, stop, start, restart and update speak with it.

Exit codes: 0 ended as asked; 3 a guarantee cannot be kept, nothing was started; 2 the mission file is faulty."
)]
pub struct Up {
    /// Mission file; without, the mission that --dir has admitted last.
    #[arg(value_name = "MISSION", required_unless_present = "dir")]
    pub mission: Option<PathBuf>,
    /// Run of `timecell bench supply` whose measurements count, in place of the one that the mission names.
    #[arg(long, value_name = "RUN")]
    pub supply: Option<PathBuf>,
    /// Directory of the mission's journal and cells [default: /var/lib/timecell/NAME].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Where the last supervisor was killed or the power went, go on with the mission as it was admitted last, updates included,
    /// instead of the one in the file.
    #[arg(long, requires_all = ["mission", "dir"])]
    pub recover: bool,
}

/// Options of `admit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell admit mission.toml                       budgets, cpus, priorities and bounds, or why not
  sudo timecell bench supply                        what this kernel's budgets really supply
  timecell admit mission.toml --supply runs/...     the same, counting on what was measured
  timecell admit --schema > mission.schema.json     for editors

Exit codes: 0 every guarantee can be kept; 3 one cannot, with the reason and changes that are admitted; 2 the mission file
is faulty, all its faults with their lines.")]
pub struct Admit {
    /// Mission file.
    #[arg(value_name = "MISSION", required_unless_present = "schema")]
    pub mission: Option<PathBuf>,
    /// Run of `timecell bench supply` whose measurements count, in place of the one that the mission names.
    #[arg(long, value_name = "RUN")]
    pub supply: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of mission files and end.
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

/// The columns that `top` can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopSort {
    /// The order of the experiment.
    Cell,
    /// Share of a cpu, largest first.
    Cpu,
    /// Jobs that ran, most first.
    Jobs,
    /// Activations missed, most first.
    Missed,
    /// Worst wake-up latency, largest first.
    Latency,
    /// Worst execution time, largest first.
    Execution,
    /// Of a mission: late jobs, most first.
    Late,
    /// Of a mission: longest response time, largest first.
    Response,
    /// Of a mission: starts, most first.
    Starts,
}

impl TopSort {
    /// What the foot of the screen calls it.
    pub fn head(self) -> &'static str {
        match self {
            TopSort::Cell => "cell",
            TopSort::Cpu => "cpu",
            TopSort::Jobs => "jobs",
            TopSort::Missed => "missed",
            TopSort::Latency => "worst latency",
            TopSort::Execution => "worst execution",
            TopSort::Late => "late",
            TopSort::Response => "worst response",
            TopSort::Starts => "starts",
        }
    }
}

/// Options of `top`.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: q or Ctrl-C quits, s sorts by the next column, r reverses, / filters, arrows and page keys \
    scroll. It watches an experiment from outside, by reading alone; of a mission it asks the supervisor."
)]
pub struct Top {
    /// Name of a mission [default: what is measured, else the only mission that runs].
    #[arg(value_name = "MISSION", conflicts_with = "dir")]
    pub mission: Option<String>,
    /// Directory of a mission, as it was given to `timecell up`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Print one table and end; so it does where standard input or output is no terminal.
    #[arg(long, conflicts_with = "json")]
    pub once: bool,
    /// Print one JSON object a line instead.
    #[arg(long)]
    pub json: bool,
    /// Time between two looks; use of the cpus is measured over it.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = look_interval)]
    pub interval: Duration,
    /// Number of JSON objects [default: 1].
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Column to sort by.
    #[arg(long, value_enum, default_value = "cell", value_name = "COLUMN")]
    pub sort: TopSort,
    /// Only cells whose name, engine, class or state contains this.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
}

fn look_interval(text: &str) -> Result<Duration, String> {
    let interval: Duration = text.parse().map_err(|error| format!("{error}"))?;
    if (100_000_000..=3_600_000_000_000).contains(&interval.ns()) {
        Ok(interval)
    } else {
        Err("it must be 100ms to 1h".to_owned())
    }
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON: one object with `schema`, `machine`, `checks` and `engines`.
    #[arg(long)]
    pub json: bool,
    /// Exit with 4 where a check is bad, as for CI; warnings are advice.
    #[arg(long)]
    pub strict: bool,
}

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

/// The reservations that `--reserve` may ask for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ReserveName {
    /// None: the class alone.
    None,
    /// A real-time group for each cell.
    RtCgroup,
    /// SCHED_DEADLINE for each cell, in place of the class; cells are not pinned.
    Deadline,
}

/// The enforcers that `bench supply` and `bench isolation` measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnforcerName {
    /// Real-time groups of cgroup v1 (RT_GROUP_SCHED).
    RtCgroup,
    /// SCHED_DEADLINE.
    Deadline,
}

impl EnforcerName {
    /// The enforcer itself.
    pub fn enforcer(self) -> Enforcer {
        match self {
            EnforcerName::RtCgroup => Enforcer::RtCgroup,
            EnforcerName::Deadline => Enforcer::Deadline,
        }
    }
}

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Scenarios: overhead (bare metal against every container engine, one cell at a time), \
    concurrency (rootful and rootless containers together), latency (wake-up every 100 us in every engine, idle and \
    under loads), taskset (a periodic task set against its deadlines and its analysis), device (wake-up on every cpu by \
    load and period, before and after cpus are kept free), scale (growing numbers of cells together, up to 2,048 and \
    beyond), startup (create, run, exit and delete, by every launcher), \
    recovery (until a killed or wedged cell \
    runs again), footprint (memory of an idle real-time cell), nqueens (a computation on 1, 2 and 4 threads, with and \
    without cpu load elsewhere), supply (what rt-cgroups and SCHED_DEADLINE really give to a cell, against the textbook's \
    bound, and the deadlines that the difference costs), isolation (a cell beside one that runs longer than it declared, with each enforcer and with none; parts: \
    contest, received), self (timecell itself against cyclictest, a polling barrier and other launchers; parts: \
    wakeup, barrier, startup, memory, loads).\n\n\
    Real-time classes need privilege: run with sudo. Without it the same command runs with SCHED_OTHER and every \
    result is labelled \"not real-time\".\n\n\
    Examples:\n  \
    sudo timecell bench overhead --quick                        every engine against bare metal, under 30 s\n  \
    timecell bench --template > mine.toml                       an experiment of your own, to be changed\n  \
    sudo timecell bench mine.toml --load cpu,disk               the same, disturbed\n  \
    sudo timecell bench latency --histogram --duration 24h      a day, in constant memory\n  \
    sudo timecell bench mine.toml --fail-if 'latency.p99 > 100us' --fail-if 'missed > 0'\n  \
    sudo timecell bench mine.toml --baseline runs/... --fail-if 'execution.median > 1.1x'\n\n\
    Exit codes with --fail-if: 3 a threshold is missed; else 1 a trial failed or a threshold is undecided; else 4 a \
    threshold is not applicable (no real-time class, too few jobs, not measured); else 0."
)]
pub struct Bench {
    /// Scenario, or path of an experiment file.
    #[arg(value_hint = ValueHint::FilePath, value_parser = Offered::<String>::of(scenarios), hide_possible_values = true, required_unless_present_any = ["list", "list_loads", "resume", "template"])]
    pub experiment: Option<String>,
    /// Parts of `bench self`, or of `bench isolation` (contest, received); all when none is named.
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
    /// Smoke run: fewer jobs and 2 rounds, under 30 s; a matrix of more than 12 trials runs once, under 60 s.
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
    /// Only trials of these engines, comma-separated.
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = Offered::<EngineKind>::of(engines), hide_possible_values = true)]
    pub engine: Vec<EngineKind>,
    /// Loads beside the cells of every trial, comma-separated; --list-loads shows them. In scenario `isolation` one after the
    /// other, with `idle` for none.
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub load: Vec<Option<LoadKind>>,
    /// Keep a histogram of each minute and the 1,000 worst jobs instead of every sample: for runs of days.
    #[arg(long)]
    pub histogram: bool,
    /// Keep a histogram of each such interval, 1s to 1h; a power cut takes away one interval at most.
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// Go on with this run (`latest`: the newest in --out), which ended before its time: a power cut, an interrupt, a full disk.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "experiment", "quick", "duration", "jobs", "period", "cpus", "priority", "class", "rounds", "engine",
        "rootless_user", "heartbeat_timeout", "enforcer", "reservation", "no_try", "utilisation", "overrun", "seed", "load", "histogram", "interval", "out",
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
    /// Scenario `scale`: how each cell is held to an equal share of the cpus in every second [default: none].
    #[arg(long, value_enum)]
    pub reserve: Option<ReserveName>,
    /// Scenario `scale`: memory of the machine that is left to everybody else, such as 2GiB; below it no more cells are made
    /// and those that run are stopped [default: a twentieth of the machine's].
    #[arg(long, value_name = "SIZE")]
    pub memory_reserve: Option<Bytes>,
    /// Scenario `scale`: stop the cells when ordinary work has had no turn for so long, 1s to 60s [default: 5s].
    #[arg(long, value_name = "TIME")]
    pub starvation_limit: Option<Duration>,
    /// Scenarios `supply` and `isolation`: the enforcers to measure, comma-separated [default: both].
    #[arg(long, value_enum, value_name = "ENFORCER", value_delimiter = ',')]
    pub enforcer: Vec<EnforcerName>,
    /// Scenarios `supply` and `isolation`: budget/period of each reservation, comma-separated [default:
    /// 30ms/100ms,10ms/50ms,3ms/10ms,1ms/10ms; in `isolation` 10, 15, 20 and 25ms/100ms beside each other].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub reservation: Vec<String>,
    /// Scenario `supply`: leave out the task sets that are run inside the measured budgets.
    #[arg(long)]
    pub no_try: bool,
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
    /// Print the plan and its unmet requirements; measure nothing.
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

/// Options of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Files of other tools are recognised by their content: cyclictest (--json, -h, -H, the summary lines), oslat \
    --json, rtla timerlat and osnoise hist, jitterdebugger (results.json, samples.raw), rt-app's logs, hackbench, and \
    logs of lines `Iteration N - Execution Time: X ms`.\n\n\
    Examples:\n  \
    timecell report runs/2026-11-21T210500-overhead\n  \
    timecell report before/ after/                     two runs, compared\n  \
    timecell report cyclictest.json rtla.txt           files of other tools, drawn\n  \
    timecell report runs/... cyclictest.txt            a run and a file, side by side\n  \
    timecell report runs/... --against published       beside figures that papers and theses print\n  \
    timecell report --against list                     which those are\n  \
    timecell report runs/... --fail-if 'podman.latency.p99 > 100us'   judged, also long after\n  \
    timecell report runs/... --baseline before/        each cell against the same cell of another run\n\n\
    A run that was measured with --fail-if is judged again, unless --fail-if or --baseline says by what. Exit codes: \
    3 a threshold is missed; else 1 one is undecided; else 4 one is not applicable; else 0."
)]
pub struct Report {
    /// A run directory, or `latest` for the newest below runs; or two, to compare; or files that other tools wrote (`-` is standard input, .gz is unpacked),
    /// with or without a run before them.
    #[arg(value_name = "RUN|FILE", value_hint = ValueHint::AnyPath, required_unless_present = "against")]
    pub paths: Vec<PathBuf>,
    /// Write the HTML page here, and nothing into the run [default: report.html and summary.json in the run;
    /// comparison.html for two runs and measured.html for files, in the current directory].
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write each figure as SVG into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub figures: Option<PathBuf>,
    /// Set the run beside published figures, which timecell did not measure; `list` says which there are.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub against: Option<Against>,
    /// Format of the files, where their content does not tell it.
    #[arg(long, value_parser = measured_format(), value_name = "FORMAT")]
    pub format: Option<MeasuredFormat>,
    /// Unit of the values in files that do not say it, such as cyclictest's text (ns with its -N): ns, us, ms or s
    /// [default: us, of interval logs ns, with a note].
    #[arg(long, value_enum, value_name = "UNIT")]
    pub unit: Option<UnitName>,
    /// Thresholds and the baseline.
    #[command(flatten)]
    pub judge: Judge,
    /// Print the summary as JSON and write nothing.
    #[arg(long, conflicts_with_all = ["figures", "output"])]
    pub json: bool,
}

/// What a run can be set beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Against {
    /// Figures that papers, theses and slides print.
    Published,
    /// The sources of those figures; nothing is studied.
    List,
}

/// The formats by their names, for help, completion and the sentence on a wrong one.
/// A load's name; `idle` stands for none.
fn load(name: &str) -> Result<Option<LoadKind>, String> {
    match name {
        model::IDLE => Ok(None),
        name => name.parse().map(Some),
    }
}

fn measured_format() -> impl TypedValueParser<Value = MeasuredFormat> {
    let names: Vec<&str> = MeasuredFormat::all().map(MeasuredFormat::name).collect();
    PossibleValuesParser::new(names)
        .map(|name| MeasuredFormat::named(&name).expect("the parser lets only these pass"))
}

/// Options of `export`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("form").required(true),
    after_help = "Examples:\n  \
    timecell export runs/... --parquet                 every job, for pandas, polars, DuckDB\n  \
    timecell export runs/... --cyclictest-json         for readers of cyclictest --json\n  \
    timecell export runs/... --cyclictest-hist -o -    for readers of cyclictest -h, such as gnuplot\n  \
    timecell export tasks.toml --rt-app                a task set of `analyze`, for rt-app to run"
)]
pub struct Export {
    /// Run directory, or `latest` for the newest below runs; with --rt-app, a task-set file.
    #[arg(value_name = "RUN|TASKSET", value_hint = ValueHint::AnyPath)]
    pub run: PathBuf,
    /// Comma-separated values with a header line: every job, or every interval where histograms were kept.
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Every job as Apache Parquet, for pandas, polars and DuckDB.
    #[arg(long, group = "form")]
    pub parquet: bool,
    /// Interval logs of HdrHistogram, one file per trial, cell and metric, of a run that kept histograms.
    #[arg(long, group = "form")]
    pub hdr: bool,
    /// Wake-up latencies as `cyclictest --json` writes them, a thread for each cell.
    #[arg(long, group = "form")]
    pub cyclictest_json: bool,
    /// Wake-up latencies as the histogram of `cyclictest -h`, a column for each cell.
    #[arg(long, group = "form")]
    pub cyclictest_hist: bool,
    /// The task set as rt-app's JSON: SCHED_DEADLINE in cells of policy edf, SCHED_FIFO in cells of policy fp.
    #[arg(long, group = "form")]
    pub rt_app: bool,
    /// Histograms of cyclictest's forms hold latencies below so many us; the others are counted as overflows.
    #[arg(long, value_name = "US", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub buckets: u32,
    /// How long rt-app runs the task set, in s.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// File to write (with --hdr: a directory), or `-` for standard output (not Parquet) [default: the run's or file's
    /// name with the form's ending, here].
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write over a file that is there.
    #[arg(long)]
    pub force: bool,
}

/// Options of `clean`.
#[derive(Debug, Args)]
pub struct Clean {
    /// Throw away samples that cannot be written to their run, such as those of a run whose disk is full or gone.
    #[arg(long)]
    pub discard: bool,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Directory for timecell.1, timecell-bench.1 and so on.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}
