//! The command line: commands, options and their help. `--help`, man pages and completions come from here.

mod analyze;
mod bench;
mod bench_options;
mod board;
mod control;
mod enforcer;
mod held;
mod judge;
#[cfg(test)]
mod listed;
mod offered;
mod remote;
mod run;
mod verbs;

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
    ClassName, Enforced, Experiment, Isolation, Itself, Judged, Measured, RealTime, Series, Supply,
};
pub use board::{Board, BoardCommand, Boots, Builds, Images, Parts, Runs};
pub use control::{Down, Events, Logs, OfCells, Ps, Update, Which, WhichFirst};
pub use held::{Budget, Hold, Release};
pub use judge::Judge;
pub use remote::{RUNS, Sent, sent};
pub use run::Run;
pub use verbs::{EXIT_CODES, command};

/// Real-time containers that keep time on Linux, and prove it.
#[derive(Debug, Parser)]
#[command(
    name = "timecell",
    version,
    max_term_width = 100,
    after_help = format!("Examples:
  sudo timecell bench overhead --quick        what does a container cost? under 30 s
  timecell demo > demo.toml                   a mission that runs as printed
  sudo timecell up demo.toml                  admit it and keep it running

{EXIT_CODES}")
)]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check whether this machine is fit for real time, and improve it.
    Doctor(Doctor),
    /// Measure real-time work on bare metal and in containers.
    Bench(Box<Bench>),
    /// Report measurements: tables, pictures, comparisons.
    Report(Report),
    /// Test whether a task set meets its deadlines.
    ///
    /// `analyze design` finds the least cpu time that each cell must reserve.
    Analyze(Box<Analyze>),
    /// Write a run or a task set in formats of other tools.
    Export(Export),
    /// Print a mission that runs unchanged, to start from.
    #[command(after_help = "Examples:
  timecell demo > demo.toml
  timecell admit demo.toml            show what is guaranteed, and why
  sudo timecell up demo.toml          keep it running until Ctrl-C
  sudo timecell ps demo               in another terminal: show jobs, late jobs, worst responses

Its cells run timecell itself, at its current path.")]
    Demo,
    /// Check whether a mission can be guaranteed here; start nothing.
    Admit(Admit),
    /// Admit a mission and keep it running.
    ///
    /// Its cells are held to their budgets and restarted by their policies.
    Up(Up),
    /// Run one program under a budget, and return its exit status.
    Run(Box<Run>),
    /// Show a mission's cells: jobs, cpu time, budgets, why they stopped.
    Ps(Ps),
    /// Print the output of a cell of a mission.
    Logs(Logs),
    /// Print past and live events of a mission.
    Events(Events),
    /// Stop cells of a mission, and those that need them, until `start`.
    Stop(OfCells),
    /// Start stopped cells of a mission.
    Start(OfCells),
    /// Stop cells of a mission and start them again.
    Restart(OfCells),
    /// Apply a changed file to a running mission.
    ///
    /// New versions run beside the old ones where there is room, and are rolled back if they fail.
    Update(Update),
    /// End a mission, but keep its logs and journal.
    Down(Down),
    /// Put a running container, unit or process under a budget.
    ///
    /// The budget outlives this command.
    Hold(Hold),
    /// Release a held container, unit or process.
    Release(Release),
    /// Watch a mission or experiment live, cell by cell.
    ///
    /// Shows cpu time, jobs, late or skipped ones and worst times of each cell.
    Top(Top),
    /// Boot an emulated board, and run timecell in it.
    Board(Board),
    /// Save and remove the remains of a killed timecell.
    ///
    /// Samples are saved to their run; cells, cgroups, shared memory and a mission's cpus are removed.
    Clean(Clean),
    /// Print a shell's completion script.
    Completions(Completions),
    /// Write the man pages.
    Man(Man),
    /// Print the JSON Schema of a kind of file, for editors.
    #[command(after_help = "Examples:
  timecell schema experiment > experiment.schema.json
  timecell schema mission                              the same as `timecell admit --schema`")]
    Schema {
        /// Kind of file.
        #[arg(value_name = "KIND")]
        of: FileKind,
    },
    /// Print the C header with which a program reports its jobs.
    #[command(after_help = "Examples:
  timecell header > timecell.h
  timecell header --inmate > timecell_inmate.h")]
    Header {
        /// Print that of programs without an operating system, in cells of Jailhouse.
        #[arg(long)]
        inmate: bool,
    },
}

