//! What all supervisors and measurements of one machine tell each other, below `/run/timecell`: which mission's name is in use.
//! It survives whoever wrote it and goes with the reboot, as all that it tells of does.

mod alive;
mod error;
mod name;

use std::path::{Path, PathBuf};

pub use error::LedgerError;
pub use name::NameLock;

/// The ledger of a machine.
#[derive(Debug, Clone)]
pub struct Ledger {
    dir: PathBuf,
}

impl Default for Ledger {
    /// That of this machine, `/run/timecell`. Everybody may read it; only root writes it.
    fn default() -> Ledger {
        Ledger {
            dir: PathBuf::from("/run/timecell"),
        }
    }
}

impl Ledger {
    /// Takes the name of a mission whose directory is `dir`, an absolute path, for as long as the answer lives.
    ///
    /// # Errors
    /// When another supervisor has it, or cells of that name that were started from another directory still run.
    pub fn name(&self, mission: &str, dir: &Path) -> Result<NameLock, LedgerError> {
        NameLock::take(&self.dir, mission, dir)
    }
}

/// Whether this process is root's.
fn is_root() -> bool {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() == 0 }
}
