//! Shared by these processes: their command word, their priorities, and the reasons for which one ends early.

use std::path::PathBuf;

use crate::keeper::{KeeperError, PRIORITY};
use crate::page::PageError;

/// The first word of the command line of each of the processes.
pub const WORD: &str = "freezer";
/// The longest that the watcher and the commander sleep, ns.
pub(super) const LONGEST_SLEEP_NS: i64 = 100_000_000;
/// The commander: above all cells, below the enforcing threads, which it must not keep from their work.
pub(super) const COMMANDER: u8 = PRIORITY - 1;
/// The watcher's FIFO priority, the highest of the holding processes: above the enforcing threads, which may run wild.
pub const WATCHER: u8 = PRIORITY + 1;
/// The highest FIFO priority of held threads: below all that hold them.
pub const HIGHEST_HELD: u8 = COMMANDER - 1;

/// Why one of the processes ends otherwise than it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    #[error(transparent)]
    Page(#[from] PageError),
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    #[error("{what}: {reason}")]
    System {
        what: String,
        reason: std::io::Error,
    },
    #[error("{} is held by another keeper", .0.display())]
    Taken(PathBuf),
}

impl ProcessError {
    pub(super) fn of(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ProcessError {
        let what = what.into();
        move |reason| ProcessError::System { what, reason }
    }
}

/// Tells the process that started this one, if it still listens.
pub(super) fn say(what: &dyn std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{what}");
}