/// The kinds of files that users write.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FileKind {
    /// An experiment, run by `bench`.
    Experiment,
    /// A task set, read by `analyze`.
    Taskset,
    /// A mission, kept running by `up`.
    Mission,
    /// A board, booted by `board`.
    Board,
}

/// Options of `up`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell demo > demo.toml
  sudo timecell up demo.toml                            until Ctrl-C
  sudo timecell up rover.toml --dir /data/rover         with its journal and cells there
  sudo systemctl enable --now timecell@rover            as a service, from /etc/timecell/rover.toml

Runs in the foreground, or as a systemd service (dist/timecell@.service), until Ctrl-C, SIGTERM or `timecell down`, which end \
    all cells. If it is killed, its cells keep running, held as before; the next `timecell up` of the mission adopts them. \
    ps, logs, events, stop, start, restart and update talk to it.

Exit codes: 0 ended as asked; 1 no cell runs any more and some have failed, or the system refused something; 2 the mission file has \
    errors; 3 a guarantee cannot be kept, nothing was started; 4 no permission.")]
pub struct Up {
    /// Mission file [default: the mission last admitted in --dir].
    #[arg(value_name = "MISSION", required_unless_present = "dir")]
    pub mission: Option<PathBuf>,
    /// Run of `timecell bench supply` whose measurements to use, instead of the run that the mission names.
    #[arg(long, value_name = "RUN")]
    pub supply: Option<PathBuf>,
    /// Directory of the mission's journal and cells [default: /var/lib/timecell/NAME].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// If the last supervisor was killed or the power failed, resume the mission as last admitted, with its updates, instead of the
    /// one in the file.
    #[arg(long, requires_all = ["mission", "dir"])]
    pub recover: bool,
}

/// Options of `admit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell admit mission.toml                       budgets, cpus, priorities and bounds, or why not
  sudo timecell bench supply                        measure what this kernel's budgets supply
  timecell admit mission.toml --supply runs/...     admit with what was measured
  timecell admit --schema > mission.schema.json     for editors

Exit codes: 0 every guarantee can be kept; 2 the mission file has errors, listed with their lines; 3 a guarantee cannot be \
kept, with the reason and changes that would be admitted.")]
pub struct Admit {
    /// Mission file.
    #[arg(value_name = "MISSION", required_unless_present = "schema")]
    pub mission: Option<PathBuf>,
    /// Run of `timecell bench supply` whose measurements to use, instead of the run that the mission names.
    #[arg(long, value_name = "RUN")]
    pub supply: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of mission files and exit.
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

/// The columns that `top` can sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopSort {
    /// The order in the experiment or mission.
    Cell,
    /// Share of a cpu, largest first.
    Cpu,
    /// Executed jobs, most first.
    Jobs,
    /// Skipped activations of an experiment, most first.
    Skipped,
    /// Worst wake-up latency in an experiment, largest first.
    Latency,
    /// Worst execution time in an experiment, largest first.
    Execution,
    /// Late jobs of a mission, most first.
    Late,
    /// Worst response time in a mission, largest first.
    Response,
    /// Starts in a mission, most first.
    Starts,
}

