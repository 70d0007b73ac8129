//! Why a mission cannot be kept running.

use crate::enforce::EnforceError;
use crate::journal::JournalError;
use crate::process::ProcUnreadable;

/// Why a mission cannot be kept running.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The journal cannot be opened or written.
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
        /// The operation.
        doing: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The mission has ended, but its journal does not say so.
    #[error(
        "all cells have ended, but {entries} entries of the journal could not be written: {why}; the next `timecell up` starts \
         from what the journal has"
    )]
    Unwritten {
        /// How many.
        entries: u64,
        /// Why.
        why: String,
    },
    /// Somebody has asked for the end twice, and did not want to wait for steps that hang.
    #[error("{}", not_waited_for(cells, unwritten.as_ref()))]
    NotWaitedFor {
        /// Names of the cells; empty: nothing was being done with any.
        cells: String,
        /// How many entries the journal lacks, and why.
        unwritten: Option<(u64, String)>,
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
            doing: "create a thread that prints",
            source,
        }
    }

    pub(super) fn system(doing: &'static str) -> impl FnOnce(std::io::Error) -> RunError {
        move |source| RunError::System { doing, source }
    }
}

fn not_waited_for(cells: &str, unwritten: Option<&(u64, String)>) -> String {
    let steps = (!cells.is_empty()).then(|| format!("the unfinished work on {cells}"));
    let journal = unwritten
        .map(|(entries, why)| format!("the writing of {entries} entries of the journal ({why})"));
    let what: Vec<String> = steps.into_iter().chain(journal).collect();
    let what = match what.is_empty() {
        true => "the journal".to_owned(),
        false => what.join(" and "),
    };
    format!("did not wait for {what}; the next `timecell up` of this mission clears what is left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_waited_for_is_named_with_what_the_journal_lacks() {
        let said = |cells: &str, unwritten| {
            let cells = cells.to_owned();
            RunError::NotWaitedFor { cells, unwritten }.to_string()
        };
        let lacks = || Some((3, "no space".to_owned()));
        assert!(said("`a`", None).starts_with("did not wait for the unfinished work on `a`; "));
        let both = "did not wait for the unfinished work on `a` and the writing of 3 entries of the journal (no space); ";
        assert!(said("`a`", lacks()).starts_with(both));
        assert!(said("", lacks()).starts_with("did not wait for the writing of 3 entries"));
        assert!(said("", None).starts_with("did not wait for the journal; "));
    }
}
