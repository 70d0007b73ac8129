//! Counts of values in bounded memory. They are exact until all series together hold [`MOST`] different values; from there
//! on those that take more than their share are put into bins as wide as a small part of the value, as HdrHistogram's are.

use std::cell::Cell;

use super::{Distribution, scaled};

/// Minimum number of values that wait to be sorted in.
const WAITING: usize = 1_024;
/// Maximum number of different values that are kept exactly, over all series: 8 MiB.
const MOST: usize = 1 << 19;
/// Binary digits after the first that bins keep to begin with: a bin is at most a 1,024th of its values wide.
const BITS: u32 = 10;
/// The minimum that they keep, if thousands of series share the room.
const FEWEST_BITS: u32 = 4;

thread_local! {
    /// Entries and series of all tallies of this thread, that is, of one import: parsers create tallies without a context.
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// How often each value occurred.
#[derive(Debug, Default)]
pub(super) struct Tally {
    waiting: Vec<(i64, u64)>,
    /// Ascending, no value twice; upper ends of bins where there are bins.
    counts: Vec<(i64, u64)>,
    /// Digits that bins keep; `None` while every value stands for itself.
    bits: Option<u32>,
    /// Smallest value.
    least: i64,
    /// Largest value, and how often it occurred.
    most: Option<(i64, u64)>,
    /// Entries of it in [`HELD`].
    held: usize,
}

impl Tally {
    /// Counts a value.
    pub fn add(&mut self, value: i64) {
        self.add_times(value, 1);
    }

    /// Counts a value that occurred `times` times.
    pub fn add_times(&mut self, value: i64, times: u64) {
        if times == 0 {
            return;
        }
        self.most = match self.most {
            None => {
                self.least = value;
                Some((value, times))
            }
            Some((most, _)) if value > most => Some((value, times)),
            Some((most, n)) if value == most => Some((most, n.saturating_add(times))),
            known => known,
        };
        self.least = self.least.min(value);
        let value = self.bits.map_or(value, |bits| upper(value, bits));
        self.waiting.push((value, times));
        if self.waiting.len() >= WAITING.max(self.counts.len() / 4) {
            self.sort_in();
        }
    }

    /// Moves the counts to a distribution, of values in ns. The extremes stay exact.
    pub fn fill(mut self, d: &mut Distribution) {
        self.sort_in();
        d.counts = std::mem::take(&mut self.counts);
        d.counts.shrink_to_fit();
        if let (Some(bits), Some((most, times)), Some(last)) =
            (self.bits, self.most, d.counts.last_mut())
        {
            let widest = width(self.least, bits).max(width(most, bits));
            // Other values in the bin of the largest value are smaller.
            *last = (last.0.min(most - 1), last.1.saturating_sub(times));
            if last.1 == 0 {
                d.counts.pop();
            }
            d.counts.push((most, times));
            d.said.min_ns.get_or_insert(self.least);
            d.resolution_ns = d.unit_ns.saturating_add(widest);
            d.bits = Some(bits);
        }
    }

    /// Like [`Tally::fill`], for values in units of the distribution; a clause says which one is too large.
    pub fn fill_scaled(self, d: &mut Distribution) -> Result<(), String> {
        let unit_ns = d.unit_ns;
        let said = d.said.min_ns;
        self.fill(d);
        for (value, _) in &mut d.counts {
            *value = scaled(*value, unit_ns)?;
        }
        if d.bits.is_some() {
            let bins = (d.resolution_ns - unit_ns).saturating_mul(unit_ns);
            d.resolution_ns = unit_ns.saturating_add(bins);
            if said.is_none()
                && let Some(least) = d.said.min_ns
            {
                d.said.min_ns = Some(scaled(least, unit_ns)?);
            }
        }
        Ok(())
    }

    fn sort_in(&mut self) {
        self.waiting.sort_unstable();
        // Counts known values first, so that only new values lengthen the table.
        let mut new: Vec<(i64, u64)> = Vec::new();
        let mut at = 0;
        for (value, times) in self.waiting.drain(..) {
            while self.counts.get(at).is_some_and(|known| known.0 < value) {
                at += 1;
            }
            match (self.counts.get_mut(at), new.last_mut()) {
                (Some(known), _) if known.0 == value => known.1 = known.1.saturating_add(times),
                (_, Some(last)) if last.0 == value => last.1 = last.1.saturating_add(times),
                _ => new.push((value, times)),
            }
        }
        if !new.is_empty() {
            self.counts.reserve_exact(new.len());
            self.counts.append(&mut new);
            self.counts.sort_unstable();
        }
        self.hold(self.counts.len());
        self.keep_to_the_share();
    }

    /// Widens the bins while all series hold too much and this one more than an equal share of the room.
    fn keep_to_the_share(&mut self) {
        let (all, series) = HELD.get();
        if all <= MOST {
            return;
        }
        while self.counts.len() > MOST / series.max(1) {
            let bits = match self.bits {
                None => BITS,
                Some(bits) if bits > FEWEST_BITS => bits - 1,
                Some(_) => return,
            };
            self.bits = Some(bits);
            self.counts.dedup_by(|next, kept| {
                let same = upper(next.0, bits) == upper(kept.0, bits);
                if same {
                    kept.1 = kept.1.saturating_add(next.1);
                }
                same
            });
            for (value, _) in &mut self.counts {
                *value = upper(*value, bits);
            }
            self.counts.shrink_to_fit();
            self.hold(self.counts.len());
        }
    }

    fn hold(&mut self, entries: usize) {
        let (all, series) = HELD.get();
        let series = series + usize::from(entries > 0) - usize::from(self.held > 0);
        HELD.set((all + entries - self.held, series));
        self.held = entries;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// The largest value in the bin of a value if bins keep `bits` binary digits.
fn upper(value: i64, bits: u32) -> i64 {
    // Bins of negative values mirror the others, so that their upper end is the one next to 0.
    if value < 0 {
        let mirrored = !value;
        return !(mirrored & !width(mirrored, bits));
    }
    value | width(value, bits)
}

/// By how much the ends of the bin of a value differ.
fn width(value: i64, bits: u32) -> i64 {
    let value = if value < 0 { !value } else { value };
    let digits = i64::BITS - value.leading_zeros();
    (1 << digits.saturating_sub(bits + 1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(tally: Tally) -> Distribution {
        let mut d = Distribution::new("t", "latency", 1);
        tally.fill(&mut d);
        d
    }

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
            prop_assert_eq!(filled(tally).counts, map.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn a_bin_holds_its_value_is_narrow_and_lies_within_wider_ones(value in any::<i64>(), bits in 4u32..=10) {
            let end = upper(value, bits);
            prop_assert!(end >= value);
            prop_assert!(i128::from(end) - i128::from(value) <= (i128::from(value).abs() >> bits));
            prop_assert_eq!(upper(end, bits), end);
            prop_assert_eq!(upper(end, bits - 1), upper(value, bits - 1));
        }
    }

    #[test]
    fn too_many_values_stand_in_bins_and_the_extremes_as_they_are() {
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        let count = MOST as i64;
        // A permutation, so that neither end comes last.
        let value = |at: i64| 3_000 + (at * 7_919) % count * 1_000;
        for at in 0..count {
            for tally in &mut tallies {
                tally.add(value(at));
            }
        }
        let (all, _) = HELD.get();
        assert!(all <= MOST + 3 * WAITING, "{all}");
        let total = count as u64;
        for tally in tallies {
            let d = filled(tally);
            assert_eq!(d.bits, Some(BITS));
            assert_eq!(d.counted(), total);
            assert_eq!(
                (d.min_ns(), d.max_ns()),
                (Some(3_000), Some(3_000 + (count - 1) * 1_000))
            );
            assert_eq!(d.counts.last().unwrap().1, 1);
            assert!(d.counts.is_sorted_by(|a, b| a.0 < b.0));
            for p in [0.01, 0.5, 0.999] {
                let exact = 3_000 + ((count as f64 * p).ceil() as i64 - 1) * 1_000;
                let super::super::Reach::At(found) = d.quantile(p) else {
                    panic!("a whole histogram has every quantile")
                };
                assert!(
                    found >= exact && found - exact <= exact >> BITS,
                    "{exact} {found}"
                );
            }
        }
        assert_eq!(HELD.get(), (0, 0));
    }
}