impl TopSort {
    /// Its name in the bottom line of the screen.
    pub fn head(self) -> &'static str {
        match self {
            TopSort::Cell => "cell",
            TopSort::Cpu => "cpu",
            TopSort::Jobs => "jobs",
            TopSort::Skipped => "skipped",
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
#[command(after_help = "Examples:
  timecell top                                   the running experiment, else the only running mission
  timecell top rover --sort response             a mission, worst response first
  timecell top rover --json --interval 5s --count 12

Keys: q or Ctrl-C quits, s sorts by the next column, r reverses, / filters, arrows and page keys \
    scroll. An experiment is watched from outside, only by reading; about a mission, its supervisor is asked.")]
pub struct Top {
    /// Which mission; without a name, the running experiment comes first.
    #[command(flatten)]
    pub which: WhichFirst,
    /// Print one table and exit [default if standard input or output is not a terminal].
    #[arg(long, conflicts_with = "json")]
    pub once: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
    /// Refresh interval, over which cpu use is measured.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = look_interval)]
    pub interval: Duration,
    /// Number of JSON objects to print [default: 1].
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Column to sort by.
    #[arg(long, value_enum, default_value = "cell", value_name = "COLUMN")]
    pub sort: TopSort,
    /// Show only cells whose name, engine, class, enforcer or state contains this.
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
  timecell doctor --cpus 2-3               check for real-time work on these cpus
  timecell doctor --fix --dry-run          show what can be changed at once
  sudo timecell doctor --fix               change it, until the next boot
  sudo timecell doctor --undo              put it back
  timecell doctor --persist settings       write files that make it permanent, for you to install")]
pub struct Doctor {
    /// Print JSON: one object with `schema`, `machine`, `cpus`, `checks`, `enforcers`, `prefer` and `engines`, or the changes made.
    #[arg(long)]
    pub json: bool,
    /// Exit with 4 if a check is bad, for CI; warnings are advice.
    #[arg(long)]
    pub strict: bool,
    /// Cpus for real-time work, such as 2-3 [default: the isolated ones, else the highest, and those of running missions, except cells that
    /// may run on any cpu].
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Change settings that help real-time work, until the next boot, and record the old values.
    #[arg(long, conflicts_with = "strict")]
    pub fix: bool,
    /// Show the changes that --fix would make, and make none.
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
    /// Write files that make it permanent into DIR, or print them: kernel parameters, a sysctl file, a systemd unit. You install
    /// them.
    #[arg(long, value_name = "DIR", num_args = 0..=1, value_hint = ValueHint::DirPath, conflicts_with = "strict")]
    pub persist: Option<Option<PathBuf>>,
    /// Put back the changes of --fix, from the undo file FILE [default: /run/timecell/doctor-undo.json].
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = ValueHint::FilePath, conflicts_with_all = ["fix", "persist", "strict", "cpus"])]
    pub undo: Option<Option<PathBuf>>,
}

/// Options of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Files of other tools are recognised by their content; --format lists the formats, and overrides recognition.\n\n\
    Examples:\n  \
    timecell report runs/2026-11-21T210500-overhead\n  \
    timecell report before/ after/                     compare two runs\n  \
    timecell report board1/ board2/ board3/            show several devices side by side\n  \
    timecell report cyclictest.json rtla.txt           draw files of other tools\n  \
    timecell report runs/... cyclictest.txt            draw a run and a file side by side\n  \
    timecell report runs/... --against published       set beside figures of papers and theses\n  \
    timecell report --against list                     list the sources of those figures\n  \
    timecell report runs/... --fail-if 'podman.latency.p99 > 100us'   judge a run, even long after\n  \
    timecell report runs/... --baseline before/        compare with another run, cell by cell\n\n\
    A run that was measured with --fail-if is judged by the same thresholds again, unless --fail-if or --baseline is given.\n\n\
    Exit codes: 3 if a threshold fails, else 1 if one is undecided, else 4 if one is not applicable, else 0."
)]
pub struct Report {
    /// A run directory, or `latest` for the newest in runs; two to compare them, more to show them side by side; or files of other tools (`-` is standard input, .gz is
    /// unpacked), with or without a run before them.
    #[arg(value_name = "RUN|FILE", value_hint = ValueHint::AnyPath, required_unless_present = "against")]
    pub paths: Vec<PathBuf>,
    /// Write the HTML page to FILE, and nothing into the run [default: report.html and summary.json in the run;
    /// comparison.html for two runs, devices.html for more, measured.html for files, in the current directory].
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite a file that is no page of timecell's.
    #[arg(long)]
    pub force: bool,
    /// Write each picture as SVG into DIR.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub figures: Option<PathBuf>,
    /// Set the run beside published figures, which timecell did not measure; `list` lists their sources.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub against: Option<Against>,
    /// Format of the files [default: recognised by content].
    #[arg(long, value_parser = offered::format(MeasuredFormat::all()), value_name = "FORMAT")]
    pub format: Option<MeasuredFormat>,
    /// Unit of the values in files that do not state it, such as cyclictest's text (ns with its -N)
    /// [default: us, for interval logs ns, with a note].
    #[arg(long, value_enum, value_name = "UNIT")]
    pub unit: Option<UnitName>,
    /// Thresholds and the baseline.
    #[command(flatten)]
    pub judge: Judge,
    /// Print the summary as JSON and write nothing.
    #[arg(long, conflicts_with_all = ["figures", "output", "force"])]
    pub json: bool,
}

