//! One quantile with the interval the sample supports, or the number of samples it would need.

use crate::binomial::Binomial;
use crate::sorted::rank;
use crate::{Binned, Sorted};
use serde::{Deserialize, Serialize};

/// The confidence that intervals have unless a caller asks for another.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;

/// An empirical quantile and its exact, distribution-free confidence interval.
///
/// The interval runs between two order statistics, x(l) and x(u). For any distribution, the number of samples
/// below its p-quantile is binomial, B ~ Bin(n, p), so that x(l) and x(u) enclose the quantile with probability at
/// least P(l <= B < u); ties only make it larger. (David and Nagaraja, "Order Statistics", 3rd ed., 2003, section 7.1;
/// Le Boudec, "Performance Evaluation of Computer and Communication Systems", 2010, theorem 2.1.)
///
/// The exact rule, with α = 1 - confidence:
/// 1. An interval exists if and only if the whole sample, from its minimum to its maximum, is one:
///    1 - p^n - (1-p)^n >= 1 - α. [`needed_count`] is the smallest such n. With fewer samples, `value_ns`, `low_ns`
///    and `high_ns` are all `None`.
/// 2. Each side errs with probability at most α/2: l is the largest rank with P(B < l) <= α/2, and u the smallest
///    with P(B >= u) <= α/2.
/// 3. Where one side has no such rank because even the extreme sample errs more often than α/2, that side is the
///    extreme sample, and the other side gets the rest of α.
///
/// Then low <= value <= high always holds. The samples are assumed independent: for correlated jobs (see
/// [`autocorrelation`](crate::autocorrelation)) the true confidence is lower, and rounds must be
/// [compared](crate::compare()) instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// The fraction of jobs at or below this value, strictly between 0 and 1.
    pub probability: f64,
    /// The order statistic of rank ⌈n·p⌉ in nanoseconds, or `None` when the sample is too small to bound it.
    pub value_ns: Option<i64>,
    /// The lower end of the interval in nanoseconds; absent exactly when the value is.
    pub low_ns: Option<i64>,
    /// The upper end of the interval in nanoseconds; absent exactly when the value is.
    pub high_ns: Option<i64>,
    /// The least probability with which such intervals enclose the true quantile, strictly between 0 and 1.
    pub confidence: f64,
    /// The smallest number of samples for which an interval exists; [`u64::MAX`] stands for "that or more".
    pub needed_count: u64,
}

impl Quantile {
    /// The quantile of the samples. `None` when `probability` or `confidence` is not strictly between 0 and 1.
    pub fn of(sorted: &Sorted, probability: f64, confidence: f64) -> Option<Self> {
        let sample = |rank: u64| sorted.as_slice().get(rank as usize - 1).copied();
        Self::by_ranks(sorted.len() as u64, probability, confidence, sample, sample)
    }

    /// The same from bins: the value is the upper end of its bin, and the interval is widened to the ends of the bins
    /// that it reaches into, so that it encloses the quantile at least as often.
    pub fn of_binned(binned: &Binned, probability: f64, confidence: f64) -> Option<Self> {
        let low = |rank| Some(binned.of_rank(rank)?.low_ns);
        let high = |rank| Some(binned.of_rank(rank)?.high_ns);
        Self::by_ranks(binned.len(), probability, confidence, low, high)
    }

    /// From the number of samples and a lower and an upper bound of the sample of each rank.
    fn by_ranks(
        count: u64,
        probability: f64,
        confidence: f64,
        lower: impl Fn(u64) -> Option<i64>,
        upper: impl Fn(u64) -> Option<i64>,
    ) -> Option<Self> {
        let needed_count = needed_count(probability, confidence)?;
        let mut quantile = Self {
            probability,
            value_ns: None,
            low_ns: None,
            high_ns: None,
            confidence,
            needed_count,
        };
        if count >= needed_count {
            let (low, high) = interval_ranks(count, probability, confidence);
            let rank = rank(usize::try_from(count).unwrap_or(usize::MAX), probability);
            quantile.value_ns = rank.and_then(|rank| upper(rank as u64));
            quantile.low_ns = lower(low);
            quantile.high_ns = upper(high);
        }
        Some(quantile)
    }
}

/// The smallest number of samples from which a quantile can be bounded on both sides: the smallest n with
/// 1 - p^n - (1-p)^n >= confidence (Wilks, "Determination of sample sizes for setting tolerance limits", Annals of
/// Mathematical Statistics 12, 1941). At 95 %: 6 for the median, 59 for p95, 299 for p99, 2,995 for p99.9, 29,956 for
/// p99.99.
///
/// `None` when `probability` or `confidence` is not strictly between 0 and 1; at most [`u64::MAX`].
pub fn needed_count(probability: f64, confidence: f64) -> Option<u64> {
    let within = |x: f64| x > 0.0 && x < 1.0;
    (within(probability) && within(confidence)).then_some(())?;
    let enough = |count: u64| missed(count, probability) <= 1.0 - confidence;
    if !enough(u64::MAX) {
        return Some(u64::MAX);
    }
    let (mut too_few, mut sufficient) = (0, u64::MAX);
    while sufficient - too_few > 1 {
        let middle = too_few + (sufficient - too_few) / 2;
        if enough(middle) {
            sufficient = middle
        } else {
            too_few = middle
        }
    }
    Some(sufficient)
}

