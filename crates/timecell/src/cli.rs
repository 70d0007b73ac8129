//! The command line: what may be asked, in words. `--help`, man pages and completions come from here.

mod analyze;
mod bench;
mod bench_options;
mod control;
mod enforcer;
mod held;
mod judge;
#[cfg(test)]
mod listed;
mod offered;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use model::Duration;
use record::import::measured::Format as MeasuredFormat;

pub use analyze::{
    Analyze, AnalyzeCommand, Check, Design, Generate, Kernel, Making, PolicyName, Schedulability,
    Source, UnitName,
};
pub use bench::{Bench, Scenario, of_no_use, scenario_first};
pub use bench_options::{
    ClassName, Enforced, Experiment, Isolation, Itself, Judged, Measured, Series, Supply, Trials,
};
pub use control::{Down, Events, Logs, OfCells, Ps, Update, Which, WhichFirst};
pub use held::{Budget, Hold, Release};
pub use judge::Judge;
pub use run::Run;

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
    Analyze(Box<Analyze>),
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
    /// Run one program under a budget, as a mission of one cell; its exit status is returned.
    Run(Box<Run>),
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
    /// Put a running container, unit or process under a budget, which goes on when this command has ended.
    Hold(Hold),
    /// Let go of what `hold` has put under a budget.
    Release(Release),
    /// What runs now: cells, cpu time, jobs, late or missed ones and worst times of a mission or experiment.
    Top(Top),
    /// Save what a killed timecell had measured, and remove what it left behind: cells, cgroups, shared memory, cpus of a mission.
    Clean(Clean),
    /// Print the shell's completion script.
    Completions(Completions),
    /// Write the man pages.
    Man(Man),
    /// Print the JSON Schema of a kind of file, for editors and for programs that write such files.
    #[command(after_help = "Examples:
  timecell schema experiment > experiment.schema.json
  timecell schema mission                              the same as `timecell admit --schema`")]
    Schema {
        /// Kind of file.
        #[arg(value_name = "KIND")]
        of: FileKind,
    },
    /// Print the C header with which a program in a cell reports its jobs and heartbeats.
    Header,
}

/// The kinds of files that users write.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FileKind {
    /// What `bench` runs.
    Experiment,
    /// What `analyze` reads.
    Taskset,
    /// What `up` keeps running.
    Mission,
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
    /// Of an experiment: activations missed, most first.
    Missed,
    /// Of an experiment: worst wake-up latency, largest first.
    Latency,
    /// Of an experiment: worst execution time, largest first.
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
    /// Only cells whose name, engine, class, enforcer or state contains this.
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
#[command(after_help = "Examples:
  timecell doctor --cpus 2-3               for real-time work on these cpus
  timecell doctor --fix --dry-run          what could be changed at once
  sudo timecell doctor --fix               changes it, until the next start of the machine
  sudo timecell doctor --undo              puts it back
  timecell doctor --persist settings       writes what makes it last, to be put in place by you")]
pub struct Doctor {
    /// Print JSON: one object with `schema`, `machine`, `cpus`, `checks`, `enforcers`, `prefer` and `engines`, or what was changed.
    #[arg(long)]
    pub json: bool,
    /// Exit with 4 where a check is bad, as for CI; warnings are advice.
    #[arg(long)]
    pub strict: bool,
    /// Cpus for real-time work, such as 2-3; without it the isolated ones, else the highest, and those of running missions, but for cells that may run on any cpu.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Change what helps real-time work and can be changed at once, until the next start of the machine, and note how it was.
    #[arg(long, conflicts_with = "strict")]
    pub fix: bool,
    /// Say what --fix would change, and change nothing.
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
    /// Write what makes it last into DIR, or print it without DIR: kernel parameters, a file for sysctl, a unit for systemd. Putting
    /// them in place is yours.
    #[arg(long, value_name = "DIR", num_args = 0..=1, value_hint = ValueHint::DirPath, conflicts_with = "strict")]
    pub persist: Option<Option<PathBuf>>,
    /// Put back what --fix has changed, as the undo file FILE tells, or the usual one in /run/timecell.
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = ValueHint::FilePath, conflicts_with_all = ["fix", "persist", "strict", "cpus"])]
    pub undo: Option<Option<PathBuf>>,
}

/// Options of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Files of other tools are recognised by their content; --format lists which there are, and says outright which one it is.\n\n\
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
    #[arg(long, value_parser = offered::format(MeasuredFormat::all()), value_name = "FORMAT")]
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

/// Options of `export`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("form").required(true),
    after_help = "Examples:\n  \
    timecell export runs/... --parquet                 every job, for pandas, polars, DuckDB\n  \
    timecell export runs/... --statistics              every figure that --fail-if may be about, of any run\n  \
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
    /// The figures that --fail-if may be about, of a run of any kind, as comma-separated values: each with its unit, its 95%
    /// interval, and why it has no value where it has none.
    #[arg(long, group = "form")]
    pub statistics: bool,
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
