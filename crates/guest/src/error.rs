//! Why a guest could not be made, started or asked.

use std::io;
use std::path::{Path, PathBuf};

/// Why a guest could not be made, started or asked; prints as one sentence, which the end of its console may follow.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The file of a board has faults.
    #[error(transparent)]
    Inputs(#[from] model::InputErrors),
    /// Bad input.
    #[error(transparent)]
    Input(#[from] model::InputError),
    /// Something that is needed is not here.
    #[error("{what} ({fix})")]
    Unmet {
        /// What is missing.
        what: String,
        /// How to get it.
        fix: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {doing}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The attempted operation.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A program that makes the guest has failed.
    #[error("{program}: {said}")]
    Program {
        /// The program.
        program: &'static str,
        /// What it said last.
        said: String,
    },
    /// ssh refused; after its own words.
    #[error("{why}")]
    Ssh {
        /// Its words.
        said: String,
        /// Why, and the remedy.
        why: Box<GuestError>,
    },
    /// Another machine failed.
    #[error("{target}: {what}")]
    Remote {
        /// Its name.
        target: String,
        /// How.
        what: String,
    },
    /// The guest failed.
    #[error("{what}{}", shown(tail))]
    Guest {
        /// How.
        what: String,
        /// The last lines of its console; empty if it said nothing.
        tail: String,
    },
}

impl GuestError {
    /// A requirement that is unmet.
    pub fn unmet(what: impl Into<String>, fix: impl Into<String>) -> GuestError {
        GuestError::Unmet {
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// Makes the error of a file from the system's.
    pub fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> GuestError {
        let path = path.to_owned();
        move |source| GuestError::File {
            path,
            doing,
            source,
        }
    }
}

/// The end of a console below a sentence.
fn shown(tail: &str) -> String {
    match tail {
        "" => String::new(),
        tail => format!("; its console ended with:\n{tail}"),
    }
}