/// The probability that all of `count` samples lie on one side of the quantile: p^n + (1-p)^n.
fn missed(count: u64, probability: f64) -> f64 {
    let count = count as f64;
    (count * probability.ln()).exp() + (count * (-probability).ln_1p()).exp()
}

/// The ranks l and u, counted from 1, by rules 2 and 3 of [`Quantile`]; `count` is at least the needed one.
fn interval_ranks(count: u64, probability: f64, confidence: f64) -> (u64, u64) {
    let alpha = 1.0 - confidence;
    let binomial = Binomial::new(count, probability);
    let (all_above, all_below) = (binomial.at(0), binomial.at(count));
    let spent = |extreme: f64| {
        if extreme > alpha / 2.0 {
            alpha - extreme
        } else {
            alpha / 2.0
        }
    };
    let low = binomial.largest_with_fewer(spent(all_below));
    let high = binomial.smallest_with_at_least(spent(all_above));
    (low.max(1), high.min(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(count: i64) -> Sorted {
        Sorted::new((1..=count).collect())
    }

    fn ranks(count: i64, probability: f64) -> Option<(i64, i64, i64)> {
        let quantile = Quantile::of(&ramp(count), probability, 0.95).unwrap();
        Some((quantile.low_ns?, quantile.value_ns?, quantile.high_ns?))
    }

    /// ⌈ln 0.05 / ln p⌉ for the upper quantiles (Wilks); 2 · 0.5^n <= 0.05 for the median.
    #[test]
    fn needed_counts_are_the_textbook_ones() {
        for (probability, count) in [
            (0.5, 6),
            (0.75, 11),
            (0.9, 29),
            (0.95, 59),
            (0.99, 299),
            (0.999, 2_995),
            (0.9999, 29_956),
            (0.05, 59),
        ] {
            assert_eq!(
                needed_count(probability, 0.95),
                Some(count),
                "{probability}"
            );
        }
        assert_eq!(needed_count(0.99, 0.99), Some(459));
    }

    /// The classical table of confidence intervals for a median, from the sign test (Conover, "Practical Nonparametric
    /// Statistics"; tables print the attained confidence, such as 95.1 % for n = 17).
    #[test]
    fn median_intervals_match_the_sign_test_table() {
        assert_eq!(ranks(5, 0.5), None);
        for (count, low, high) in [
            (6, 1, 6),
            (8, 1, 8),
            (9, 2, 8),
            (10, 2, 9),
            (12, 3, 10),
            (15, 4, 12),
            (17, 5, 13),
            (20, 6, 15),
            (25, 8, 18),
            (100, 40, 61),
        ] {
            assert_eq!(
                ranks(count, 0.5),
                Some((low, (count + 1) / 2, high)),
                "{count}"
            );
        }
    }

    /// At n = 59, 0.95^59 = 0.0485 is spent above, and 0.0015 is left below: P(B < 49) = 0.0009, P(B < 50) = 0.0033
    /// for B ~ Bin(59, 0.95).
    #[test]
    fn a_side_without_a_rank_is_the_extreme_sample_and_the_other_pays_for_it() {
        assert_eq!(ranks(58, 0.95), None);
        let (low, value, high) = ranks(59, 0.95).unwrap();
        assert_eq!((value, high), (57, 59));
        let binomial = Binomial::new(59, 0.95);
        let below = |rank: i64| (0..rank as u64).map(|k| binomial.at(k)).sum::<f64>();
        assert!(below(low) + binomial.at(59) <= 0.05);
        assert!(below(low + 1) + binomial.at(59) > 0.05);
    }

    #[test]
    fn the_extreme_quantile_needs_its_samples() {
        let quantile = Quantile::of(&ramp(29_955), 0.9999, 0.95).unwrap();
        assert_eq!(
            (quantile.value_ns, quantile.low_ns, quantile.high_ns),
            (None, None, None)
        );
        assert_eq!(quantile.needed_count, 29_956);
        let quantile = Quantile::of(&ramp(29_956), 0.9999, 0.95).unwrap();
        assert_eq!(
            (quantile.value_ns, quantile.high_ns),
            (Some(29_954), Some(29_956))
        );
    }

    /// The promise itself, by exact enumeration over n: P(l <= B < u) >= confidence, with no slack to move either end.
    #[test]
    fn intervals_cover_as_promised_and_are_no_wider_than_they_must() {
        for probability in [0.05, 0.25, 0.5, 0.9, 0.95, 0.99] {
            for count in needed_count(probability, 0.95).unwrap()..400 {
                let (low, high) = interval_ranks(count, probability, 0.95);
                let binomial = Binomial::new(count, probability);
                let covered =
                    |low: u64, high: u64| (low..high).map(|k| binomial.at(k)).sum::<f64>();
                let confidence = 0.95 - 1e-12;
                assert!(
                    covered(low, high) >= confidence,
                    "n {count} p {probability}"
                );
                assert!(
                    covered(low + 1, high - 1) < confidence,
                    "n {count} p {probability}"
                );
            }
        }
    }

    #[test]
    fn probabilities_outside_the_open_interval_are_refused() {
        for wrong in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Quantile::of(&ramp(9), wrong, 0.95), None);
            assert_eq!(Quantile::of(&ramp(9), 0.5, wrong), None);
        }
        assert!(
            Quantile::of(&ramp(9), 1.0 - f64::EPSILON / 2.0, 0.95)
                .unwrap()
                .value_ns
                .is_none()
        );
        assert_eq!(needed_count(f64::MIN_POSITIVE, 0.95), Some(u64::MAX));
    }
}
