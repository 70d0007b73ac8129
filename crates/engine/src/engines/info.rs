//! This crate's knowledge about an engine: one static description for each, from which everything else in the crate follows.

use std::path::PathBuf;
use std::process::Command;

use super::calls::Calls;
use crate::app::engine::Apps;
use crate::error::Result;
use crate::made::Wipe;
use crate::{CellSpec, Engine, programs};

/// The user's choices about engines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The user who runs rootless cells; `None`: see [`crate::users::choose`].
    pub rootless_user: Option<String>,
}

/// An engine: how it makes cells that measure, and its other abilities. Facts known without running anything are in [`model::EngineKind`].
pub(crate) struct Info {
    /// The engine itself.
    pub(crate) engine: fn(&Options) -> Box<dyn Engine>,
    /// The installed programs that it consists of besides ours.
    pub(crate) programs: fn() -> Vec<PathBuf>,
    /// Removes its own state of any cell.
    pub(crate) wipe: Wipe,
    /// Of OCI runtimes: the command that makes a cell from its bundle, starts it, waits for its end and deletes it.
    pub(crate) run: Option<Commands<Command>>,
    /// Of those that have it: the same in three steps.
    pub(crate) steps: Option<Commands<Steps>>,
    /// Of container managers: a container by one call, as people use them.
    pub(crate) calls: Option<&'static dyn Calls>,
    /// Cells that run applications.
    pub(crate) apps: Option<&'static dyn Apps>,
}

/// Makes commands for a cell whose bundle has been written.
pub(crate) type Commands<T> = fn(&CellSpec) -> Result<T>;

/// [`crate::run_command`] in the runtime's three steps.
pub struct Steps {
    /// Makes the container; its payload waits.
    pub create: Command,
    /// Starts the payload.
    pub start: Command,
    /// Removes the container once its payload has ended.
    pub delete: Command,
}

/// Those of these programs that are installed.
pub(crate) fn installed(names: &[&str]) -> Vec<PathBuf> {
    names
        .iter()
        .filter_map(|name| programs::find(name))
        .collect()
}
