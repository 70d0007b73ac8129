//! Is one cell slower than another, or is the difference noise?
//!
//! Rounds are the unit of evidence: between two rounds of the same cell lie drift, heat and luck that no number of
//! jobs within one round reveals. Rounds of the things compared are interleaved (A B C, A B C, ...), so that rounds
//! with the same index are neighbours in time and are compared with each other: drift that both share cancels.

mod bootstrap;
mod error;
mod options;
mod quantiles;
mod ratio;
mod round;

pub use error::{CompareError, Side};
pub use options::CompareOptions;
pub use quantiles::{RoundQuantiles, compare_quantiles};
pub(crate) use ratio::{FEWEST_ROUNDS, student};
pub use ratio::{Ratio, Verdict};

use crate::{DEFAULT_CONFIDENCE, needed_count};
use bootstrap::Bootstrap;
use round::Round;
use serde::{Deserialize, Serialize};

/// The two sides of a [`compare()`]: ratios of the other to the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The median of the other over that of the baseline.
    pub ratio_of_medians: Ratio,
    /// The 99th percentile of the other over that of the baseline, from rounds with enough samples of both to bound it
    /// ([`needed_count`] of 0.99 at [`DEFAULT_CONFIDENCE`]: 299); `None` when they are too few.
    pub ratio_of_p99: Option<Ratio>,
    /// The number of pairs of rounds compared, at least 1.
    pub rounds: u32,
    /// Those that the ratio of 99th percentiles rests on: fewer where a stall left too few samples in some. 0 without such a
    /// ratio, and in records of versions that did not say.
    #[serde(default)]
    pub rounds_of_p99: u32,
}

/// Compares the rounds of `other` with those of `baseline` (nanoseconds, in the order recorded; outer index: round).
///
/// The estimate is the geometric mean over rounds of (quantile of the other round / quantile of the baseline round).
/// Its interval is that of a hierarchical bootstrap of the logarithm (Davison and Hinkley, "Bootstrap Methods and
/// their Application", 1997, section 3.8): pairs of rounds are drawn with replacement, and within each drawn round
/// contiguous blocks of jobs, because jobs are autocorrelated (Politis and Romano, "A circular block-resampling
/// procedure for stationary data", 1992).
///
/// With the few rounds a benchmark has, bootstrap intervals are far too narrow: the resampled spread lacks the
/// factor √(n/(n-1)), and the normal quantile z stands where t with n-1 degrees of freedom belongs. Both are fixed
/// as Hesterberg shows ("What teachers should know about the bootstrap", The American Statistician 69(4), 2015): the
/// interval z · (bootstrap standard error) around the estimate is widened by √(n/(n-1)) · t/z. The standard error is
/// used, not the percentiles, because with 2 or 3 rounds percentiles are merely the extreme rounds, and even widened
/// cover less than they promise.
///
/// Intervals cover at the nominal rate when the logarithms of the rounds' ratios are normal and differ mainly between
/// rounds. They are wider than they must be when the noise within rounds matters, as that noise then counts twice:
/// once as it shows between rounds, once resampled. With 3 rounds this also keeps rounds that agree by chance
/// from claiming too much.
///
/// Errors: see [`CompareError`]; no input panics.
pub fn compare(
    baseline: &[Vec<i64>],
    other: &[Vec<i64>],
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    options.check()?;
    let rounds = check_rounds(baseline, other)?;
    let pairs: Vec<[Round; 2]> = baseline
        .iter()
        .zip(other)
        .map(|pair| [Round::new(pair.0), Round::new(pair.1)])
        .collect();

    check_medians(&pairs)?;

    let mut probabilities = vec![0.5];
    if pairs.iter().flatten().all(|round| supports_p99(round)) {
        probabilities.push(0.99);
    }
    let mut ratios = Bootstrap::new(options)
        .ratios(&pairs, &probabilities)
        .into_iter();
    let ratio_of_medians = ratios.next().flatten().ok_or(CompareError::NoRounds)?;
    let ratio_of_p99 = ratios.next().flatten();
    Ok(Comparison {
        ratio_of_medians,
        rounds,
        rounds_of_p99: if ratio_of_p99.is_some() { rounds } else { 0 },
        ratio_of_p99,
    })
}

fn check_rounds(baseline: &[Vec<i64>], other: &[Vec<i64>]) -> Result<u32, CompareError> {
    if baseline.len() != other.len() {
        return Err(CompareError::UnequalRounds {
            baseline: baseline.len(),
            other: other.len(),
        });
    }
    for (side, rounds) in [(Side::Baseline, baseline), (Side::Other, other)] {
        if let Some(round) = rounds.iter().position(Vec::is_empty) {
            return Err(CompareError::EmptyRound { side, round });
        }
    }
    match baseline.len() {
        0 => Err(CompareError::NoRounds),
        rounds => Ok(u32::try_from(rounds).unwrap_or(u32::MAX)),
    }
}

fn check_medians(pairs: &[[Round; 2]]) -> Result<(), CompareError> {
    for (round, pair) in pairs.iter().enumerate() {
        for (side, samples) in [Side::Baseline, Side::Other].into_iter().zip(pair) {
            if let Some(median_ns) = samples.quantile(0.5).filter(|&median| median <= 0) {
                return Err(CompareError::NonPositiveMedian {
                    side,
                    round,
                    median_ns,
                });
            }
        }
    }
    Ok(())
}

fn supports_p99(round: &Round) -> bool {
    needed_count(0.99, DEFAULT_CONFIDENCE).is_some_and(|needed| round.len() as u64 >= needed)
}

#[cfg(test)]
mod tests;
