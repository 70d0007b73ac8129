//! Why two things cannot be compared.

use super::CompareOptions;
use std::fmt;

/// Which of the two things compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The reference of the comparison.
    Baseline,
    /// The side that is compared with it.
    Other,
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Side::Baseline => "the baseline",
            Side::Other => "the other side",
        })
    }
}

/// Why two things cannot be compared. Rounds are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Neither side has a round.
    #[error("there are no rounds to compare")]
    NoRounds,
    /// Rounds are paired by index, so both sides must have as many.
    #[error(
        "the baseline has {baseline} rounds and the other side {other}; rounds are paired, so the numbers must be equal"
    )]
    UnequalRounds {
        /// The rounds of the baseline.
        baseline: usize,
        /// The rounds of the other side.
        other: usize,
    },
    /// A round has no samples.
    #[error("round {round} of {side} has no samples")]
    EmptyRound {
        /// The side it belongs to.
        side: Side,
        /// Its index.
        round: usize,
    },
    /// A ratio needs positive medians.
    #[error(
        "the median of round {round} of {side} is {median_ns} ns; a ratio needs positive medians"
    )]
    NonPositiveMedian {
        /// The side it belongs to.
        side: Side,
        /// The index of the first such round.
        round: usize,
        /// Its median in nanoseconds.
        median_ns: i64,
    },
    /// The confidence is not a probability.
    #[error("the confidence must lie strictly between 0 and 1")]
    Confidence,
    /// There are too few resamples.
    #[error(
        "{resamples} resamples are too few; at least {} are needed",
        CompareOptions::MIN_RESAMPLES
    )]
    Resamples {
        /// The requested number.
        resamples: u32,
    },
}
