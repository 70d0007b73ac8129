//! The keeper as a separate process, which outlives the process that asked for it, and the processes that watch it. Here
//! live the processes, the commands that they take and the calls by which a program has groups held ([`Place`]). A
//! keeper's work on a group is in [`crate::keeper`], its legacy to its successor in [`crate::page`].
//!
//! Three processes of one program:
//!
//! - The **keeper** has one enforcing thread for each cpu with groups, and a commander that takes commands from a socket.
//! - The **watcher** waits for the keeper's end (a descriptor of the process) and for broken promises: every enforcing
//!   thread says on the page by when it will be back. A keeper that is stopped counts as dead and is killed. The watcher
//!   has the groups open and a thread for each cpu waiting; it becomes the keeper, and starts a watcher.
//! - The **heir** waits for the lock that keeper and watcher share, which the kernel releases when both are gone. It
//!   freezes all groups, starts a keeper, which gives those that have a budget their turn, and waits again.
//!
//! The keeper in turn watches its watcher, and starts another heir when there is none. If all three are killed at once,
//! frozen groups stay frozen and the others run without a budget until somebody calls [`Place::adopt`] or gives any
//! command.
//!
//! **Commands come through a socket** in the place's directory, not through the page. That leaves each part of the page
//! with one writer, which its correctness rests on; a refusal can say why; a program that knows the directory needs
//! nothing else, such as a supervisor that was killed and started again; and a listening socket is inherited, so a client
//! that connects while the keeper is being replaced waits for an answer instead of being turned away.

mod client;
mod common;
mod crew;
mod ended;
mod handed;
mod heir;
mod keep;
mod peer;
mod refusal;
mod setup;
mod unheld;
mod watch;
mod wire;

use std::path::Path;

pub use client::{Place, PlaceError};
use common::say;
pub use common::{HIGHEST_HELD, WATCHER, WORD};
pub use ended::{is_holder, reap_ended_holders};
use handed::Handed;
pub use wire::KeeperRefusal;

/// Runs one of the processes, by the words that follow [`WORD`] on its command line; returns its exit code. A program
/// that uses [`Place`] has to call this first, before doing anything else. The heir, which seldom has anything to do, also calls
/// `beside` with the place's directory, on a thread of its own: for checks that a program wants while groups are held. It is
/// called with the heir's real-time class, and ends with the heir, after which the next one calls it again.
pub fn inside(words: &[String], beside: fn(&Path)) -> i32 {
    let done = match words {
        [role, dir] if role == "keeper" => keep::begin(Path::new(dir)),
        [role, dir, lock] if role == "keeper" => match lock.parse() {
            Ok(lock) => keep::inherit(Path::new(dir), lock),
            Err(_) => return BAD_WORDS,
        },
        [role, dir, files @ ..] if role == "watcher" => match Handed::from_words(files) {
            Some(handed) => watch::run(Path::new(dir), handed),
            None => return BAD_WORDS,
        },
        [role, dir] if role == "heir" => heir::run(Path::new(dir), beside),
        _ => return BAD_WORDS,
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            say(&error);
            1
        }
    }
}

const BAD_WORDS: i32 = 2;
