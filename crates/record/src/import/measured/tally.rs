//! Counts of values that come one by one, in memory that grows with the different values and not with their number.

/// Values that wait to be sorted in.
const WAITING: usize = 65_536;

/// How often each value occurred.
#[derive(Debug, Default)]
pub(super) struct Tally {
    waiting: Vec<i64>,
    /// Ascending, no value twice.
    counts: Vec<(i64, u64)>,
}

impl Tally {
    /// Counts a value.
    pub fn add(&mut self, value: i64) {
        self.waiting.push(value);
        if self.waiting.len() >= WAITING.max(self.counts.len() / 4) {
            self.sort_in();
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.counts.is_empty()
    }

    /// The counts, ascending by value.
    pub fn finish(mut self) -> Vec<(i64, u64)> {
        self.sort_in();
        self.counts
    }

    fn sort_in(&mut self) {
        self.waiting.sort_unstable();
        // Counts what is known already first, so that only new values make the table longer.
        let mut new: Vec<(i64, u64)> = Vec::new();
        let mut at = 0;
        for value in self.waiting.drain(..) {
            while self.counts.get(at).is_some_and(|known| known.0 < value) {
                at += 1;
            }
            match (self.counts.get_mut(at), new.last_mut()) {
                (Some(known), _) if known.0 == value => known.1 += 1,
                (_, Some(last)) if last.0 == value => last.1 += 1,
                _ => new.push((value, 1)),
            }
        }
        if !new.is_empty() {
            self.counts.reserve_exact(new.len());
            self.counts.append(&mut new);
            self.counts.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_as_a_map_does(values in prop::collection::vec(-300i64..300, 0..2_000), every in 1usize..50) {
            let mut tally = Tally::default();
            let mut map = std::collections::BTreeMap::<i64, u64>::new();
            for (at, value) in values.into_iter().enumerate() {
                *map.entry(value).or_default() += 1;
                tally.add(value);
                if at % every == 0 {
                    tally.sort_in();
                }
            }
            prop_assert_eq!(tally.finish(), map.into_iter().collect::<Vec<_>>());
        }
    }
}
