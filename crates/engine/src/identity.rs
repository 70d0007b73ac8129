//! The facts known of every cell: enough to find and remove all of it.

use std::path::{Path, PathBuf};

use model::EngineKind;
use serde::{Deserialize, Serialize};

use crate::{CellSpec, User};

/// The facts known of a cell of any kind: enough to find all of it and to remove it.
pub(crate) trait Identity {
    /// Name, unique on the machine.
    fn id(&self) -> &str;
    /// The engine that makes the cell.
    fn engine(&self) -> EngineKind;
    /// Its private directory.
    fn work_dir(&self) -> &Path;
    /// The user who runs it without root's powers.
    fn user(&self) -> Option<&User>;
}

impl Identity for CellSpec {
    fn id(&self) -> &str {
        &self.id
    }

    fn engine(&self) -> EngineKind {
        self.engine
    }

    fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }
}

/// The part of a cell's note that every kind of cell has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) id: String,
    pub(crate) engine: EngineKind,
    pub(crate) work_dir: PathBuf,
    #[serde(default)]
    pub(crate) user: Option<User>,
}

impl Identity for Noted {
    fn id(&self) -> &str {
        &self.id
    }

    fn engine(&self) -> EngineKind {
        self.engine
    }

    fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }
}
