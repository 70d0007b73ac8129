//! Other machines on which timecell carries out orders: reached by OpenSSH's client or a serial console ([`target`], [`link`]), brought
//! this very program once ([`bring`]), and given orders in the frames of the channel ([`message`]). There, a server answers
//! ([`serve`]) and a keeper carries out the order, whether anybody is connected or not ([`keep`]). Here, [`carry`] goes on where a
//! lost link has left off. The meaning of an order is the caller's business.

mod bring;
mod carry;
mod hearing;
mod keep;
mod link;
mod message;
mod place;
mod serve;
mod target;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::GuestError;
pub use carry::{Job, Remote, Watch};
pub use link::Reach;
pub use target::Target;

/// Unpacks the results of an order into a directory that is there.
///
/// # Errors
/// Those of the disk.
pub fn unpack(archive: File, into: &Path) -> Result<(), GuestError> {
    crate::tree::unpack(BufReader::new(archive), into)
        .map_err(GuestError::file(into, "unpack the results"))
}

/// The first word of the hidden command.
pub const WORD: &str = "remote";

/// Runs a process on the other machine; returns its exit code.
pub fn inside(words: &[String]) -> i32 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", dir] => serve::run(dir.as_ref()),
        ["keep", dir] => keep::run(dir.as_ref()),
        _ => 2,
    }
}
