//! Why the ledger cannot be used, or a mission's name is taken.

use std::io;
use std::path::PathBuf;

use crate::control::called;

/// Why the ledger cannot be used, or a name is taken.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another supervisor keeps a mission of this name running.
    #[error(
        "another timecell{} runs a mission named `{mission}`; end it with `timecell down {}`, or give this one another name",
        by(*pid),
        called(mission, dir)
    )]
    NameInUse {
        /// The mission.
        mission: String,
        /// Its supervisor, if it could be read.
        pid: Option<u32>,
        /// Its directory.
        dir: PathBuf,
    },
    /// Cells of a mission of this name still run, without a supervisor.
    #[error(
        "cells of a mission `{mission}` in another directory still run; adopt them with `timecell up --dir {}` and end them \
         with `timecell down {}`, or give this mission another name",
        dir.display(),
        called(mission, dir)
    )]
    NameLeft {
        /// The mission.
        mission: String,
        /// Its directory.
        dir: PathBuf,
    },
    /// The ledger cannot be understood.
    #[error(
        "{} cannot be understood: {why}; the grants on this machine are unknown: end all missions, remove the file, and start \
         them again",
        path.display()
    )]
    Corrupt {
        /// The ledger.
        path: PathBuf,
        /// Why, a clause.
        why: String,
    },
    /// A mission holds a cpu that is to be measured.
    #[error(
        "{who} holds cpu {cpus}, where this would measure: its cells would distort the numbers and could become late; end it, \
         choose other cpus with --cpus, or give --beside-missions"
    )]
    InTheWay {
        /// Which mission.
        who: String,
        /// The cpus that both want.
        cpus: String,
    },
    /// Somebody else keeps the ledger locked.
    #[error("{} is locked by another timecell; try again", path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// Something of `/proc` cannot be read.
    #[error(transparent)]
    Proc(#[from] crate::process::ProcUnreadable),
    /// The operating system refused something.
    #[error("{} cannot be {tried}: {source}", path.display())]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The failed operation.
        tried: &'static str,
        /// Why it was refused.
        source: io::Error,
    },
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}
