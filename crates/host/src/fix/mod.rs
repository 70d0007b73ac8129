//! Fixes that make the machine fitter for real time, as files to write and kernel parameters, and applying them: [`apply`] writes
//! the files after it has noted how to [put them back](undo), and [`persist`] writes texts that make the fixes last. The machine's
//! faults and their fixes are for the [doctor](crate::doctor) to name.

mod form;
pub mod persist;
#[cfg(test)]
mod tests;
pub mod undo;

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::handover::own_uid;
use crate::root::{Root, reason_of};

pub use form::Form;
use undo::{Change, Undo};

/// A file of `/proc` or `/sys`, the value it has and the value it should get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The file.
    pub path: String,
    /// The form in which it holds the value.
    pub form: Form,
    /// The value that it has.
    pub was: String,
    /// The value that it should get.
    pub set: String,
}

impl Write {
    /// Whether it has that value already.
    pub fn is_done(&self) -> bool {
        self.was == self.set
    }
}

/// A kernel parameter, `name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// The remedy for one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The check's name for programs.
    pub id: Cow<'static, str>,
    /// Files to write while the machine runs, also those written already.
    pub writes: Vec<Write>,
    /// Whether each file is written on its own; otherwise all are written or none.
    pub one_by_one: bool,
    /// Kernel parameters that help from the next boot on.
    pub parameters: Vec<Parameter>,
    /// Steps left to the user, and why; clauses.
    pub left: Vec<String>,
}

impl Fix {
    pub(crate) fn of(id: &'static str) -> Fix {
        Fix {
            id: Cow::Borrowed(id),
            writes: Vec::new(),
            one_by_one: false,
            parameters: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Adds a file and the value that it should get. One that cannot be read is left, with the reason.
    pub(crate) fn write(
        mut self,
        root: &Root,
        path: impl Into<String>,
        form: Form,
        set: impl Into<String>,
    ) -> Fix {
        let (path, set) = (path.into(), set.into());
        match form.read(root, &path, &set) {
            Ok(was) => self.writes.push(Write {
                path,
                form,
                was,
                set,
            }),
            Err(error) => self.left.push(error.to_string()),
        }
        self
    }

    pub(crate) fn parameter(mut self, name: &'static str, value: impl Into<String>) -> Fix {
        let value = value.into();
        self.parameters.push(Parameter { name, value });
        self
    }

    pub(crate) fn leave(mut self, why: impl Into<String>) -> Fix {
        self.left.push(why.into());
        self
    }

    /// The changes that are still to be made.
    pub fn open(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(|write| !write.is_done())
    }
}

/// Why nothing was changed. Each prints as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum FixError {
    /// Only root may.
    #[error("only root may change the machine; run it with sudo (nothing was changed)")]
    NotRoot,
    /// A file system that is mounted read-only, as in a container.
    #[error(
        "{path} is on a file system that is mounted read-only, as in a container; run it on the machine itself (nothing was changed)"
    )]
    ReadOnly {
        /// The file that was to be written.
        path: String,
    },
    /// The undo file cannot be written.
    #[error("{}: cannot be written ({reason}), and without it nothing is changed", path.display())]
    NoUndo {
        /// The undo file.
        path: PathBuf,
        /// The system's answer.
        reason: String,
    },
    /// An undo file that is not one of ours.
    #[error("{}: {reason} (nothing was changed)", path.display())]
    BadUndo {
        /// The undo file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
}

/// A file that was not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The intended change.
    #[serde(flatten)]
    pub change: Change,
    /// Why it is not.
    pub why: String,
}

/// The outcome of fixes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Files that have the new value, each as it was read back.
    pub changed: Vec<Change>,
    /// Files of fixes that count one by one which the kernel lets nobody change, such as those of many interrupts.
    pub stayed: Vec<Failed>,
    /// Files of fixes that could not be made, which have the old value, or are among those that are changed as well.
    pub failed: Vec<Failed>,
}

/// Checks that this process may change the machine at all.
///
/// # Errors
/// [`FixError::NotRoot`].
pub fn must_be_root() -> Result<(), FixError> {
    match own_uid() {
        0 => Ok(()),
        _ => Err(FixError::NotRoot),
    }
}

/// Makes the open changes of these fixes. How to put them back is written to `undo` before anything is changed; changes in that file from an earlier
/// call are kept.
///
/// If one file of a fix cannot be written, the fix is taken back, unless its files count one by one.
///
/// # Errors
/// [`FixError`], with nothing changed.
pub fn apply(root: &Root, fixes: &[Fix], undo: &Path) -> Result<Applied, FixError> {
    let mut applied = Applied::default();
    let all = || fixes.iter().flat_map(|fix| fix.open());
    if all().next().is_none() {
        return Ok(applied);
    }
    debug_assert!(
        fixes
            .iter()
            .flat_map(Change::open_of)
            .all(|change| change.is_ours()),
        "the undo file would be refused for a file that is not among `FILES`"
    );
    for write in all() {
        may_write(root, &write.path)?;
    }
    let mut kept = Undo::read_or_new(root, undo)?;
    let before = kept.clone();
    for fix in fixes {
        kept.expect(Change::open_of(fix));
    }
    kept.save(undo)?;
    for fix in fixes {
        one(root, fix, &mut applied);
    }
    // Unchanged files need not be put back.
    let mut exact = before;
    exact.note(applied.changed.iter().cloned());
    exact.note_stayed(&applied);
    // It says more than is needed otherwise, which does no harm.
    let _ = exact.save_or_remove(undo);
    Ok(applied)
}

