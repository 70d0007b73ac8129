//! The N largest values of a stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::samples::Sample;

/// Keeps the jobs with the largest values; of equal values the earlier one.
#[derive(Debug, Clone)]
pub struct Worst {
    room: usize,
    /// A heap with the smallest kept value on top: value, order, and the job.
    kept: BinaryHeap<Reverse<Entry>>,
}

/// Value, order of arrival (the earlier ranks higher), job.
type Entry = (i64, Reverse<u64>, [i64; 5]);

impl Worst {
    /// Keeps at most this number.
    pub fn new(room: usize) -> Worst {
        Worst {
            room,
            kept: BinaryHeap::with_capacity(room + 1),
        }
    }

    /// Offers a job with its value; `order` grows with every offer.
    pub fn offer(&mut self, value: i64, order: u64, sample: &Sample) {
        let full = self.kept.len() >= self.room;
        if full
            && self
                .kept
                .peek()
                .is_none_or(|Reverse(least)| value <= least.0)
        {
            return;
        }
        let job = super::Job(*sample).into();
        self.kept.push(Reverse((value, Reverse(order), job)));
        if self.kept.len() > self.room {
            self.kept.pop();
        }
    }

    /// Value, order and job of each entry, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (i64, u64, Sample)> {
        self.kept.iter().filter_map(|Reverse((value, order, job))| {
            Some((*value, order.0, super::Job::try_from(*job).ok()?.0))
        })
    }

    /// Those kept, the worst first; of equal values the earlier one first.
    pub fn sorted(&self) -> Vec<(i64, Sample)> {
        let mut all: Vec<(i64, u64, Sample)> = self.entries().collect();
        all.sort_unstable_by_key(|(value, order, _)| (Reverse(*value), *order));
        all.into_iter()
            .map(|(value, _, job)| (value, job))
            .collect()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_head_of_the_sorted_stream(values in prop::collection::vec(-5i64..20, 0..200), room in 0usize..40) {
            let mut worst = Worst::new(room);
            for (order, &value) in values.iter().enumerate() {
                worst.offer(value, order as u64, &Sample { index: order as u32, ..Sample::default() });
            }
            let mut expected: Vec<(i64, u32)> = values.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(value, index)| (Reverse(*value), *index));
            expected.truncate(room);
            let kept: Vec<(i64, u32)> = worst.sorted().iter().map(|(v, s)| (*v, s.index)).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
