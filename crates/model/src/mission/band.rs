//! The priorities that a cell's threads may have.

use std::fmt;

use super::Limits;
use crate::file::{Kind, table};

const PRIORITY: Kind = Kind::Integer {
    least: *Limits::PRIORITY.start(),
    most: *Limits::PRIORITY.end(),
};

table! {
    /// A band of SCHED_FIFO priorities; a larger number is more urgent.
    ///
    /// Both ends are included.
    pub struct Band(Copy, Hash): "priorities", "`priorities`" {
        /// the lowest of them; 98 only if the class of `supervisor` is `other`
        lowest: u8 = PRIORITY, Required "40";
        /// the highest of them; 98 only if the class of `supervisor` is `other`
        ///
        /// At least `lowest`.
        highest: u8 = PRIORITY, Required "49";
    }
}

impl Band {
    /// Whether the two bands overlap.
    pub const fn overlaps(self, other: Band) -> bool {
        self.lowest <= other.highest && other.lowest <= self.highest
    }

    /// How many priorities it has.
    pub fn count(self) -> usize {
        usize::from(self.highest.saturating_sub(self.lowest)) + 1
    }

    /// Whether this priority is in it.
    pub fn holds(self, priority: i64) -> bool {
        (i64::from(self.lowest)..=i64::from(self.highest)).contains(&priority)
    }
}

/// `40 to 49`, or `40` where it has one priority.
impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lowest == self.highest {
            write!(f, "{}", self.lowest)
        } else {
            write!(f, "{} to {}", self.lowest, self.highest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_that_share_a_priority_overlap() {
        let band = |lowest, highest| Band { lowest, highest };
        assert!(band(10, 20).overlaps(band(20, 30)));
        assert!(band(10, 20).overlaps(band(12, 13)));
        assert!(!band(10, 19).overlaps(band(20, 30)));
        assert!(band(10, 19).holds(10) && !band(10, 19).holds(20));
    }
}