/// The figures that a run can be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Against {
    /// Figures from papers, theses and slides.
    Published,
    /// List the sources of those figures, and study nothing.
    List,
}

/// Options of `export`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("form").required(true),
    after_help = "Examples:\n  \
    timecell export runs/... --parquet                 every job, for pandas, polars, DuckDB\n  \
    timecell export runs/... --statistics              every figure that --fail-if can judge\n  \
    timecell export runs/... --cyclictest-json         for readers of cyclictest --json\n  \
    timecell export runs/... --cyclictest-hist -o -    for readers of cyclictest -h, such as gnuplot\n  \
    timecell export tasks.toml --rt-app                a task set, for rt-app to run"
)]
pub struct Export {
    /// Run directory, or `latest` for the newest in runs; with --rt-app, a task-set file.
    #[arg(value_name = "RUN|TASKSET", value_hint = ValueHint::AnyPath)]
    pub run: PathBuf,
    /// Write every job as comma-separated values with a header line; every interval of a run that kept histograms.
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Write every job as Apache Parquet, for pandas, polars and DuckDB; for a study without jobs in trials, the rows of --csv.
    #[arg(long, group = "form")]
    pub parquet: bool,
    /// Write the figures that --fail-if can judge, of any kind of run, as comma-separated values: each with its unit and 95 %
    /// interval, or why it has no value.
    #[arg(long, group = "form")]
    pub statistics: bool,
    /// Write HdrHistogram interval logs, one file per trial, cell and metric, of a run that kept histograms.
    #[arg(long, group = "form")]
    pub hdr: bool,
    /// Write wake-up latencies in the format of `cyclictest --json`, one thread per cell.
    #[arg(long, group = "form")]
    pub cyclictest_json: bool,
    /// Write wake-up latencies as the histogram of `cyclictest -h`, one column per cell.
    #[arg(long, group = "form")]
    pub cyclictest_hist: bool,
    /// Write the task set as rt-app's JSON: SCHED_DEADLINE for cells of policy edf, SCHED_FIFO for cells of policy fp.
    #[arg(long, group = "form")]
    pub rt_app: bool,
    /// Length of cyclictest's histograms in us; longer latencies are counted as overflows.
    #[arg(long, value_name = "US", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub buckets: u32,
    /// How long rt-app runs the task set, in s.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// File to write (with --hdr, a directory), or `-` for standard output (not with --hdr or --parquet) [default: the run's or file's
    /// name with the format's extension, in the current directory].
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

/// Options of `clean`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo timecell clean                  after kill -9 of timecell
  sudo timecell clean --discard        where a run's disk is full or gone")]
pub struct Clean {
    /// Discard samples that cannot be written to their run, for example because its disk is full or gone.
    #[arg(long)]
    pub discard: bool,
}

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell completions bash > /etc/bash_completion.d/timecell
  timecell completions zsh > ~/.zfunc/_timecell")]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo timecell man /usr/local/share/man/man1
  timecell man man && man man/timecell-bench.1")]
pub struct Man {
    /// Directory to write timecell.1, timecell-bench.1 and so on into.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}
