//! A supervisor's record: the entries of its journal, and the state that they add up to. [`replay`] is pure; whether a
//! process of the state still runs is asked of the machine afterwards ([`crate::process::Process::still_runs`]).
//!
//! **Which entry is written when.** Before the supervisor acts, it writes down that it is about to: a cell that is being
//! created when the supervisor is killed is then known, and looked for. After it has acted, it writes down the result.
//! An entry that has to be true after a power cut is durable before anything is done about it: an admission, an update,
//! a cell that is not to run. Processes do not outlive a power cut, so entries on them need to outlive the supervisor
//! only.

mod entry;
mod limit;
mod replay;
#[cfg(test)]
mod tests;

pub use entry::{Enforced, Entry, Hold, Mode, Record, Started, Text};
pub use limit::Limit;
pub use replay::{Cell, Instance, State, Supervisor, Update, replay};
