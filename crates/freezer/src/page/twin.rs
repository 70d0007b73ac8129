//! A record of several words that is whole at any instant, for a reader beside the writer and for a process that finds
//! it after its writer was killed.
//!
//! There are two copies and a count of publications. The valid copy is the one of the count's parity; the writer fills
//! the other one and then stores the count that makes it valid, which is one word.
//!
//! **Why it holds after `kill -9`.** A thread that is killed has done its stores up to some instruction and none after
//! it; every store here is one aligned word, and release ordering keeps compiler and cpu from exchanging any two of them.
//! The kernel keeps the page. So the count names a copy that was filled before it, and the copy that may be half filled
//! is the other one.
//!
//! **Why it holds for a reader beside the writer.** The copy that it reads is written again only after the count has
//! advanced; a reader that has read a word of that finds another count afterwards, and reads again. There is one writer.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words that one thread writes.
pub(crate) trait Words {
    fn load(&self, at: usize) -> u64;
    fn store(&self, at: usize, value: u64);
}

impl Words for [AtomicU64] {
    fn load(&self, at: usize) -> u64 {
        self[at].load(Ordering::Acquire)
    }

    fn store(&self, at: usize, value: u64) {
        self[at].store(value, Ordering::Release);
    }
}

/// Words that a record of `values` takes.
pub(crate) const fn words(values: usize) -> usize {
    1 + 2 * values
}

/// Where the valid copy begins after so many publications.
fn copy(count: u64, values: usize) -> usize {
    1 + usize::from(count % 2 == 1) * values
}

/// Publishes a record. One thread at a time.
pub(crate) fn publish<const N: usize>(words: &(impl Words + ?Sized), record: &[u64; N]) {
    let count = words.load(0).wrapping_add(1);
    let at = copy(count, N);
    for (place, value) in record.iter().enumerate() {
        words.store(at + place, *value);
    }
    words.store(0, count);
}

/// The record that was published last; zeroes if none was.
pub(crate) fn read<const N: usize>(words: &(impl Words + ?Sized)) -> [u64; N] {
    loop {
        let count = words.load(0);
        let at = copy(count, N);
        let record = std::array::from_fn(|place| words.load(at + place));
        if words.load(0) == count {
            return record;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use proptest::prelude::*;

    /// Memory whose writer is killed after so many stores.
    struct Torn {
        words: RefCell<Vec<u64>>,
        stores_left: Cell<usize>,
    }

    impl Words for Torn {
        fn load(&self, at: usize) -> u64 {
            self.words.borrow()[at]
        }

        fn store(&self, at: usize, value: u64) {
            if self.stores_left.get() > 0 {
                self.stores_left.set(self.stores_left.get() - 1);
                self.words.borrow_mut()[at] = value;
            }
        }
    }

    const VALUES: usize = 5;

    proptest! {
        #[test]
        fn a_writer_killed_at_any_store_leaves_a_whole_record(
            records in prop::collection::vec(any::<[u64; VALUES]>(), 1..4),
            killed in 0usize..3 * (VALUES + 1) + 1,
        ) {
            let torn = Torn {
                words: RefCell::new(vec![0; words(VALUES)]),
                stores_left: Cell::new(killed),
            };
            records.iter().for_each(|record| publish(&torn, record));
            // Those whose last store, that of the count, was done.
            let whole = (killed / (VALUES + 1)).min(records.len());
            let last = whole.checked_sub(1).map_or([0; VALUES], |last| records[last]);
            prop_assert_eq!(read::<VALUES>(&torn), last);
            // And a writer that continues finds it as good as any.
            torn.stores_left.set(usize::MAX);
            publish(&torn, &[7; VALUES]);
            prop_assert_eq!(read::<VALUES>(&torn), [7; VALUES]);
        }
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_records_only() {
        let memory: Vec<AtomicU64> = (0..words(VALUES)).map(|_| AtomicU64::new(0)).collect();
        let memory = memory.as_slice();
        std::thread::scope(|scope| {
            scope.spawn(|| (1..200_000u64).for_each(|at| publish(memory, &[at; VALUES])));
            let mut before = 0;
            while before < 199_999 {
                let record = read::<VALUES>(memory);
                assert_eq!(record, [record[0]; VALUES]);
                assert!(record[0] >= before, "{} after {before}", record[0]);
                before = record[0];
            }
        });
    }
}