/// One fix, whole or not at all.
fn one(root: &Root, fix: &Fix, applied: &mut Applied) {
    let mut done: Vec<Change> = Vec::new();
    for write in fix.open() {
        let change = Change::of(fix, write);
        let (why, is_changed) = match give(root, &change) {
            Ok(()) => {
                done.push(change);
                continue;
            }
            Err(NotGiven::Stays(why)) => (why, false),
            Err(NotGiven::Changed(now)) => {
                applied.changed.push(now.change);
                (now.why, true)
            }
        };
        if fix.one_by_one {
            let list = match is_changed {
                true => &mut applied.failed,
                false => &mut applied.stayed,
            };
            list.push(Failed { change, why });
            continue;
        }
        for earlier in done.drain(..).rev() {
            let why = match take_back(root, &earlier) {
                Ok(()) => format!("put back, because {} cannot be written", change.path),
                Err(now) => {
                    // It is changed, so that it belongs into the undo file.
                    applied.changed.push(now.change);
                    format!("could not be put back: {}", now.why)
                }
            };
            applied.failed.push(Failed {
                change: earlier,
                why,
            });
        }
        applied.failed.push(Failed { change, why });
        return;
    }
    applied.changed.append(&mut done);
}

/// Why a file does not have its new value.
enum NotGiven {
    /// It has the old one.
    Stays(String),
    /// It has another one, that of this change, and could not be given the old one again.
    Changed(Box<Failed>),
}

/// Gives a file its new value, or else its old one again: the kernel can take a value and make another one of it, as it does with
/// an interrupt that somebody else moves at the same time.
fn give(root: &Root, change: &Change) -> Result<(), NotGiven> {
    let (now, why) = match set(root, change, &change.set) {
        Ok(()) => return Ok(()),
        Err(NotSet::Refused(why)) => return Err(NotGiven::Stays(why)),
        Err(NotSet::Other { now, why }) if now == change.was => return Err(NotGiven::Stays(why)),
        Err(NotSet::Other { now, why }) => (now, why),
    };
    match take_back(root, &change.having(now)) {
        Ok(()) => Err(NotGiven::Stays(why)),
        Err(mut now) => {
            now.why = format!("{why}, and could not be put back: {}", now.why);
            Err(NotGiven::Changed(now))
        }
    }
}

/// Gives a file its old value again.
///
/// # Errors
/// The change as it is now, and why it is not undone.
fn take_back(root: &Root, change: &Change) -> Result<(), Box<Failed>> {
    let (change, why) = match set(root, change, &change.was) {
        Ok(()) => return Ok(()),
        Err(NotSet::Refused(why)) => (change.clone(), why),
        Err(NotSet::Other { now, why }) => (change.having(now), why),
    };
    Err(Box::new(Failed { change, why }))
}

/// Whether a file may be opened for writing; one that is refused for itself alone is tried again when its turn comes.
fn may_write(root: &Root, path: &str) -> Result<(), FixError> {
    let Err(error) = OpenOptions::new().write(true).open(root.path(path)) else {
        return Ok(());
    };
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => Err(FixError::ReadOnly {
            path: path.to_owned(),
        }),
        io::ErrorKind::PermissionDenied if own_uid() != 0 => Err(FixError::NotRoot),
        _ => Ok(()),
    }
}

/// Why a file has not the value that was written.
enum NotSet {
    /// The kernel refused it: nothing has changed.
    Refused(String),
    /// The kernel took it, and the file has this.
    Other { now: String, why: String },
}

/// Writes a value and reads it back.
fn set(root: &Root, change: &Change, value: &str) -> Result<(), NotSet> {
    let mut options = OpenOptions::new();
    // In a made-up tree of a test there are ordinary files, which would keep the end of a longer text.
    options.write(true).truncate(!root.is_live());
    (options.open(root.path(&change.path)))
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|error| NotSet::Refused(reason_of(&error)))?;
    match change.form.read(root, &change.path, value) {
        Ok(now) if now == value => Ok(()),
        Ok(now) => Err(NotSet::Other {
            why: format!("the kernel accepted it, but the value is now {now:?}"),
            now,
        }),
        // It was taken, as far as can be told.
        Err(error) => Err(NotSet::Other {
            now: value.to_owned(),
            why: error.to_string(),
        }),
    }
}
