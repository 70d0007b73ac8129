//! Why a cell could not be made or removed: the engine's step, and the system's or a program's reason as the source.

use std::error::Error as StdError;
use std::fmt::Write;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use host::file::FileError;
use model::EngineKind;

use crate::app::BundleError;
use crate::rootfs::RootfsError;

/// The result of a function of this crate that can fail.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an engine could not make, or not remove, a cell.
#[derive(Debug, thiserror::Error)]
#[error("{engine}: cannot {doing}: {source}")]
pub struct EngineError {
    /// The engine.
    pub engine: EngineKind,
    /// The failed step, such as `start the cell`.
    pub doing: String,
    /// The cause, in the engine's own words where it gave some.
    pub source: Error,
}

/// Why one step was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is not possible here: a sentence that says why.
    #[error("{0}")]
    Refused(String),
    /// A step failed; the source says why.
    #[error("{doing}: {source}")]
    Doing {
        /// The step, and the file or program that it was about.
        doing: String,
        /// Why it failed.
        source: Box<Error>,
    },
    /// A step failed, and there is more to say than why, such as a remedy or the remains.
    #[error("{source}{more}")]
    Noted {
        /// Why the step failed.
        source: Box<Error>,
        /// The rest of the sentence.
        more: String,
    },
    /// A program, such as a container manager, ended with a failure.
    #[error("{}", if said.is_empty() { format!("{program} ended with {status}") } else { said.clone() })]
    Program {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote to its log.
        said: String,
    },
    /// A program did not end in time, and was killed.
    #[error("no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The system refused a call.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The application's bundle cannot be used.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A root filesystem or its program cannot be used.
    #[error(transparent)]
    Rootfs(#[from] RootfsError),
    /// An error of a library, with its causes.
    #[error("{}", chain(&**.0))]
    Library(#[source] Box<dyn StdError + Send + Sync>),
}

impl Error {
    /// The same with `more` behind it.
    pub(crate) fn noted(self, more: impl Into<String>) -> Error {
        Error::Noted {
            source: Box::new(self),
            more: more.into(),
        }
    }
}

/// An [`Error::Refused`] with a formatted text.
macro_rules! refused {
    ($($text:tt)*) => {
        $crate::error::Error::Refused(format!($($text)*))
    };
}
pub(crate) use refused;

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

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Error {
        Error::System(errno.into())
    }
}

macro_rules! of_libraries {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Error {
            fn from(error: $kind) -> Error {
                Error::Library(Box::new(error))
            }
        })*
    };
}
of_libraries!(
    caps::errors::CapsError,
    host::cpus::CpuListError,
    host::root::Unreadable,
    host::sched::SchedError,
    libcontainer::error::LibcontainerError,
    seccompiler::BackendError,
    seccompiler::Error,
    serde_json::Error,
    std::ffi::NulError
);

/// Adds the failed step to an error.
pub(crate) trait Doing<T> {
    /// `doing` names the step and its object, such as `cannot mount /proc`.
    fn doing<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: Into<Error>> Doing<T> for Result<T, E> {
    fn doing<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| Error::Doing {
            doing: doing().into(),
            source: Box::new(error.into()),
        })
    }
}

/// An error with its causes, each once.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            let _ = write!(text, ": {words}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deepest<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
        error.source().map_or(error, deepest)
    }

    #[test]
    fn the_systems_reason_is_the_source_of_what_the_engine_was_doing() {
        let log = std::path::Path::new("/nonexistent/log");
        let source = crate::process::open_log(log).unwrap_err();
        let error = EngineError {
            engine: EngineKind::Bare,
            doing: "create the cell".to_owned(),
            source: Err::<(), _>(source).doing(|| "no log").unwrap_err(),
        };
        let text = "bare: cannot create the cell: no log: /nonexistent/log: \
                    No such file or directory (os error 2)";
        assert_eq!(error.to_string(), text);
        let system = deepest(&error).downcast_ref::<io::Error>().unwrap();
        assert_eq!(system.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_program_that_failed_is_told_from_one_that_does_not_answer() {
        let run = |program: &str, script: &str, within| {
            let mut command = std::process::Command::new(program);
            crate::process::output_within(command.args(["-c", script]), within)
        };
        let answer = run(
            "/bin/sh",
            "echo no image >&2; exit 3",
            Duration::from_secs(10),
        )
        .unwrap();
        let failed = answer.failure("podman").to_string();
        assert_eq!(failed, "no image");
        let answer = run("/bin/sh", "exit 3", Duration::from_secs(10)).unwrap();
        let silent = answer.failure("podman").to_string();
        assert_eq!(silent, "podman ended with exit status: 3");
        let late = run("/bin/sh", "exec sleep 9", Duration::ZERO)
            .err()
            .unwrap();
        assert!(matches!(late, Error::NoAnswer(Duration::ZERO)), "{late}");
        assert_eq!(late.to_string(), "no answer within 0 s");
    }

    #[test]
    fn what_else_there_is_to_say_stands_behind_the_reason() {
        let error = Error::from(io::Error::from_raw_os_error(libc::EINVAL));
        let error = error.noted("; and afterwards the rest stays");
        let text = "Invalid argument (os error 22); and afterwards the rest stays";
        assert_eq!(error.to_string(), text);
        assert!(deepest(&error).is::<io::Error>());
    }
}
