//! Keeping an admitted mission running: cells are made in the order of their dependencies, held by their enforcers before
//! their first instruction, watched, restarted by their policies, and ended together. One thread sleeps until
//! a cell ends, a wait is over or somebody asks for something, and waits for nothing else: what may take long (making and
//! removing cells, keeping their output) is done on others, and costs at most the cell whose doing it is. Everything that must survive it is in the journal before it
//! takes effect; a supervisor that was killed finds its cells again by it and takes them over as they run.

mod ample;
mod away;
mod ballast;
mod beside;
mod best_effort;
mod by_hand;
mod carried;
mod cell;
mod desk;
mod error;
mod event;
mod fit;
mod health;
mod keeper;
mod lives;
mod making;
mod modes;
mod notifiers;
mod notify;
mod orphans;
mod output;
mod plan;
mod protect;
mod session;
mod sources;
mod spec;
mod status;
mod tend;
#[cfg(test)]
mod tests;
mod update;
mod wake;
mod watch;
mod work;

use std::path::{Path, PathBuf};

pub(crate) use cell::work_dir;
use keeper::Keeper;

pub use error::RunError;
pub use event::{Event, Used};
pub use keeper::{Asked, Options, OutputTo};
pub use notify::Notify;
pub use orphans::{OrphansError, end_orphans};
pub use plan::{Inputs, Plan};
pub use session::{LastAdmitted, keep, last_admitted};
pub use wake::Signals;

/// The directory of a mission of one program that nobody has written down: in memory, and entered by whoever knows a name in it, as the
/// program does that reports to its page.
pub fn dir_of_one(name: &str) -> PathBuf {
    place_of_ones().join(name)
}

/// Where the directories of all those missions are.
pub(crate) fn place_of_ones() -> PathBuf {
    Path::new(crate::lock::PLACE).join("run")
}

/// Whether this is such a directory.
pub fn is_of_one(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| dir == dir_of_one(name))
}
