//! Ranges of addresses.

use std::fmt;

/// Bytes of a page, as the hypervisor maps memory.
pub const PAGE: u64 = 4096;

/// A range of addresses. Prints as its first and last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The first address.
    pub at: u64,
    /// Bytes.
    pub size: u64,
}

impl Span {
    /// A range of `size` bytes from `at` on.
    pub fn new(at: u64, size: u64) -> Span {
        Span { at, size }
    }

    /// The address behind the last one; up to 2^65, so that none wraps around.
    pub(crate) fn end(self) -> u128 {
        u128::from(self.at) + u128::from(self.size)
    }

    /// Whether an address is in both.
    pub fn overlaps(self, other: Span) -> bool {
        self.size > 0
            && other.size > 0
            && u128::from(self.at) < other.end()
            && u128::from(other.at) < self.end()
    }

    /// Whether all of this is in `other`.
    pub fn is_in(self, other: Span) -> bool {
        self.at >= other.at && self.end() <= other.end()
    }

    /// Whether each address of this is in one of `others`.
    pub fn is_covered(self, others: impl Iterator<Item = Span>) -> bool {
        let mut others: Vec<Span> = others.collect();
        others.sort_by_key(|other| other.at);
        let mut next = u128::from(self.at);
        for other in others {
            if u128::from(other.at) <= next {
                next = next.max(other.end());
            }
        }
        next >= self.end()
    }

    /// Whether it begins and ends with a page.
    pub fn is_aligned(self) -> bool {
        self.at.is_multiple_of(PAGE) && self.size.is_multiple_of(PAGE)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.end().saturating_sub(1);
        write!(f, "{:#x} to {last:#x}", self.at)
    }
}
