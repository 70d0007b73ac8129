//! Comparing rounds of which only quantiles are known.

use super::{CompareError, Comparison, Ratio, Side};
use crate::DEFAULT_CONFIDENCE;

/// The quantiles of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundQuantiles {
    /// Its median in nanoseconds.
    pub median_ns: i64,
    /// Its 99th percentile in nanoseconds; `None` when it has too few samples to bound it.
    pub p99_ns: Option<i64>,
}

/// Compares the rounds of `other` with those of `baseline` by their quantiles alone, where histograms were kept and
/// jobs cannot be drawn again.
///
/// The estimate is that of [`compare`](super::compare()). Its interval is Student's for the mean of the logarithms of
/// the rounds' ratios, paired, widened on both sides by `resolution`, the relative error of the quantiles: noise
/// between rounds is in it, noise within them only as far as it shows between them. With one round there is none.
///
/// # Errors
/// When rounds are missing on one side, or a median is not positive.
pub fn compare_quantiles(
    baseline: &[RoundQuantiles],
    other: &[RoundQuantiles],
    resolution: f64,
) -> Result<Comparison, CompareError> {
    if baseline.len() != other.len() {
        return Err(CompareError::UnequalRounds {
            baseline: baseline.len(),
            other: other.len(),
        });
    }
    for (side, rounds) in [(Side::Baseline, baseline), (Side::Other, other)] {
        if let Some((round, low)) = rounds.iter().enumerate().find(|(_, r)| r.median_ns <= 0) {
            return Err(CompareError::NonPositiveMedian {
                side,
                round,
                median_ns: low.median_ns,
            });
        }
    }
    let pairs = || baseline.iter().zip(other);
    let medians: Vec<f64> = pairs()
        .map(|(b, o)| log(b.median_ns, o.median_ns))
        .collect();
    let p99: Vec<Option<f64>> = pairs()
        .map(|(b, o)| {
            let (b, o) = (b.p99_ns?, o.p99_ns?);
            (b > 0 && o > 0).then(|| log(b, o))
        })
        .collect();
    let (ratio_of_p99, rounds_of_p99) = Ratio::of_some_logs(&p99, resolution, DEFAULT_CONFIDENCE);
    Ok(Comparison {
        ratio_of_medians: Ratio::of_logs(&medians, resolution, DEFAULT_CONFIDENCE)
            .ok_or(CompareError::NoRounds)?,
        ratio_of_p99,
        rounds: u32::try_from(baseline.len()).unwrap_or(u32::MAX),
        rounds_of_p99,
    })
}

fn log(baseline: i64, other: i64) -> f64 {
    (other as f64).ln() - (baseline as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn rounds(medians: &[i64]) -> Vec<RoundQuantiles> {
        medians
            .iter()
            .map(|&median_ns| RoundQuantiles {
                median_ns,
                p99_ns: Some(median_ns * 2),
            })
            .collect()
    }

    /// Logarithms 0, 0.1 and 0.2: mean 0.1, standard error 0.1/√3, t(0.975, 2) = 4.30265.
    #[test]
    fn students_interval_by_hand() {
        let at = |log: f64| (1e9 * log.exp()).round() as i64;
        let base = rounds(&[1_000_000_000; 3]);
        let c = compare_quantiles(&base, &rounds(&[at(0.0), at(0.1), at(0.2)]), 0.0).unwrap();
        let margin = 4.302_65 * 0.1 / 3f64.sqrt();
        let ratio = &c.ratio_of_medians;
        assert!((ratio.value.ln() - 0.1).abs() < 1e-8);
        assert!(
            (ratio.high.unwrap().ln() - 0.1 - margin).abs() < 1e-5,
            "{ratio:?}"
        );
        assert_eq!(
            c.ratio_of_p99.as_ref().unwrap().verdict,
            Verdict::WithinNoise
        );
    }

    #[test]
    fn equal_rounds_differ_only_beyond_the_resolution() {
        let base = rounds(&[1000; 4]);
        let verdict = |median, resolution| {
            let c = compare_quantiles(&base, &rounds(&[median; 4]), resolution).unwrap();
            c.ratio_of_medians.verdict
        };
        assert_eq!(verdict(1001, 0.002), Verdict::WithinNoise);
        assert_eq!(verdict(1003, 0.002), Verdict::Larger);
        assert_eq!(
            compare_quantiles(&base[..1], &rounds(&[1001]), 0.0)
                .unwrap()
                .ratio_of_medians
                .verdict,
            Verdict::Undecided
        );
    }

    #[test]
    fn what_cannot_be_compared_says_so() {
        assert!(compare_quantiles(&rounds(&[1, 2]), &rounds(&[1]), 0.0).is_err());
        assert!(compare_quantiles(&rounds(&[0]), &rounds(&[1]), 0.0).is_err());
        assert!(compare_quantiles(&[], &[], 0.0).is_err());
    }
}
