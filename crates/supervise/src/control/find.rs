//! Which mission a command means.

use std::io;
use std::path::{Path, PathBuf};

use super::{ControlError, socket};

/// Which mission is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// The one in this directory.
    Dir(&'a Path),
    /// The one of this name, in its usual directory.
    Name(&'a str),
    /// The only one that is up in a usual directory; of supervised ones, where there are any.
    Only,
}

/// Where missions have their directories unless the user says otherwise: `/var/lib/timecell` for root, else `timecell` in
/// `XDG_STATE_HOME` or `~/.local/state`. `None`: there is no home.
pub fn base_dir() -> Option<PathBuf> {
    if super::peer::own_user() == 0 {
        return Some(PathBuf::from("/var/lib/timecell"));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|state| state.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("timecell"))
}

/// Where missions are looked for: [`base_dir`], and where those of `timecell run` are, which have no file.
pub fn places() -> Option<Vec<PathBuf>> {
    Some(vec![base_dir()?, crate::dirs::place_of_ones()])
}

/// How `timecell ps` and `down` refer to a mission of this name and directory: by its name, if that is found.
pub fn called(name: &str, dir: &Path) -> String {
    let usual = base_dir().map(|base| base.join(name));
    match usual.as_deref() == Some(dir) || crate::dirs::dir_of_one(name) == dir {
        true => name.to_owned(),
        false => format!("--dir {}", dir.display()),
    }
}

/// The directory of a mission, below one of these ([`places`]).
///
/// # Errors
/// When there is no such mission, or not exactly one.
pub fn find(place: Place<'_>, bases: &[PathBuf]) -> Result<PathBuf, ControlError> {
    let name = match place {
        Place::Dir(dir) => return Ok(std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())),
        Place::Name(name) => name,
        Place::Only => {
            let running = dirs(bases, is_supervised)?;
            // Those that nobody supervises any more are meant where no other is.
            let running = match running.is_empty() {
                true => dirs(bases, is_up)?,
                false => running,
            };
            return match running.as_slice() {
                [one] => Ok(one.clone()),
                [] => Err(ControlError::NoneRuns {
                    base: bases.first().cloned().unwrap_or_default(),
                }),
                _ => Err(ControlError::Several {
                    running: running.iter().map(|dir| last(dir)).collect(),
                }),
            };
        }
    };
    // A name is one part of a path.
    let plain = Path::new(name).components().count() == 1 && !name.starts_with('.');
    let mut named = bases.iter().map(|base| base.join(name));
    if let Some(dir) = named.find(|dir| plain && dir.join("journal").exists()) {
        return Ok(dir);
    }
    Err(ControlError::UnknownMission {
        name: name.to_owned(),
        known: (dirs(bases, |dir| dir.join("journal").exists())?.iter())
            .map(|dir| match is_up(dir) {
                true => last(dir),
                false => format!("{} (ended)", last(dir)),
            })
            .collect(),
    })
}

/// Whether the mission of this directory was not ended, be it supervised or not.
fn is_up(dir: &Path) -> bool {
    super::state(dir).is_ok_and(|state| state.mission.is_some())
}

/// Whether somebody listens for the mission of this directory.
pub(super) fn is_supervised(dir: &Path) -> bool {
    match socket::connect(dir) {
        Ok(_) => true,
        // Somebody listens, be it another user.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// The last part of a mission's directory, which is its name in a usual place.
fn last(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The directories in these, in the order of their names; a missing one has none, and those that others may not read do
/// not count for them.
fn dirs(bases: &[PathBuf], which: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, ControlError> {
    let mut found = Vec::new();
    for (at, base) in bases.iter().enumerate() {
        match std::fs::read_dir(base) {
            Ok(entries) => found.extend(entries.flatten().map(|entry| entry.path())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if at > 0 && error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(source) => {
                return Err(ControlError::System {
                    path: base.clone(),
                    tried: "read",
                    source,
                });
            }
        }
    }
    found.retain(|dir| which(dir));
    found.sort_by_key(|dir| last(dir));
    Ok(found)
}
