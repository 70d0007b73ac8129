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

/// The directory of a mission.
///
/// # Errors
/// When there is no such mission, or not exactly one.
pub fn find(place: Place<'_>, base: &Path) -> Result<PathBuf, ControlError> {
    let name = match place {
        Place::Dir(dir) => return Ok(std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())),
        Place::Name(name) => name,
        Place::Only => {
            let running = running(base)?;
            // Those that nobody supervises any more are meant where no other is.
            let running = match running.is_empty() {
                true => names(base, is_up)?,
                false => running,
            };
            return match running.as_slice() {
                [one] => Ok(base.join(one)),
                [] => Err(ControlError::NoneRuns {
                    base: base.to_owned(),
                }),
                _ => Err(ControlError::Several { running }),
            };
        }
    };
    // A name is one part of a path.
    let plain = Path::new(name).components().count() == 1 && !name.starts_with('.');
    let dirs = [base.join(name), crate::run::dir_of_one(name)];
    if let Some(dir) = (dirs.into_iter()).find(|dir| plain && dir.join("journal").exists()) {
        return Ok(dir);
    }
    Err(ControlError::UnknownMission {
        name: name.to_owned(),
        known: (names(base, |dir| dir.join("journal").exists())?.into_iter())
            .map(|name| match is_up(&base.join(&name)) {
                true => name,
                false => format!("{name} (ended)"),
            })
            .collect(),
    })
}

/// Whether the mission of this directory was not ended, be it supervised or not.
fn is_up(dir: &Path) -> bool {
    super::state(dir).is_ok_and(|state| state.mission.is_some())
}

/// Names of the missions below this directory whose supervisors listen, in alphabetical order.
///
/// # Errors
/// When the directory cannot be read; if it is not there, no mission runs.
pub fn running(base: &Path) -> Result<Vec<String>, ControlError> {
    names(base, |dir| match socket::connect(dir) {
        Ok(_) => true,
        // Somebody listens, whoever it is.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    })
}

fn names(base: &Path, which: impl Fn(&Path) -> bool) -> Result<Vec<String>, ControlError> {
    let entries = match std::fs::read_dir(base) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(ControlError::System {
                path: base.to_owned(),
                tried: "read",
                source,
            });
        }
    };
    let mut names: Vec<String> = (entries.flatten())
        .filter(|entry| which(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    Ok(names)
}
