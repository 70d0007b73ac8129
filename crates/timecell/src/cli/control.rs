//! The verbs that speak with the supervisor of a running mission.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use model::Duration;

/// Which mission is meant.
#[derive(Debug, Args)]
pub struct Which {
    /// Name of the mission [default: the only one that runs].
    #[arg(long, short, value_name = "NAME", conflicts_with = "dir")]
    pub mission: Option<String>,
    /// Directory of the mission, as it was given to `timecell up`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// The same where the name stands alone.
#[derive(Debug, Args)]
pub struct WhichFirst {
    /// Name of the mission [default: the only one that runs].
    #[arg(value_name = "MISSION", conflicts_with = "dir")]
    pub mission: Option<String>,
    /// Directory of the mission, as it was given to `timecell up`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Options of `ps`.
#[derive(Debug, Args)]
#[command(
    after_help = "Where nobody supervises the mission, what its journal knows is printed, and the exit code is 4.

Exit codes: 0 printed; 2 there is no such mission; 4 nobody supervises it."
)]
pub struct Ps {
    /// Which one.
    #[command(flatten)]
    pub which: WhichFirst,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print numbers in the text format of Prometheus, such as for the textfile collector of node_exporter.
    #[arg(long, conflicts_with = "json")]
    pub prometheus: bool,
    /// Print what is granted on this machine: every mission and measurement with its cells, cpus, budgets and priorities, and the
    /// real-time threads that none of them accounts for.
    #[arg(long, conflicts_with_all = ["prometheus", "mission", "dir"])]
    pub machine: bool,
}

/// Options of `logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "What a cell has written to standard output and standard error, over all its starts, is kept up to 1 MB, the newest. Two versions of a cell
write in turn into one of two places: --previous reads what the version before the last update wrote, and those before in its place."
)]
pub struct Logs {
    /// Name of the cell.
    #[arg(value_name = "CELL")]
    pub cell: String,
    /// Which mission.
    #[command(flatten)]
    pub which: Which,
    /// Go on with what it writes from now on, over restarts, until Ctrl-C.
    #[arg(long, short)]
    pub follow: bool,
    /// Print what the version before the last update has written.
    #[arg(long, short, conflicts_with = "follow")]
    pub previous: bool,
    /// Begin with the last N lines [default: all].
    #[arg(long, short = 'n', value_name = "N")]
    pub lines: Option<usize>,
    /// Print a JSON object for each line.
    #[arg(long)]
    pub json: bool,
}

/// Options of `events`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  timecell events                    all that the journal of the only running mission tells
  timecell events rover --since 10m  what happened in the last ten minutes
  timecell events -f --json          one JSON object for each event, from the first to those that come")]
pub struct Events {
    /// Which mission.
    #[command(flatten)]
    pub which: WhichFirst,
    /// Go on with what happens from now on, until Ctrl-C or the end of the supervisor.
    #[arg(long, short)]
    pub follow: bool,
    /// Only what is no older than this, such as 10m.
    #[arg(long, value_name = "TIME")]
    pub since: Option<Duration>,
    /// Print a JSON object for each event.
    #[arg(long)]
    pub json: bool,
}

/// Options of `stop`, `start` and `restart`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 done; 1 it could not be done, with the reason; 2 there is no such cell or mission; 4 nobody supervises it, \
    or no permission."
)]
pub struct OfCells {
    /// Names of the cells.
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
#[command(
    after_help = "The cells of a mission whose supervisor was killed are ended as well. The journal and the cells' output stay in the mission's directory.\n\n\
    Exit codes: 0 all cells stopped; 1 something could not be removed; 2 there is no such mission; 4 no mission is up there, or no permission."
)]
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
#[command(
    after_help = "Cells that the file does not change are not touched. The new version of a cell runs beside the old one for the health window \
    where admission says that both hold; else the old one ends first. When a new one fails within the window, all of the update is \
    taken back.

Exit codes: 0 done; 1 taken back, with the reason; 2 the file is faulty; 3 a guarantee could not be kept, nothing was changed; \
    4 nobody supervises the mission, or no permission."
)]
pub struct Update {
    /// Mission file as the mission shall be.
    #[arg(value_name = "MISSION", value_hint = ValueHint::FilePath)]
    pub mission: PathBuf,
    /// Directory of the mission [default: that of the name in the file].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// How long new versions must run before the old ones are given up.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = window)]
    pub window: Duration,
    /// Recreate this cell even if unchanged, such as for a new program under the old name. May be repeated.
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
