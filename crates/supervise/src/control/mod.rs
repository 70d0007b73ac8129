//! Control of a running mission from other processes: the protocol, who may speak it, the socket's two ends, and what is answered.
//! Carrying out what is asked is [`crate::run`]'s.
//!
//! **Form.** A stream socket `control` in the mission's directory. One JSON object a line, a [`Request`] from the client and then one or
//! more [`Answer`]s; the version stands in each. A request has at most [`MOST_REQUEST_BYTES`]. The next one may follow after
//! the last answer to the one before.
//!
//! **Who.** The socket's mode is 0600, and the kernel is asked for the user at the other end (`SO_PEERCRED`, unix(7)): root and the
//! supervisor's own user. Anyone else is told so.
//!
//! **A bad client harms nobody.** The supervisor never waits for one: whoever does not read his answer is not read from, one who
//! falls behind a subscription is told from where on to read the journal, and there are [`MOST_CLIENTS`] at most, of whom the one
//! that has asked for nothing for the longest time makes room.

mod client;
mod error;
mod find;
mod happening;
mod line;
mod message;
mod metrics;
mod orphaned;
mod outside;
mod peer;
mod server;
mod socket;
mod status;
#[cfg(test)]
mod tests;

pub use client::{Client, Follow};
pub use error::ControlError;
pub use find::{Place, base_dir, called, find, places};
pub use happening::{Happening, history};
pub use line::{LineBuffer, TooLong};
pub(crate) use message::check_window;
pub use message::{
    Answer, Ask, CellDone, CellUpdate, Change, MOST_REQUEST_BYTES, Refusal, Request, Say, Updated,
    VERSION,
};
pub use metrics::prometheus;
pub use orphaned::{Orphaned, orphaned};
pub use outside::from_journal;
pub(crate) use outside::state;
pub use server::MOST_CLIENTS;
pub(crate) use server::Server;
pub(crate) use socket::remove as remove_socket;
pub use status::{
    CellState, CellStatus, LastEnd, LimitStatus, SCHEMA, Status, SupervisorStatus, TaskStatus,
};
