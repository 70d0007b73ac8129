//! Puts running things under a budget by the clock and the freezer, and releases them again: containers of podman and
//! docker, units of systemd, processes. The budget outlives the process that asked for it ([`freezer::process`]); the
//! state to restore is in a file beside the machine's ledger, where missions see it as a neighbour. Cells of missions are
//! created and held elsewhere ([`crate::run`]).

mod apply;
mod back;
mod cpuset;
mod error;
mod escaped;
mod file;
mod group;
mod hold;
mod list;
mod release;
mod thing;
mod threads;
mod tidy;
mod watch;

use freezer::page::memory;
use freezer::process::Place;

pub use error::{Fault, HeldError};
pub use file::PutBack;
pub use hold::{Held, Wanted, hold};
pub use list::{Listing, Seen, SeenHold, list};
pub use release::{Released, release, release_all};
pub(crate) use thing::is_populated;
pub use thing::{Kind, Thing};
pub use watch::watch;

/// The place of the keeper for the things held on this machine, separate from those for the cells of each mission.
fn place() -> Place {
    // This is the program that runs, even if another one has its path by now.
    Place::new(memory().join(crate::names::HELD), "/proc/self/exe")
}

/// Whether this process is root's, which all of this takes.
fn as_root() -> Result<(), HeldError> {
    match crate::ledger::is_root() {
        true => Ok(()),
        false => Err(HeldError::NotRoot),
    }
}
