//! The commands that talk to the supervisor of a running mission.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use model::Duration;

/// Which mission is meant.
#[derive(Debug, Args)]
pub struct Which {
    /// Name of the mission [default: the only running one].
    #[arg(long, short, value_name = "NAME", conflicts_with = "dir")]
    pub mission: Option<String>,
    /// Directory of the mission, as given to `timecell up`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// The same for verbs that name no cell, with the name also as an argument.
#[derive(Debug, Args)]
pub struct WhichFirst {
    /// The same as --mission.
    #[arg(value_name = "MISSION", conflicts_with_all = ["mission", "dir"])]
    pub name: Option<String>,
    /// The same as options.
    #[command(flatten)]
    pub which: Which,
}

impl WhichFirst {
    /// The name that was given, in either way.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.which.mission.as_deref())
    }
}

/// Options of `ps`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell ps                          the only running mission
  timecell ps rover --verbose          what each of its bounds assumes, and whether it holds
  timecell ps --machine                what is granted on this machine, to whom

If the mission has no supervisor, what its journal records is printed, and the exit code is 4.

Exit codes: 0 printed; 2 there is no such mission; 3 a bound is withdrawn; 4 it has no supervisor.")]
pub struct Ps {
    /// Which mission.
    #[command(flatten)]
    pub which: WhichFirst,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Show of each bound all that its proof assumes, and whether it holds, deviates or is not checked.
    #[arg(long, short, conflicts_with = "prometheus")]
    pub verbose: bool,
    /// Print metrics in the text format of Prometheus, for example for the textfile collector of node_exporter.
    #[arg(long, conflicts_with = "json")]
    pub prometheus: bool,
    /// Print the grants on this machine: every mission and measurement with its cells, cpus, budgets and priorities, and the
    /// unaccounted real-time threads.
    #[arg(long, conflicts_with_all = ["prometheus", "verbose", "name", "mission", "dir"])]
    pub machine: bool,
}

/// Options of `logs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell logs camera                 all that is kept
  timecell logs -f -n 20 camera        the last 20 lines, and what follows
  timecell logs rover/camera           of this mission; the same as `-m rover camera`

The newest 1 MB of what a cell writes to standard output and standard error is kept, over all its starts. Versions of a cell use \
two logs in turn: --previous prints the log of the version before the last update, with those of earlier versions that used it.")]
pub struct Logs {
    /// Name of the cell, or MISSION/CELL.
    #[arg(value_name = "CELL")]
    pub cell: String,
    /// Which mission.
    #[command(flatten)]
    pub which: Which,
    /// Keep printing its output, across restarts, until Ctrl-C.
    #[arg(long, short)]
    pub follow: bool,
    /// Print the log of the version before the last update.
    #[arg(long, short, conflicts_with = "follow")]
    pub previous: bool,
    /// Start with the last N lines [default: all].
    #[arg(long, short = 'n', value_name = "N")]
    pub lines: Option<usize>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// Options of `events`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell events                    all events in the journal of the only running mission
  timecell events rover --since 10m  what happened in the last ten minutes
  timecell events -f --json          one JSON object per event, past and future")]
pub struct Events {
    /// Which mission.
    #[command(flatten)]
    pub which: WhichFirst,
    /// Keep printing new events, until Ctrl-C or the end of the supervisor.
    #[arg(long, short)]
    pub follow: bool,
    /// Print only events of the last TIME, such as 10m.
    #[arg(long, value_name = "TIME")]
    pub since: Option<Duration>,
    /// Print one JSON object per event.
    #[arg(long)]
    pub json: bool,
}

/// Options of `stop`, `start` and `restart`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell stop camera                 and the cells that need it
  timecell start camera
  timecell restart rover/camera rover/radio   the same as `-m rover camera radio`

Exit codes: 0 done; 1 not possible, with the reason; 2 there is no such cell or mission; 4 the mission has no supervisor, \
    or no permission.")]
pub struct OfCells {
    /// Names of the cells, or MISSION/CELL.
    #[arg(value_name = "CELL", required = true)]
    pub cells: Vec<String>,
    /// Which mission.
    #[command(flatten)]
    pub which: Which,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `down`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo timecell down                   the only running mission
  sudo timecell down rover

Cells of a mission whose supervisor was killed are stopped too. The journal and the cells' output stay in the mission's directory.\n\n\
    Exit codes: 0 all cells stopped; 1 something could not be removed; 2 there is no such mission; 4 no mission is up there, or no permission.")]
pub struct Down {
    /// Which mission.
    #[command(flatten)]
    pub which: WhichFirst,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `update`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell admit rover-2.toml          can it be guaranteed at all?
  sudo timecell update rover-2.toml    apply it, or roll back

Cells that the file does not change are not touched. If both versions of a cell can be admitted, the new one runs beside the \
    old one for the health window; otherwise the old one is stopped first. If a new version fails within the window, the whole update \
    is rolled back.

Exit codes: 0 done; 1 rolled back, with the reason; 2 the file has errors; 3 a guarantee could not be kept, nothing was changed; \
    4 the mission has no supervisor, or no permission.")]
pub struct Update {
    /// New mission file.
    #[arg(value_name = "MISSION", value_hint = ValueHint::FilePath)]
    pub mission: PathBuf,
    /// Directory of the mission [default: that of the mission named in the file].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Health window: how long new versions must run before the old ones are removed.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = window)]
    pub window: Duration,
    /// Recreate this cell even if unchanged, for example for a new program under the old name; may be repeated.
    #[arg(long, value_name = "CELL")]
    pub anew: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn window(text: &str) -> Result<Duration, String> {
    let window: Duration = text.parse().map_err(|error| format!("{error}"))?;
    if (0..=86_400_000_000_000).contains(&window.ns()) {
        Ok(window)
    } else {
        Err("it must be 0s to 24h".to_owned())
    }
}
