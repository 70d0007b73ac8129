//! Deadlines of a cell that were not met, round by round: jobs that ended late, and activations that were skipped.

use std::collections::BTreeMap;

use stats::{DEFAULT_CONFIDENCE, Share};

/// The counts of a cell, failed trials included.
#[derive(Default)]
pub(super) struct Deadlines {
    rounds: BTreeMap<u32, Round>,
    /// A part did not record when its jobs ended.
    untold: bool,
}

#[derive(Default)]
struct Round {
    planned: u64,
    late: u64,
    skipped: u64,
}

impl Deadlines {
    /// Adds a part of a round; `late` is `None` if it is unknown how many jobs ended after their deadline.
    pub fn add(&mut self, round: u32, planned: u64, late: Option<u64>, skipped: u64) {
        let round = self.rounds.entry(round).or_default();
        round.planned += planned;
        round.late += late.unwrap_or(0);
        round.skipped += skipped;
        self.untold |= late.is_none();
    }

    /// Jobs that ended after their deadline.
    pub fn late(&self) -> Option<u64> {
        (!self.untold).then(|| self.rounds.values().map(|round| round.late).sum())
    }

    /// Their share of the activations planned.
    pub fn late_share(&self) -> Option<Share> {
        (!self.untold).then(|| self.share(|round| round.late))?
    }

    /// The share of activations planned that were skipped.
    pub fn skipped_share(&self) -> Option<Share> {
        self.share(|round| round.skipped)
    }

    fn share(&self, of: impl Fn(&Round) -> u64) -> Option<Share> {
        let rounds: Vec<(u64, u64)> = (self.rounds.values())
            .map(|round| (of(round), round.planned))
            .collect();
        Share::of_counts(&rounds, DEFAULT_CONFIDENCE)
    }
}
