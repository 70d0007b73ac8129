//! Names of tasks as they stand in the page.

use core::fmt;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::layout::{Identity, NAME_BYTES};

/// Name of a task as in the page. Prints without terminal control characters.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; NAME_BYTES],
    length: usize,
}

impl Name {
    pub(crate) fn of(identity: &Identity) -> Name {
        let mut bytes = [0; NAME_BYTES];
        for (to, from) in bytes.iter_mut().zip(&identity.name) {
            *to = from.load(Relaxed);
        }
        let length = identity.name_bytes.load(Relaxed) as usize;
        Name {
            bytes,
            length: length.min(NAME_BYTES),
        }
    }

    /// Whether a task may have this name: 1 to 256 bytes without control characters.
    pub fn is_good(name: &str) -> bool {
        (1..=NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
    }

    /// The bytes, which are UTF-8 unless the page is damaged.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

pub(crate) fn write(identity: &Identity, name: &str) {
    for (to, from) in identity.name.iter().zip(name.bytes()) {
        to.store(from, Relaxed);
    }
    let length = name.len().min(NAME_BYTES);
    #[allow(clippy::cast_possible_truncation)]
    identity.name_bytes.store(length as u32, Release);
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.as_bytes().utf8_chunks() {
            for shown in chunk.valid().chars() {
                let shown = if shown.is_control() { '?' } else { shown };
                fmt::Write::write_char(f, shown)?;
            }
            if !chunk.invalid().is_empty() {
                f.write_str("?")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}
