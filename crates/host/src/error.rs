//! Why something of the machine is missing or was refused: the failed step, and the system's reason as the source.

use std::io;

use crate::file::FileError;
use crate::hcbs::HcbsError;
use crate::root::{Unreadable, reason_of};
use crate::rtgroup::RtGroupError;

/// The result of a function of this crate that can fail in one of these ways.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done, or is not to be had. Each prints as one clause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine does not have it, or it is not possible: a clause that says why.
    #[error("{0}")]
    Refused(String),
    /// A step failed; the source says why.
    #[error("{doing}: {source}")]
    Doing {
        /// The step, and the file or group that it was about.
        doing: String,
        /// Why it failed.
        source: Box<Error>,
    },
    /// The system refused a call.
    #[error("{}", reason_of(.0))]
    System(#[from] io::Error),
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the machine could not be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// There are no real-time groups.
    #[error(transparent)]
    RtGroup(#[from] RtGroupError),
    /// There are no servers of cgroup v2.
    #[error(transparent)]
    Hcbs(#[from] HcbsError),
}

impl From<String> for Error {
    fn from(why: String) -> Error {
        Error::Refused(why)
    }
}

impl From<&str> for Error {
    fn from(why: &str) -> Error {
        Error::Refused(why.to_owned())
    }
}

/// Adds the failed step to an error.
pub(crate) trait Doing<T> {
    /// `doing` names the step and its object, such as `/sys/fs/cgroup/a cannot be made`.
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Doing {
            doing: doing(),
            source: Box::new(error.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_reason_is_the_source_of_what_was_being_done() {
        let file = "/nonexistent/file";
        let failed = std::fs::write(file, "1").doing(|| format!("{file} takes no 1"));
        let error = failed.doing(|| "cpu 3 is kept".to_owned()).unwrap_err();
        let text = "cpu 3 is kept: /nonexistent/file takes no 1: no such file or directory";
        assert_eq!(error.to_string(), text);
        let mut deepest: &dyn std::error::Error = &error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        let system = deepest.downcast_ref::<io::Error>().unwrap();
        assert_eq!(system.kind(), io::ErrorKind::NotFound);
    }
}
