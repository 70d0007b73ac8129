//! One round's samples, and drawing them again in blocks.

use crate::sorted;
use rand::{Rng, RngExt};

/// Parts of equally many ranks into which the samples of a large round are sorted. A draw's quantile is first looked for
/// among the parts' sums, which are taken in the order of time: walking the samples by rank would miss the cache at
/// every step.
const PARTS: usize = 1024;

/// The samples of one round with their order, sorted once to be resampled often.
pub(super) struct Round<'a> {
    samples: &'a [i64],
    /// Indices into `samples`, by ascending value.
    order: Vec<usize>,
    /// The part of each sample, in the order recorded.
    part: Vec<u16>,
    block_length: usize,
}

/// How often each sample of a round was drawn, and those of each part.
#[derive(Default)]
pub(super) struct Draw(Vec<u32>, Vec<usize>);

impl<'a> Round<'a> {
    /// Takes the samples (nanoseconds) in the order recorded.
    ///
    /// Blocks are ⌈n^(1/3)⌉ jobs long, the optimal growth for the variance of an estimate (Hall, Horowitz and Jing,
    /// "On blocking rules for the bootstrap with dependent data", Biometrika 82, 1995).
    pub fn new(samples: &'a [i64]) -> Self {
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_unstable_by_key(|&index| samples[index]);
        let mut part = vec![0; samples.len()];
        for (rank, &index) in order.iter().enumerate() {
            part[index] = (rank * PARTS / samples.len()) as u16;
        }
        let block_length = ((samples.len() as f64).cbrt().ceil() as usize).min(samples.len());
        Self {
            samples,
            order,
            part,
            block_length,
        }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// The quantile of the round in nanoseconds, by nearest rank; `None` when the round is empty.
    pub fn quantile(&self, probability: f64) -> Option<i64> {
        sorted::rank(self.len(), probability).map(|rank| self.samples[self.order[rank - 1]])
    }

    /// Draws as many samples as the round has, in contiguous blocks that may wrap around its end (the last block is
    /// cut to fit).
    ///
    /// The blocks are not copied: each marks its two ends in an array of differences, whose running sum says how
    /// often each sample was drawn.
    pub fn draw(&self, random: &mut impl Rng, draw: &mut Draw) {
        let length = self.len();
        let counts = &mut draw.0;
        counts.clear();
        counts.resize(length + 1, 0);
        let mut missing = length;
        while missing > 0 {
            let block = self.block_length.min(missing);
            let start = random.random_range(0..length);
            let end = start + block;
            counts[start] = counts[start].wrapping_add(1);
            if end > length {
                counts[0] = counts[0].wrapping_add(1);
                counts[end - length] = counts[end - length].wrapping_sub(1);
            } else {
                counts[end] = counts[end].wrapping_sub(1);
            }
            missing -= block;
        }
        counts.truncate(length);
        let sums = &mut draw.1;
        sums.clear();
        sums.resize(PARTS, 0);
        let mut running = 0_u32;
        for (count, &part) in counts.iter_mut().zip(&self.part) {
            running = running.wrapping_add(*count);
            *count = running;
            sums[usize::from(part)] += running as usize;
        }
    }

    /// The quantile of a draw from this round in nanoseconds, by nearest rank: exactly that of the samples drawn. `None`
    /// when the round is empty.
    pub fn drawn_quantile(&self, draw: &Draw, probability: f64) -> Option<i64> {
        let rank = sorted::rank(self.len(), probability)?;
        let mut passed = 0;
        let part = draw.1.iter().position(|sum| {
            passed += sum;
            passed >= rank
        })?;
        passed -= draw.1[part];
        let first = (part * self.len()).div_ceil(PARTS);
        let index = self.order[first..].iter().find(|&&index| {
            passed += draw.0[index] as usize;
            passed >= rank
        });
        index.map(|&index| self.samples[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sorted;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn a_drawn_quantile_is_that_of_the_samples_drawn() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        for length in [1, 2, 3, 10, 97, 300, 1023, 1024, 1025, 5000] {
            let samples: Vec<i64> = (0..length).map(|_| random.random_range(-20..20)).collect();
            let round = Round::new(&samples);
            let mut draw = Draw::default();
            for _ in 0..20 {
                round.draw(&mut random, &mut draw);
                let copies = samples
                    .iter()
                    .zip(&draw.0)
                    .flat_map(|(&sample, &times)| vec![sample; times as usize]);
                let copies = Sorted::new(copies.collect());
                assert_eq!(copies.len(), samples.len());
                for probability in [0.01, 0.25, 0.5, 0.75, 0.99] {
                    assert_eq!(
                        round.drawn_quantile(&draw, probability),
                        copies.nearest_rank(probability)
                    );
                }
            }
        }
    }

    /// In blocks of 5 over 125 samples, the counts change at no more than two places for each of the 25 blocks.
    #[test]
    fn draws_are_contiguous_blocks_and_reach_every_sample() {
        let samples: Vec<i64> = (0..125).collect();
        let round = Round::new(&samples);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let (mut draw, mut total) = (Draw::default(), vec![0_u32; 125]);
        for _ in 0..4_000 {
            round.draw(&mut random, &mut draw);
            let changes = (0..125)
                .filter(|&index| draw.0[index] != draw.0[(index + 1) % 125])
                .count();
            assert!(changes <= 50, "{changes}");
            total
                .iter_mut()
                .zip(&draw.0)
                .for_each(|(total, times)| *total += times);
        }
        // Each is drawn 4,000 times on average, with a standard deviation of about 63; a bias of 10 % would be seen.
        assert!(
            total.iter().all(|&times| (3_600..=4_400).contains(&times)),
            "{total:?}"
        );
    }
}
