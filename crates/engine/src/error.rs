//! Why a cell could not be made or removed.

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
