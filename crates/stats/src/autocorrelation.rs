//! Autocorrelation: whether a job tells something about the next one.

use crate::moments;

/// The sample autocorrelation of a series in its recorded order at a lag (jobs), between -1 and 1.
///
/// r(k) = Σ (x(t) - m)(x(t+k) - m) / Σ (x(t) - m)², with the mean m of the whole series (Box, Jenkins, Reinsel and
/// Ljung, "Time Series Analysis", 5th ed., 2015, section 2.1). Independent jobs give values within about ±2/√n.
/// A clearly positive value at lag 1 means that the intervals of a [`Quantile`](crate::Quantile) are too narrow.
///
/// `None` when the lag is not smaller than the number of samples, or all samples are equal.
pub fn autocorrelation(series: &[i64], lag: usize) -> Option<f64> {
    (lag < series.len()).then_some(())?;
    let deviations = moments::deviations(series);
    let variance: f64 = deviations
        .clone()
        .map(|deviation| deviation * deviation)
        .sum();
    let covariance: f64 = deviations
        .clone()
        .zip(deviations.skip(lag))
        .map(|(now, later)| now * later)
        .sum();
    (variance > 0.0).then(|| (covariance / variance).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1..=5: deviations -2 -1 0 1 2, squares 10; lag 1: 2 + 0 + 0 + 2 = 4; lag 2: 0 - 1 + 0 = -1.
    #[test]
    fn a_ramp_by_hand() {
        assert_eq!(autocorrelation(&[1, 2, 3, 4, 5], 0), Some(1.0));
        assert_eq!(autocorrelation(&[1, 2, 3, 4, 5], 1), Some(0.4));
        assert_eq!(autocorrelation(&[1, 2, 3, 4, 5], 2), Some(-0.1));
    }

    #[test]
    fn alternation_is_negative() {
        let series: Vec<i64> = (0..1000).map(|job| job % 2).collect();
        assert!((autocorrelation(&series, 1).unwrap() + 0.999).abs() < 1e-12);
        assert!((autocorrelation(&series, 2).unwrap() - 0.998).abs() < 1e-12);
    }

    #[test]
    fn undefined_is_none() {
        assert_eq!(autocorrelation(&[], 0), None);
        assert_eq!(autocorrelation(&[1, 2], 2), None);
        assert_eq!(autocorrelation(&[3, 3, 3], 1), None);
        assert_eq!(autocorrelation(&[i64::MIN, i64::MAX], 1), Some(-0.5));
    }
}
