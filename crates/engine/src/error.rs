//! Why a cell could not be made or removed.

use std::fmt::Write;

use model::EngineKind;

/// Why an engine could not make, or not remove, a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{engine}: cannot {doing}: {cause}")]
pub struct EngineError {
    /// The engine.
    pub engine: EngineKind,
    /// What was attempted, such as `start the cell`.
    pub doing: String,
    /// The cause, in the engine's own words where it gave some.
    pub cause: String,
}

/// An error with its causes, each once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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
