//! Why the ledger cannot be used, or a name not be had.

use std::io;
use std::path::PathBuf;

use crate::control::called;

/// Why the ledger cannot be used, or a name not be had.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another supervisor keeps a mission of this name running.
    #[error(
        "a mission of the name `{mission}` is kept running by another timecell{}; end it with `timecell down {}`, or give this one \
         another name",
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
        "cells of a mission `{mission}` of another directory still run; take them over with `timecell up --dir {}`, and end them \
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
        "{} cannot be understood: {why}; what is granted on this machine is not known: end all missions, remove the file, and start \
         them again",
        path.display()
    )]
    Corrupt {
        /// The ledger.
        path: PathBuf,
        /// Why, a clause.
        why: String,
    },
    /// A mission holds what is to be measured on.
    #[error(
        "{who} holds cpu {cpus}, where this would measure: its cells would be in the numbers, and could be late by it; end it, choose \
         other cpus with --cpus, or say --beside-missions"
    )]
    InTheWay {
        /// Which mission.
        who: String,
        /// The cpus that both want.
        cpus: String,
    },
    /// Somebody else keeps the ledger locked.
    #[error("{} is kept locked by another timecell; try again", path.display())]
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
        /// What was tried.
        tried: &'static str,
        /// Why it was refused.
        source: io::Error,
    },
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}
