//! A ratio, its confidence interval, and its verdict.

use super::bootstrap::mean;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The verdict on a ratio at its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval encloses 1: no difference was shown, which does not show that there is none.
    WithinNoise,
    /// The interval encloses 1 and its ends are further apart than a factor of 2: one may as well be twice the
    /// other, so that more rounds are needed to say anything.
    TooWide,
    /// The whole interval lies above 1.
    Larger,
    /// The whole interval lies below 1.
    Smaller,
    /// There is no interval, so nothing can be said about noise.
    Undecided,
}

/// The factor between the ends of an interval around 1 beyond which it does not say "the same".
pub const TOO_WIDE: f64 = 2.0;

/// Rounds below which no ratio is given that leaves some out.
pub(crate) const FEWEST_ROUNDS: usize = 3;

/// A ratio without unit, of the other to the baseline, and its confidence interval: low <= value <= high.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate, positive.
    pub value: f64,
    /// The lower end of the interval, positive. `None` with fewer than 2 rounds, or when a resampled quantile was not
    /// positive, so that the spread of the logarithm is unknown.
    pub low: Option<f64>,
    /// The upper end of the interval; absent exactly when the lower is.
    pub high: Option<f64>,
    /// The probability with which such intervals enclose the true ratio, strictly between 0 and 1.
    pub confidence: f64,
    /// The verdict that follows.
    pub verdict: Verdict,
}

impl Ratio {
    /// How probable a ratio as far from 1 as this is where there is no difference, from 0 to 1, if the interval rests on so
    /// many rounds. `None` without an interval.
    pub fn p_value(&self, rounds: u32) -> Option<f64> {
        let t = student(rounds as usize, self.confidence)?;
        let error = (self.high? / self.low?).ln() / 2.0 / t;
        if error <= 0.0 {
            return Some(f64::from(u8::from(self.value == 1.0)));
        }
        let distribution = StudentsT::new(0.0, 1.0, f64::from(rounds - 1)).ok()?;
        Some(2.0 * distribution.cdf(-self.value.ln().abs() / error))
    }

    /// From the logarithms of the ratios of independent rounds, and the error of each by the resolution of its values
    /// (relative): the geometric mean with Student's interval. `None` without a round.
    pub(crate) fn of_logs(logs: &[f64], resolution: f64, confidence: f64) -> Option<Self> {
        let centre = mean(logs.iter().copied())?;
        let squares = mean(logs.iter().map(|log| (log - centre).powi(2)))?;
        // The standard error that a bootstrap over rounds has, which lacks the factor that `new` brings.
        let error = (squares / logs.len() as f64).sqrt();
        let resolution = resolution.max(0.0).ln_1p();
        Some(Self::new(
            centre,
            Some(error),
            resolution,
            logs.len(),
            confidence,
        ))
    }

    /// The same from those rounds that have a logarithm, and how many these are. `None` and 0 if some have none and fewer than
    /// [`FEWEST_ROUNDS`] are left.
    pub(crate) fn of_some_logs(
        logs: &[Option<f64>],
        resolution: f64,
        confidence: f64,
    ) -> (Option<Self>, u32) {
        let present: Vec<f64> = logs.iter().flatten().copied().collect();
        if present.len() < FEWEST_ROUNDS.min(logs.len()) {
            return (None, 0);
        }
        let ratio = Self::of_logs(&present, resolution, confidence);
        let rounds = ratio.as_ref().map_or(0, |_| present.len());
        (ratio, u32::try_from(rounds).unwrap_or(u32::MAX))
    }

