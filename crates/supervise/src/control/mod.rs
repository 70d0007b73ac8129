//! Control of a running mission from other processes: the protocol, its permitted users, the socket's two ends, and the
//! answers. [`crate::run`] carries out the requests.
//!
//! **Form.** A stream socket `control` in the mission's directory. One JSON object per line: a [`Request`] from the
//! client, then one or more [`Answer`]s, each with the version. A request has at most [`MOST_REQUEST_BYTES`]. The next
//! one may follow after the last answer to the one before.
//!
//! **Users.** The socket's mode is 0600, and the kernel is asked for the user at the other end (`SO_PEERCRED`, unix(7)):
//! root and the supervisor's own user are served, anyone else is refused.
//!
//! **A bad client harms nobody.** The supervisor never waits for one: a client that does not read its answers is not read
//! from, one that falls behind a subscription is told from where on to read the journal, and there are at most
//! [`MOST_CLIENTS`], of which the one that has been silent for the longest time makes room.

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
pub(crate) use happening::{bound_in_force, bound_withdrawn};
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
    BoundStatus, CellState, CellStatus, LastEnd, LimitStatus, Responses, SCHEMA, Status,
    SupervisorStatus, TaskStatus, Total,
};
