//! Keeping an admitted mission running: cells are made in the order of their dependencies, held by their enforcers before
//! their first instruction, watched, restarted by their policies, and ended together. One process, one thread that sleeps until
//! a cell ends, a wait is over or somebody asks for something. Everything that must survive it is in the journal before it
//! takes effect; a supervisor that was killed finds its cells again by it and takes them over as they run.

mod cell;
mod error;
mod event;
mod health;
mod keeper;
mod modes;
mod notifiers;
mod spec;
mod tend;
mod wake;
mod watch;

pub use error::RunError;
pub use event::Event;
pub use keeper::{Asked, Keeper, Options};
pub use wake::Signals;
