//! Keeps an admitted mission running: cells are created in the order of their dependencies, held by their enforcers
//! before their first instruction, watched, restarted by their policies, and ended together. One thread sleeps until a
//! cell ends, a wait is over or a request comes in, and waits for nothing else: slow work (creating and removing cells,
//! keeping their output) is done on other threads, and delays at most the cell concerned. Everything that must survive
//! the supervisor is in the journal before it takes effect; after a supervisor was killed, the next one finds its cells
//! by the journal and adopts them as they run. The state of each version of a cell is one value, and the effects of an
//! event are decided without touching anything.

mod ample;
mod assume;
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
mod options;
mod orphans;
mod others;
mod output;
mod phase;
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
mod version;
mod wake;
mod waker;
mod watch;
mod work;

pub use crate::dirs::{dir_of_one, is_of_one};
pub use error::RunError;
pub use event::{Event, Used};
pub use notify::Notify;
pub use options::{Asked, Options, OutputTo};
pub use orphans::{OrphansError, end_orphans};
pub use plan::{Inputs, Plan};
pub use session::{LastAdmitted, keep, last_admitted};
pub use wake::Signals;