    /// From the estimate of the logarithm, the bootstrap standard error of it (if there is one), the error of the logarithm by the resolution of its
    /// values, and the rounds both rest on. Ends are kept within 2^±63, as no ratio of positive 64-bit nanoseconds lies outside.
    pub(super) fn new(
        log: f64,
        standard_error: Option<f64>,
        resolution: f64,
        rounds: usize,
        confidence: f64,
    ) -> Self {
        let bound = 63.0 * std::f64::consts::LN_2;
        let margin = standard_error
            .zip(calibration(rounds, confidence))
            .map(|(error, factor)| error * factor + resolution);
        let low = margin.map(|margin| (log - margin).max(-bound).exp());
        let high = margin.map(|margin| (log + margin).min(bound).exp());
        let verdict = match (low, high) {
            (Some(low), Some(_)) if low > 1.0 => Verdict::Larger,
            (Some(_), Some(high)) if high < 1.0 => Verdict::Smaller,
            (Some(low), Some(high)) if high > TOO_WIDE * low => Verdict::TooWide,
            (Some(_), Some(_)) => Verdict::WithinNoise,
            _ => Verdict::Undecided,
        };
        Self {
            value: log.exp(),
            low,
            high,
            confidence,
            verdict,
        }
    }
}

/// √(n/(n-1)) · t(n-1): the half width of an interval in bootstrap standard errors over n rounds, see
/// [`compare`](super::compare()). `None` with fewer than 2 rounds.
fn calibration(rounds: usize, confidence: f64) -> Option<f64> {
    let t = student(rounds, confidence)?;
    let factor = (rounds as f64 / (rounds - 1) as f64).sqrt() * t;
    factor.is_finite().then_some(factor)
}

/// Student's t with one degree of freedom less than rounds that encloses so much. `None` with fewer than 2 rounds.
pub(crate) fn student(rounds: usize, confidence: f64) -> Option<f64> {
    (rounds >= 2).then_some(())?;
    let distribution = StudentsT::new(0.0, 1.0, (rounds - 1) as f64).ok()?;
    let t = distribution.inverse_cdf(0.5 + confidence / 2.0);
    t.is_finite().then_some(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t(0.975) with 1, 2, 4 and 9 degrees of freedom: 12.7062, 4.30265, 2.77645, 2.26216 (any table).
    #[test]
    fn the_calibration_matches_the_table_of_student() {
        for (rounds, t) in [(2, 12.7062), (3, 4.30265), (5, 2.77645), (10, 2.26216)] {
            let n = rounds as f64;
            let factor = calibration(rounds, 0.95).unwrap();
            assert!(
                (factor - (n / (n - 1.0)).sqrt() * t).abs() < 1e-4,
                "{rounds}: {factor}"
            );
        }
        assert_eq!(calibration(1, 0.95), None);
    }

    #[test]
    fn an_interval_that_ends_at_1_has_the_p_value_of_its_confidence() {
        let logs = [0.01, 0.02, 0.03, 0.05];
        let ratio = Ratio::of_logs(&logs, 0.0, 0.95).unwrap();
        let p = ratio.p_value(4).unwrap();
        let at = Ratio::of_logs(&logs, 0.0, 1.0 - p).unwrap();
        assert!((at.low.unwrap() - 1.0).abs() < 1e-9, "{at:?}");
        assert_eq!(
            Ratio::of_logs(&[0.0, 0.0], 0.0, 0.95).unwrap().p_value(2),
            Some(1.0)
        );
        assert_eq!(Ratio::of_logs(&[0.1], 0.0, 0.95).unwrap().p_value(1), None);
    }

    #[test]
    fn the_verdict_follows_the_interval() {
        let verdict = |value: f64, error| Ratio::new(value.ln(), error, 0.0, 5, 0.95).verdict;
        assert_eq!(verdict(1.1, Some(0.001)), Verdict::Larger);
        assert_eq!(verdict(0.9, Some(0.001)), Verdict::Smaller);
        assert_eq!(verdict(1.1, Some(0.1)), Verdict::WithinNoise);
        assert_eq!(verdict(1.0, Some(0.0)), Verdict::WithinNoise);
        assert_eq!(verdict(1.1, Some(0.3)), Verdict::TooWide);
        assert_eq!(verdict(1.1, None), Verdict::Undecided);
    }

    #[test]
    fn ends_stay_finite_and_positive() {
        let ratio = Ratio::new(40.0, Some(1e6), 0.0, 2, 0.95);
        assert_eq!(ratio.verdict, Verdict::TooWide);
        assert!(ratio.low.unwrap() > 0.0 && ratio.high.unwrap().is_finite());
    }
}
