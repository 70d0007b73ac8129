//! Block maxima, and the extreme value law fitted to them.

use super::extreme::Extreme;
use super::goodness::{Law, p_value};
use super::ties::{spread, step_of};
use super::{Blocks, TailRound};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Blocks that are aimed at.
const BLOCKS: usize = 200;
/// The shortest block, in jobs.
const SHORTEST: usize = 25;
/// Fewer blocks are no sample.
pub(super) const FEWEST: usize = 30;
/// A fit with a smaller p-value is refused.
pub(super) const REFUSED: f64 = 0.05;

/// The maxima of whole blocks of each round, in order.
pub(super) struct Maxima {
    pub block_jobs: usize,
    pub by_round: Vec<Vec<i64>>,
}

impl Maxima {
    /// About 200 blocks of 25 jobs or more; the rest of a round after its last whole block is left out.
    pub fn of(rounds: &[TailRound]) -> Self {
        let jobs: usize = rounds.iter().map(|round| round.values_ns.len()).sum();
        let block_jobs = jobs.div_ceil(BLOCKS).max(SHORTEST);
        let maxima = |round: &TailRound| {
            let blocks = round.values_ns.chunks_exact(block_jobs);
            blocks
                .filter_map(|block| block.iter().max().copied())
                .collect()
        };
        Self {
            block_jobs,
            by_round: rounds.iter().map(maxima).collect(),
        }
    }

    /// Of maxima of intervals of `interval_jobs` each: so many in a row together that there are about 200 blocks of 25
    /// jobs or more; the rest of a round is left out.
    pub fn joined(by_round: Vec<Vec<i64>>, interval_jobs: usize) -> Self {
        let intervals: usize = by_round.iter().map(Vec::len).sum();
        let together = intervals
            .div_ceil(BLOCKS)
            .max(SHORTEST.div_ceil(interval_jobs.max(1)));
        let join = |maxima: &Vec<i64>| {
            let blocks = maxima.chunks_exact(together);
            blocks
                .filter_map(|block| block.iter().max().copied())
                .collect()
        };
        Self {
            block_jobs: together * interval_jobs,
            by_round: by_round.iter().map(join).collect(),
        }
    }

    /// All of them, round after round.
    pub fn all(&self) -> Vec<i64> {
        self.by_round.concat()
    }

    /// The same with blocks twice as long.
    fn doubled(&self) -> Self {
        let pairs = |maxima: &Vec<i64>| {
            let pairs = maxima.chunks_exact(2);
            pairs.map(|pair| pair[0].max(pair[1])).collect()
        };
        Self {
            block_jobs: self.block_jobs * 2,
            by_round: self.by_round.iter().map(pairs).collect(),
        }
    }

    /// The extreme value law of the shortest blocks that follow one; else that with the largest p-value. `None` with
    /// too few blocks or when all maxima are equal.
    pub fn fit(self, random: &mut Xoshiro256PlusPlus) -> Option<Blocks> {
        let mut best: Option<Blocks> = None;
        let mut maxima = self;
        while maxima.all().len() >= FEWEST {
            let fitted = fit(&maxima, random);
            if let Some(fitted) = fitted
                && best
                    .as_ref()
                    .is_none_or(|best| fitted.p_value > best.p_value)
            {
                best = Some(fitted);
            }
            if best.as_ref().is_some_and(|best| best.p_value > REFUSED) {
                break;
            }
            maxima = maxima.doubled();
        }
        best
    }
}

fn fit(maxima: &Maxima, random: &mut Xoshiro256PlusPlus) -> Option<Blocks> {
    let mut all = maxima.all();
    all.sort_unstable();
    let step = step_of(&all) as f64;
    let origin = *all.first()?;
    let mut values: Vec<f64> = all
        .iter()
        .map(|value| value.abs_diff(origin) as f64 + step / 2.0)
        .collect();
    spread(&mut values, step);
    let law = Extreme::fit(&values)?;
    Some(Blocks {
        block_jobs: maxima.block_jobs as u64,
        blocks: all.len() as u64,
        shape: law.shape,
        scale_ns: law.scale,
        location_ns: origin as f64 - step / 2.0 + law.location,
        p_value: p_value(&law, &values, step, random),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stay_within_rounds() {
        let activations: Vec<u32> = (0..60).collect();
        let first: Vec<i64> = (0..60).collect();
        let second: Vec<i64> = (100..130).collect();
        let rounds = [
            TailRound {
                activations: &activations,
                values_ns: &first,
                releases_ns: &[],
            },
            TailRound {
                activations: &activations[..30],
                values_ns: &second,
                releases_ns: &[],
            },
        ];
        let maxima = Maxima::of(&rounds);
        assert_eq!(maxima.block_jobs, 25);
        assert_eq!(maxima.by_round, [vec![24, 49], vec![124]]);
        assert_eq!(maxima.doubled().by_round, [vec![49], vec![]]);
    }

    #[test]
    fn maxima_of_intervals_are_joined_within_rounds() {
        let short = Maxima::joined(vec![vec![1, 5, 2, 4, 9], vec![7, 3]], 10);
        assert_eq!(
            (short.block_jobs, short.by_round),
            (30, vec![vec![5], vec![]])
        );
        let many = Maxima::joined(vec![(0..1_000).collect()], 600);
        assert_eq!((many.block_jobs, many.all().len()), (3_000, 200));
        assert_eq!(many.all()[0], 4);
        let few = Maxima::joined(vec![vec![1, 2, 3]], 60_000);
        assert_eq!((few.block_jobs, few.all()), (60_000, vec![1, 2, 3]));
    }
}
