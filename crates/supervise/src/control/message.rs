//! The messages between a client and a supervisor.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Happening, Status};
use crate::end::End;

/// Version of the protocol; it rises when an older end would misunderstand.
pub const VERSION: u32 = 1;
/// The longest request, bytes, its newline included.
pub const MOST_REQUEST_BYTES: usize = 64 << 10;

/// A request of a client: one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`] of the client.
    pub timecell_control: u32,
    /// The request itself.
    pub ask: Ask,
}

/// The requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// The status: answered by [`Say::Status`].
    Status,
    /// The same with all that each bound assumes: answered by [`Say::Status`].
    Assumptions,
    /// The same as numbers for Prometheus: answered by [`Say::Metrics`].
    Metrics,
    /// Stop these cells and those that need them, and keep them stopped: [`Say::Done`] once they have ended.
    Stop {
        /// Their names.
        cells: Vec<String>,
    },
    /// Let these cells run again, and those that were stopped because they need them: [`Say::Done`].
    Start {
        /// Their names.
        cells: Vec<String>,
    },
    /// Restart the programs of these cells: [`Say::Done`] once they run.
    Restart {
        /// Their names.
        cells: Vec<String>,
    },
    /// End the mission: [`Say::Done`] once nothing is left, and the supervisor ends.
    Down,
    /// Tell events from now on: [`Say::Subscribed`], then [`Say::Happened`] without end.
    Events,
    /// Read the mission file and become it: [`Say::Notice`]s, then [`Say::Updated`].
    Update {
        /// Absolute path of the file.
        file: PathBuf,
        /// Names of cells that are recreated even if the file leaves them unchanged.
        anew: Vec<String>,
        /// How long new versions must run before the old ones are given up, ns.
        window_ns: i64,
    },
}

/// Whether an update may have this health window, ns: nothing else can be requested during an update.
///
/// # Errors
/// A sentence with the range.
pub(crate) fn check_window(window_ns: i64) -> Result<(), &'static str> {
    match window_ns {
        0..=86_400_000_000_000 => Ok(()),
        _ => Err("`window_ns` is 0 to 86400000000000, which is a day"),
    }
}

/// An answer of the supervisor: one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`] of the supervisor.
    pub timecell_control: u32,
    /// The answer itself.
    pub say: Say,
}

/// The answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// The status.
    Status(Box<Status>),
    /// In the text format of Prometheus.
    Metrics {
        /// All of it.
        text: String,
    },
    /// The request is done.
    Done {
        /// Each cell that it concerned.
        cells: Vec<CellDone>,
    },
    /// The mission is another one now, or has stayed the same.
    Updated(Box<Updated>),
    /// From here on, events are sent.
    Subscribed {
        /// Sequence number in the journal of the last entry that is not told.
        sequence: u64,
    },
    /// Something has happened.
    Happened(Box<Happening>),
    /// The client was too slow and does not receive the events up to this sequence number; the journal has them.
    Behind {
        /// Of the last entry that is not told.
        sequence: u64,
    },
    /// A notice meanwhile; more follows.
    Notice {
        /// A sentence.
        text: String,
    },
    /// It is not done, and nothing has changed.
    Refused {
        /// Why, in one word.
        kind: Refusal,
        /// Why, as sentences: one for each fault.
        why: Vec<String>,
    },
}

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The request is not valid.
    BadRequest,
    /// The user may not ask.
    NotAllowed,
    /// The mission has no such cell.
    UnknownCell,
    /// The mission file is faulty.
    BadFile,
    /// A guarantee could not be kept.
    NotAdmitted,
    /// Not now: something else is in progress.
    Busy,
    /// It cannot be done as things are.
    NotPossible,
}

/// The result for a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellDone {
    /// Its name.
    pub cell: String,
    /// Its process, if it runs now.
    pub pid: Option<i32>,
    /// How its program ended, if it has.
    pub end: Option<End>,
    /// A clause, such as `runs (pid 12)`.
    pub text: String,
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updated {
    /// Number of the update.
    pub update: u64,
    /// Whether the mission is the new one.
    pub committed: bool,
    /// Why it is not.
    pub reason: Option<String>,
    /// From reading the file to the answer of admission, ns.
    pub admission_ns: i64,
    /// Each cell of the old and the new mission.
    pub cells: Vec<CellUpdate>,
}

/// The effect of an update on a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellUpdate {
    /// Its name.
    pub cell: String,
    /// Its change.
    pub change: Change,
    /// Whether its new version ran beside the old one for the health window.
    pub beside: bool,
    /// Its process now, if it runs.
    pub pid: Option<i32>,
}

/// How a cell of the new mission differs from that of the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Not at all: it was not touched.
    Unchanged,
    /// It was not there.
    Added,
    /// Something of it.
    Changed,
    /// It is not there any more.
    Removed,
}

impl Request {
    /// A request of this version.
    pub fn new(ask: Ask) -> Request {
        Request {
            timecell_control: VERSION,
            ask,
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// The fault, as a sentence for the client.
    pub fn read(line: &[u8]) -> Result<Request, String> {
        /// The field that every version has.
        #[derive(Deserialize)]
        struct Any {
            timecell_control: u32,
        }
        let any: Any = serde_json::from_slice(line).map_err(|error| {
            format!("this is not a request: {error}; see the documentation of the control socket")
        })?;
        if any.timecell_control != VERSION {
            return Err(format!(
                "the request has version {} and this supervisor speaks version {VERSION}; use the timecell that started it",
                any.timecell_control
            ));
        }
        serde_json::from_slice(line)
            .map_err(|error| format!("this supervisor does not know this request: {error}"))
    }
}

impl Answer {
    /// An answer of this version.
    pub fn new(say: Say) -> Answer {
        Answer {
            timecell_control: VERSION,
            say,
        }
    }
}

/// A message as a line.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // Nothing in a message can fail to be JSON: no map with keys that are not text, no path that is not UTF-8 unescaped.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
