//! `timecell stop`, `start`, `restart` and `down`: a request to the supervisor, and its outcome.

use std::path::{Path, PathBuf};

use model::InputError;
use supervise::control::{Ask, CellDone, Client, ControlError, Place, Say, base_dir, find, places};

use supervise::ledger::Ledger;
use supervise::run::{Event, OrphansError, end_orphans};

use crate::cli::{Down, OfCells, Which, WhichFirst};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Stops cells, and returns once they have ended.
pub fn stop(options: &OfCells) -> Result<Ended, CommandError> {
    of_cells(options, "stop", |cells| Ask::Stop { cells })
}

/// Starts stopped cells.
pub fn start(options: &OfCells) -> Result<Ended, CommandError> {
    of_cells(options, "start", |cells| Ask::Start { cells })
}

/// Stops cells and starts them again.
pub fn restart(options: &OfCells) -> Result<Ended, CommandError> {
    of_cells(options, "restart", |cells| Ask::Restart { cells })
}

/// Ends the mission.
pub fn down(options: &Down) -> Result<Ended, CommandError> {
    let dir = directory(&options.which)?;
    let mut left = Vec::new();
    let is_of_one = supervise::run::is_of_one(&dir);
    let mut is_orphaned = false;
    let done = match ask_for(&dir, Ask::Down) {
        Ok(Say::Done { cells }) => cells,
        Ok(other) => return Err(unexpected(&other).into()),
        Err(ControlError::NobodyListens { .. }) => {
            is_orphaned = true;
            orphans(&dir, &mut left)?
        }
        Err(error) => return Err(error.into()),
    };
    if options.json {
        print_json("down", &done);
    } else {
        done.iter().for_each(print);
    }
    for what in &left {
        out::note(what);
    }
    if !left.is_empty() {
        return Ok(Ended::Failed);
    }
    // `timecell run` removes this itself, unless it was killed.
    if is_of_one && is_orphaned {
        forget_one(&dir)?;
    }
    if !options.json {
        out::print(&match is_of_one {
            true => "all cells stopped; nothing is kept".to_owned(),
            false => all_have_ended(&dir),
        });
    }
    Ok(Ended::Fine)
}

/// Removes the remains of a killed `timecell run`.
fn forget_one(dir: &Path) -> Result<(), CommandError> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let name = Ledger::default().name(&name, dir)?;
    match std::fs::remove_dir_all(dir) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(CommandError::File {
            path: dir.to_owned(),
            doing: "remove it",
            source,
        }),
        _ => {
            name.forget();
            Ok(())
        }
    }
}

/// The line that is printed when a mission has ended.
pub(super) fn all_have_ended(dir: &Path) -> String {
    format!("all cells stopped; logs kept in {}", dir.display())
}

/// Stops the cells of a mission whose supervisor is gone; remains that could not be removed are added to `left`.
fn orphans(dir: &Path, left: &mut Vec<String>) -> Result<Vec<CellDone>, CommandError> {
    if supervise::control::from_journal(dir)?.mission.is_none() {
        let dir = dir.to_owned();
        return Err(ControlError::NothingIsUp { dir }.into());
    }
    out::note("note: the mission has no supervisor; the cells that its journal lists are stopped");
    let mut tell = |event: &Event| left.push(event.to_string());
    match end_orphans(dir, &Ledger::default(), &mut tell) {
        Ok(done) => {
            give_back(&Ledger::default(), left);
            Ok(done)
        }
        Err(OrphansError::Ledger(error)) => Err(error.into()),
        Err(OrphansError::Run(error)) => Err(error.into()),
    }
}

/// Releases the grants of cells without a supervisor. They have ended, so if that fails, the reason is added to `left`,
/// next to their outcome.
fn give_back(ledger: &Ledger, left: &mut Vec<String>) {
    left.extend(ledger.forget_over().err().map(|error| error.to_string()));
}

fn of_cells(
    options: &OfCells,
    verb: &str,
    ask: impl Fn(Vec<String>) -> Ask,
) -> Result<Ended, CommandError> {
    let (dir, cells) = named(&options.which, &options.cells)?;
    let done = done(&dir, ask(cells.clone()))?;
    if options.json {
        print_json(verb, &done);
    } else {
        done.iter().for_each(print);
    }
    let wanted_running = verb != "stop";
    let failed = (done.iter())
        .any(|cell| wanted_running && cell.pid.is_none() && cells.contains(&cell.cell));
    Ok(if failed { Ended::Failed } else { Ended::Fine })
}

fn done(dir: &Path, ask: Ask) -> Result<Vec<CellDone>, CommandError> {
    match ask_for(dir, ask)? {
        Say::Done { cells } => Ok(cells),
        other => Err(unexpected(&other).into()),
    }
}

fn print(cell: &CellDone) {
    out::foreign(&format!("{}: {}", cell.cell, cell.text));
}

fn print_json(verb: &str, cells: &[CellDone]) {
    let json = serde_json::json!({ "schema": SCHEMA, "done": verb, "cells": cells });
    out::print(&format!("{json:#}"));
}

/// Asks the supervisor of this directory; its messages meanwhile are printed to standard error.
pub(crate) fn ask_for(dir: &Path, ask: Ask) -> Result<Say, ControlError> {
    Client::connect(dir)?.ask(dir, ask, &mut |text| out::note(text))
}

