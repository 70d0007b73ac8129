//! Why a journal cannot be used.

use std::io;
use std::path::PathBuf;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another supervisor has it.
    #[error("{} is in use by another timecell{}; end that one first, or name another state directory", dir.display(), by(*pid))]
    Locked {
        /// The journal's directory.
        dir: PathBuf,
        /// Its process, if it could be read.
        pid: Option<u32>,
    },
    /// Somebody else can change the contents of its directory.
    #[error(transparent)]
    Foreign(#[from] host::ground::Foreign),
    /// The operating system refused something.
    #[error("{} cannot be {tried}: {source}", path.display())]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The operation, as a participle.
        tried: &'static str,
        /// Why it was refused.
        source: io::Error,
    },
    /// A later timecell has written it.
    #[error(
        "{} was written by a newer timecell ({what} version {found}, this one reads up to {known}); use that one, or move the \
         file away to start afresh",
        path.display()
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The part with the version: the journal or its entries.
        what: &'static str,
        /// Version of the file.
        found: u32,
        /// Latest version that can be read.
        known: u32,
    },
    /// It holds something else.
    #[error("{} holds entries of the kind {found:?} instead of {expected:?}", path.display())]
    OtherKind {
        /// The journal.
        path: PathBuf,
        /// Kind of the file.
        found: String,
        /// Kind that was asked for.
        expected: &'static str,
    },
    /// An entry cannot be written as JSON, or not in one line.
    #[error("an entry of the journal cannot be written as JSON: {reason}")]
    Entry {
        /// The serializer's error.
        reason: String,
    },
    /// An earlier write failed, and the end of the file is not known since. [`super::Journal::compact`] fixes it.
    #[error("{} takes no more entries since a write failed: {reason}", path.display())]
    Broken {
        /// The journal.
        path: PathBuf,
        /// The earlier error.
        reason: String,
    },
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}
