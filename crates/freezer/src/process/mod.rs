//! The keeper as a process of its own, which outlives whoever asked for it, and those that watch it. Here live the processes, the commands
//! that they take and the calls by which a program has groups held ([`Place`]). What a keeper does with a group is in
//! [`crate::keeper`], what it leaves for the next one in [`crate::page`].
//!
//! Three processes of one program:
//!
//! - The **keeper** has one enforcing thread for each cpu with groups, and a commander that takes commands from a socket.
//! - The **watcher** waits for the keeper's end (a descriptor of the process) and for promises that it breaks: every enforcing thread says on the
//!   page until when it will be back. A keeper that is stopped is dead too: it is killed. The watcher has the groups open and a thread
//!   for each cpu waiting, becomes the keeper, and starts a watcher.
//! - The **heir** waits for the lock that keeper and watcher have in common, which the kernel lets go of when both are gone. It freezes
//!   all groups, starts a keeper, which gives those that have a budget their turn, and waits again.
//!
//! The keeper watches its watcher as it is watched, and starts another heir when there is none. Where all three are killed in one
//! instant, groups that are frozen stay so, and those that are not run without a budget until somebody calls [`Place::adopt`] or gives any
//! command.
//!
//! **Commands come through a socket** in the place's directory, not through the page: the page then has one writer to each part, which
//! is what its argument rests on; a refusal can say why; a program that knows the directory needs nothing else, such as a
//! supervisor that was killed and started again; and a listening socket is inherited, so who connects while the keeper is
//! replaced waits for an answer instead of being turned away.

mod client;
mod common;
mod crew;
mod ended;
mod handed;
mod heir;
mod keep;
mod peer;
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

/// One of the processes, by the words that follow [`WORD`] on its command line; what it exits with. The program that calls
/// [`Place`] has to call this first, with nothing done before.
pub fn inside(words: &[String]) -> i32 {
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
        [role, dir] if role == "heir" => heir::run(Path::new(dir)),
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
