//! `timecell up`: admits a mission and keeps it running until it is told to end.

use std::path::{Path, PathBuf};

use model::InputError;
use model::mission::MissionFile;
use supervise::admit::admit;
use supervise::machine::Here;
use supervise::run::{Asked, Event, Keeper, Options, Signals};

use super::admit::{latency, measured, read, text};
use crate::cli::Up;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Runs in the foreground. Exit code 3 when a guarantee cannot be kept; nothing was started then.
pub fn run(options: &Up) -> Result<Ended, CommandError> {
    let here = Here::default();
    let (file, source) = read(&options.mission, &here)?;
    let facts = here.facts(env!("CARGO_PKG_VERSION"));
    let measured = measured(options.supply.as_deref(), &file)?;
    let admission = admit(file.mission(), &facts, &measured, latency(&file)?);
    out::print(&text(&file, &admission, &facts));
    if !admission.is_admitted() {
        return Ok(Ended::Missed);
    }
    let dir = match &options.dir {
        Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
        None => default_dir(&file)?,
    };
    let signals = Signals::take()?;
    let mut tell = |event: &Event| {
        if !is_told_already(event) {
            out::print(&event.to_string());
        }
    };
    let options = Options {
        dir,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let keeper = Keeper::open(&file, &source, &admission, &options, &mut tell)?;
    let asked = keeper.run(&signals)?;
    out::print(match asked {
        Asked::Signal => "all cells have ended, nothing is left",
        Asked::NothingLeft => "no cell runs any more, and none is to be restarted",
    });
    Ok(Ended::Fine)
}

/// Where a mission's journal and cells are unless the user says otherwise.
fn default_dir(file: &MissionFile) -> Result<PathBuf, CommandError> {
    let name = &file.mission().name;
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        return Ok(Path::new("/var/lib/timecell").join(name));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    match state.or(home) {
        Some(state) => Ok(state.join("timecell").join(name)),
        None => Err(InputError::new(
            "--dir",
            "there is no HOME to keep the mission's state in",
            "name a directory with --dir",
        )
        .into()),
    }
}

/// Whether a line would only repeat what the end of a program and its restart say.
fn is_told_already(event: &Event) -> bool {
    matches!(event, Event::Incident(incident) if incident.observed.what == "exit")
}
