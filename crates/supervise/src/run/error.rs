use crate::enforce::EnforceError;
use crate::journal::JournalError;
use crate::process::ProcUnreadable;

/// Why a mission cannot be kept running.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The journal cannot be had or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An enforcer refused.
    #[error(transparent)]
    Enforce(#[from] EnforceError),
    /// An engine refused.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// Something of `/proc` cannot be read.
    #[error(transparent)]
    Proc(#[from] ProcUnreadable),
    /// The system refused something that the supervisor needs for itself.
    #[error("cannot {doing}: {source}")]
    System {
        /// What.
        doing: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The mission has ended, but its journal does not say so.
    #[error(
        "all cells have ended, but {entries} entries of the journal could not be written: {why}; \
         the next `timecell up` takes up what it says"
    )]
    Unwritten {
        /// How many.
        entries: u64,
        /// Why.
        why: String,
    },
    /// Somebody has asked for the end twice, and did not want to wait for steps that hang.
    #[error(
        "what was being done with {cells} was not waited for; the next `timecell up` of this mission clears what is left"
    )]
    NotWaitedFor {
        /// Names of the cells.
        cells: String,
    },
    /// A health rule cannot be carried out.
    #[error("{why}")]
    Health {
        /// Why.
        why: String,
    },
    /// Cells of another mission run under this journal.
    #[error(
        "the mission `{running}` has cells here that still run; end it first: timecell down {running}"
    )]
    Other {
        /// Its name.
        running: String,
    },
}

impl RunError {
    /// There is no thread that prints.
    pub fn no_printer(source: std::io::Error) -> RunError {
        RunError::System {
            doing: "make a thread that prints",
            source,
        }
    }

    pub(super) fn system(doing: &'static str) -> impl FnOnce(std::io::Error) -> RunError {
        move |source| RunError::System { doing, source }
    }
}
