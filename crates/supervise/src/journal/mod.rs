//! An append-only journal that survives `kill -9` and power loss: acknowledged entries are there again, and others are
//! dropped whole. The meaning of its entries is in [`crate::state`].
//!
//! **Form.** A directory with the file `journal`, one line for each entry:
//!
//! ```text
//! 212cfd10 63 42 {"at":{"monotonic_ns":1,"wall_unix_ns":2},"entry":"clean_down"}
//! ```
//!
//! CRC-32C in hexadecimal of everything between it and the end of the line; length of the JSON in bytes; sequence number;
//! JSON. The first line is the [`Header`]. Lines of text rather than a binary framing, because one reads the journal
//! after an accident, with `less` and `grep` on a board that has nothing else, and a few dozen entries an hour need
//! no compactness. JSON escapes every newline, so that reading continues at the next line after damage. The sequence
//! number never goes back, even over compactions, so that a lost or repeated line is noticed.
//!
//! **Losses.** An entry is one `write`, followed by `fdatasync` where its [`Durability`] asks for it: a killed
//! supervisor loses no entry that [`Journal::append`] has returned for, and a power cut none that is
//! [`Durability::Durable`]. A tail that was not written whole is cut off by the next [`Journal::open`], and reported
//! ([`Dropped`]). Damage before the tail is skipped line by line and reported, and the damaged file is kept as
//! `journal.damaged`.
//!
//! **Size.** [`Journal::compact`] writes a new file and renames it over the old one, which stays as `journal.old`; at
//! every instant there is one whole `journal`. Room for further entries is kept ahead of its end ([`RESERVE_BYTES`]), so
//! that a full disk still takes them; entries beyond that are kept in memory ([`Writer`]). A lock (`flock` of the file
//! `lock`, gone with its process) keeps a second supervisor out.

mod error;
mod file;
mod frame;
mod load;
mod lock;
mod reserve;
#[cfg(test)]
mod tests;
mod writer;

pub use error::JournalError;
pub use file::{Journal, read};
pub use load::{Dropped, Header, Loaded, Why, load};
pub use reserve::RESERVE_BYTES;
pub use writer::{Left, Told, Writer, Written};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An entry of a journal.
pub trait Entry: Serialize + DeserializeOwned {
    /// The subject of the entries, such as `mission`; a journal of another kind is not opened.
    const KIND: &'static str;
    /// Version of the entries; a journal of a later version is not opened.
    const VERSION: u32;

    /// The failures that the entry has to survive.
    fn durability(&self) -> Durability;
}

/// The failures that an entry has to survive once it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The supervisor's end: the kernel has it. A power cut may lose it, within the time that the file system waits.
    Process,
    /// A power cut: the disk has confirmed it.
    Durable,
}