/// The error for an answer that does not belong to the request.
pub(crate) fn unexpected(say: &Say) -> ControlError {
    let json = serde_json::to_string(say).unwrap_or_default();
    ControlError::NotUnderstood {
        reason: format!("unexpected `{}`", json.get(..40).unwrap_or(&json)),
    }
}

/// The directory of the selected mission.
pub(super) fn directory(which: &WhichFirst) -> Result<PathBuf, CommandError> {
    locate(which.name(), which.which.dir.as_deref())
}

/// The directory of the mission of these cells, and their names in it.
pub(super) fn named(
    which: &Which,
    cells: &[String],
) -> Result<(PathBuf, Vec<String>), CommandError> {
    let (mission, names) = split(which, cells)?;
    Ok((locate(mission, which.dir.as_deref())?, names))
}

/// The mission that was named with the option or in `MISSION/CELL`, and the names of the cells.
fn split<'a>(
    which: &'a Which,
    cells: &'a [String],
) -> Result<(Option<&'a str>, Vec<String>), InputError> {
    let mut mission = which.mission.as_deref();
    let mut names = Vec::new();
    for text in cells {
        let refuse = |what: String| {
            let fix = "name cells of one mission, as CELL with -m MISSION or as MISSION/CELL";
            Err(InputError::new(text, what, fix))
        };
        match text.split_once('/') {
            None => names.push(text.clone()),
            Some((of, cell)) if of.is_empty() || cell.is_empty() || cell.contains('/') => {
                return refuse("it names no cell".to_owned());
            }
            Some(_) if which.dir.is_some() => {
                return refuse("--dir names the mission already".to_owned());
            }
            Some((of, _)) if mission.is_some_and(|before| before != of) => {
                return refuse(format!("it is not of `{}`", mission.unwrap_or_default()));
            }
            Some((of, cell)) => {
                mission = Some(of);
                names.push(cell.to_owned());
            }
        }
    }
    Ok((mission, names))
}

/// This directory, or that of the mission of this name, or that of the only running mission.
pub(crate) fn locate(name: Option<&str>, dir: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some((mission, _)) = name.and_then(|name| name.split_once('/'))
        && mission.starts_with(char::is_alphanumeric)
    {
        let name = name.unwrap_or_default();
        let fix = format!("name the mission alone, such as `{mission}`");
        return Err(InputError::new(name, "it names a cell", fix).into());
    }
    let place = match (dir, name) {
        (Some(dir), _) => Place::Dir(dir),
        (None, Some(name)) => Place::Name(name),
        (None, None) => Place::Only,
    };
    let bases = match place {
        Place::Dir(_) => Vec::new(),
        _ => places().ok_or_else(no_home)?,
    };
    Ok(find(place, &bases)?)
}

/// The default directory of missions' directories.
pub(super) fn base() -> Result<PathBuf, InputError> {
    base_dir().ok_or_else(no_home)
}

fn no_home() -> InputError {
    InputError::new(
        "--dir",
        "there is no HOME to keep the mission's state in",
        "name a directory with --dir",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mission_is_named_by_the_option_or_with_its_cells() {
        let split = |mission: Option<&str>, dir: Option<&str>, cells: &[&str]| {
            let which = Which {
                mission: mission.map(str::to_owned),
                dir: dir.map(PathBuf::from),
            };
            let cells: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
            let found = split(&which, &cells);
            let found = found.map(|(mission, names)| (mission.map(str::to_owned), names.join(" ")));
            found.map_err(|error| error.to_string())
        };
        let named =
            |mission: Option<&str>, cells: &str| Ok((mission.map(str::to_owned), cells.to_owned()));
        assert_eq!(split(None, None, &["a", "b"]), named(None, "a b"));
        assert_eq!(split(None, Some("d"), &["a"]), named(None, "a"));
        let rover = named(Some("rover"), "a b");
        assert_eq!(split(Some("rover"), None, &["a", "b"]), rover);
        assert_eq!(split(Some("rover"), None, &["rover/a", "b"]), rover);
        assert_eq!(split(None, None, &["rover/a", "rover/b"]), rover);
        for (mission, dir, cells) in [
            (None, None, &["/a"][..]),
            (None, None, &["rover/"]),
            (None, None, &["rover/a/b"]),
            (None, Some("d"), &["rover/a"]),
            (Some("lander"), None, &["rover/a"]),
            (None, None, &["rover/a", "lander/a"]),
        ] {
            let refused = split(mission, dir, cells).unwrap_err();
            assert!(refused.ends_with("or as MISSION/CELL"), "{refused}");
        }
        let refused = locate(Some("rover/a"), None).unwrap_err().to_string();
        assert!(refused.ends_with("such as `rover`"), "{refused}");
    }

    #[test]
    fn what_is_not_given_back_is_left() {
        // The ledger is root's.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut left = vec!["a cgroup".to_owned()];
        give_back(&Ledger::at(dir.path()), &mut left);
        assert_eq!(left, ["a cgroup"]);
        std::fs::write(dir.path().join("ledger.json"), "{").unwrap();
        give_back(&Ledger::at(dir.path()), &mut left);
        assert_eq!(left.len(), 2);
        assert!(left[1].contains("cannot be understood"), "{left:?}");
    }
}
