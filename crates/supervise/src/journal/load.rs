//! Parses a journal file: pure, so that every kind of damage can be tested.

use serde::{Deserialize, Serialize};

use super::Entry;
use super::frame::{self, Content};

/// Version of the form of a journal.
pub(super) const FORM: u32 = 1;

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the form: 1.
    pub timecell_journal: u32,
    /// [`Entry::KIND`] of the entries.
    pub kind: String,
    /// [`Entry::VERSION`] of the entries.
    pub version: u32,
}

impl Header {
    pub(super) fn of<E: Entry>() -> Header {
        Header {
            timecell_journal: FORM,
            kind: E::KIND.to_owned(),
            version: E::VERSION,
        }
    }
}

/// The contents of a journal.
#[derive(Debug, PartialEq, Eq)]
pub struct Loaded<E> {
    /// Its header; `None`: it is empty, or the header is damaged.
    pub header: Option<Header>,
    /// Its entries that are whole, in order, with their sequence numbers, which ascend.
    pub entries: Vec<(u64, E)>,
    /// The parts that could not be read, in order.
    pub dropped: Vec<Dropped>,
    /// Where the last whole line ends.
    pub whole_bytes: usize,
    /// Sequence number of the last whole line.
    pub last_sequence: Option<u64>,
}

/// A part of a journal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Where it begins.
    pub at_byte: usize,
    /// How long it is; 0 for entries that are not there at all.
    pub bytes: usize,
    /// The fault of its first line.
    pub why: Why,
}

/// The fault of a line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The file ends within it.
    #[error("it was not written completely")]
    CutOff,
    /// It does not look like a journal line.
    #[error("it is not a journal line")]
    NotALine,
    /// Its checksum differs.
    #[error("its checksum is wrong")]
    Checksum,
    /// It is not as long as it says.
    #[error("its length is wrong")]
    Length,
    /// Its sequence number was used before.
    #[error("entry {found} comes after entry {last}")]
    Repeated {
        /// Its number.
        found: u64,
        /// The number before.
        last: u64,
    },
    /// Lines are missing before it.
    #[error("entries {from} to {to} are missing")]
    Missing {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// It is whole but not known to this version.
    #[error("entry {sequence} is not understood: {reason}")]
    NotUnderstood {
        /// Its number.
        sequence: u64,
        /// The JSON reader's error.
        reason: String,
    },
}

/// `bytes 120 to 180 of the journal dropped: its checksum is wrong`.
impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Dropped {
            at_byte,
            bytes,
            why,
        } = self;
        if *bytes == 0 {
            return write!(f, "at byte {at_byte} of the journal: {why}");
        }
        let end = at_byte + bytes - 1;
        write!(f, "bytes {at_byte} to {end} of the journal dropped: {why}")
    }
}

impl<E> Loaded<E> {
    /// Whether the only fault is a tail that was not written whole, as a killed writer or a power cut leaves it.
    pub fn only_its_tail_is_torn(&self) -> bool {
        matches!(self.dropped.as_slice(), [tail] if tail.at_byte == self.whole_bytes && tail.bytes > 0)
    }

    fn drop(&mut self, dropped: Dropped) {
        // Damage next to damage is one.
        if let Some(last) = self.dropped.last_mut()
            && last.at_byte + last.bytes == dropped.at_byte
            && last.bytes > 0
            && dropped.bytes > 0
        {
            last.bytes += dropped.bytes;
            return;
        }
        self.dropped.push(dropped);
    }
}

/// Reads a journal. Never fails: parts that are not whole are dropped and reported.
pub fn load<E: Entry>(bytes: &[u8]) -> Loaded<E> {
    let mut loaded = Loaded {
        header: None,
        entries: Vec::new(),
        dropped: Vec::new(),
        whole_bytes: 0,
        last_sequence: None,
    };
    for line in frame::lines(bytes) {
        let range = line.range;
        match line
            .content
            .and_then(|content| take(&mut loaded, range.start, content))
        {
            Ok(()) => loaded.whole_bytes = range.end,
            Err(why) => loaded.drop(Dropped {
                at_byte: range.start,
                bytes: range.len(),
                why,
            }),
        }
    }
    loaded
}

fn take<E: Entry>(loaded: &mut Loaded<E>, at_byte: usize, content: Content) -> Result<(), Why> {
    let Content { sequence, json } = content;
    if let Some(last) = loaded.last_sequence {
        if sequence <= last {
            let found = sequence;
            return Err(Why::Repeated { found, last });
        }
        if sequence - last > 1 {
            let (from, to) = (last + 1, sequence - 1);
            loaded.drop(Dropped {
                at_byte,
                bytes: 0,
                why: Why::Missing { from, to },
            });
        }
    }
    if at_byte == 0 {
        loaded.header = serde_json::from_str(json).ok();
        if loaded.header.is_some() {
            loaded.last_sequence = Some(sequence);
            return Ok(());
        }
    }
    let entry = serde_json::from_str(json).map_err(|error| Why::NotUnderstood {
        sequence,
        reason: error.to_string(),
    });
    loaded.last_sequence = Some(sequence);
    loaded.entries.push((sequence, entry?));
    Ok(())
}
