//! Exit codes, and the errors behind them.

use bench::BenchError;
use guest::GuestError;
use host::fix::FixError;
use model::{InputError, InputErrors};
use record::RecordError;
use supervise::control::{ControlError, Refusal};
use supervise::held::Fault;
use supervise::journal::JournalError;
use supervise::ledger::LedgerError;
use supervise::run::RunError;

/// How a command ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything asked was done.
    Fine,
    /// Done, but trials failed or a question stayed undecided.
    Failed,
    /// Done, but a threshold, goal or guarantee fails.
    VerdictFails,
    /// Refused or labelled, because the machine lacks something that is required.
    Unmet,
    /// The program of `timecell run` ended with this status.
    Program(i32),
}

impl Ended {
    /// The exit code of bad usage and input.
    pub const BAD_INPUT: i32 = 2;

    /// The process's exit code.
    pub fn code(self) -> i32 {
        match self {
            Ended::Fine => 0,
            Ended::Failed => 1,
            Ended::VerdictFails => 3,
            Ended::Unmet => 4,
            Ended::Program(status) => status,
        }
    }
}

/// Why a command failed; prints as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Bad usage or input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Bad input, with all its errors.
    #[error(transparent)]
    Inputs(#[from] InputErrors),
    /// A record could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A measurement failed or was refused.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A mission could not be kept running.
    #[error(transparent)]
    Run(#[from] supervise::run::RunError),
    /// The machine's ledger could not be used, or a mission's name is taken.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Something that runs could not be held or released.
    #[error(transparent)]
    Held(#[from] supervise::held::HeldError),
    /// A running mission could not be controlled.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The machine could not be changed or put back.
    #[error(transparent)]
    Fix(#[from] FixError),
    /// Something that runs relies on the machine as it is.
    #[error("{who} {why} (nothing was changed)")]
    InUse {
        /// The thing that relies on it.
        who: String,
        /// Why, and the remedy.
        why: &'static str,
    },
    /// A guest could not be made, started or asked.
    #[error(transparent)]
    Guest(#[from] guest::GuestError),
    /// A file could not be read or written.
    #[error("{}: cannot {doing}: {source}", path.display())]
    File {
        /// File or directory.
        path: std::path::PathBuf,
        /// The attempted operation.
        doing: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl CommandError {
    /// The process's exit code.
    pub fn code(&self) -> i32 {
        match self {
            CommandError::Input(_)
            | CommandError::Inputs(_)
            | CommandError::Fix(FixError::BadUndo { .. })
            | CommandError::Bench(BenchError::Input(_) | BenchError::Inputs(_)) => Ended::BAD_INPUT,
            CommandError::Record(error)
            | CommandError::Bench(
                BenchError::Record(error) | BenchError::Unwritten { source: error, .. },
            ) => record_code(error),
            CommandError::Bench(BenchError::Unmet(_))
            | CommandError::InUse { .. }
            | CommandError::Fix(FixError::NotRoot | FixError::ReadOnly { .. })
            | CommandError::Ledger(LedgerError::InTheWay { .. }) => 4,
            CommandError::Control(error) => control_code(error),
            CommandError::Guest(GuestError::Input(_) | GuestError::Inputs(_)) => Ended::BAD_INPUT,
            CommandError::Guest(GuestError::Unmet { .. } | GuestError::Ssh { .. }) => 4,
            CommandError::Held(error) => match error.fault() {
                Fault::Input => Ended::BAD_INPUT,
                Fault::NotGuaranteed => 3,
                Fault::Unmet => 4,
                Fault::Failed => 1,
            },
            // The same code as from every other command for such a directory.
            CommandError::Run(RunError::Journal(JournalError::Foreign(_))) => 4,
            CommandError::Bench(_)
            | CommandError::Run(_)
            | CommandError::Ledger(_)
            | CommandError::Guest(_)
            | CommandError::Fix(FixError::NoUndo { .. })
            | CommandError::File { .. } => 1,
        }
    }
}

/// A wrong name is bad input; that there is no supervisor to answer, or no permission to ask it, is an unmet requirement.
fn control_code(error: &ControlError) -> i32 {
    match error {
        ControlError::NoMission { .. }
        | ControlError::UnknownMission { .. }
        | ControlError::Several { .. } => 2,
        ControlError::NoneRuns { .. }
        | ControlError::NothingIsUp { .. }
        | ControlError::NobodyListens { .. }
        | ControlError::NoPermission { .. }
        | ControlError::Foreign(_)
        | ControlError::ForeignServer { .. } => 4,
        ControlError::Refused { kind, .. } => match kind {
            Refusal::UnknownCell | Refusal::BadFile => 2,
            Refusal::NotAdmitted => 3,
            Refusal::NotAllowed => 4,
            Refusal::BadRequest | Refusal::Busy | Refusal::NotPossible => 1,
        },
        ControlError::Ended | ControlError::NotUnderstood { .. } | ControlError::System { .. } => 1,
    }
}

/// A run that is not one, is cut short or newer, or cannot be written where asked, is bad input; a disk that fills up is a
/// failure.
fn record_code(error: &RecordError) -> i32 {
    match error {
        RecordError::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::PermissionDenied
            | std::io::ErrorKind::NotFound
            | std::io::ErrorKind::NotADirectory
            | std::io::ErrorKind::AlreadyExists
            | std::io::ErrorKind::ReadOnlyFilesystem => 2,
            _ => 1,
        },
        _ => 2,
    }
}
