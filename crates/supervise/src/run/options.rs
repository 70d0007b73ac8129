//! The supervisor's options beside the mission, and why it ended.

use std::path::PathBuf;

use crate::ledger::Ledger;

/// The supervisor's settings beside the mission.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of the mission's journal and cells; nobody else's files may be in it.
    pub dir: PathBuf,
    /// Version of timecell.
    pub version: String,
    /// The ledger in which the machine's supervisors record their grants.
    pub ledger: Ledger,
    /// Where the output of cells goes.
    pub output: OutputTo,
}

/// Where the output of cells goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTo {
    /// Into a log of each cell, of bounded size.
    Log,
    /// To the supervisor's own standard output and error, which are the cells' as they are, and so is its standard input; cells of podman have a
    /// log and no input all the same.
    Own,
}

/// Why a mission ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A signal.
    Signal,
    /// No cell runs any more, and none is to be restarted.
    NothingLeft,
    /// The same, and at least one of them has failed: it is not restarted any more, a rule has stopped it, or its
    /// program's last end was a failure.
    GivenUp,
    /// Somebody, over the control socket.
    Down,
}
