//! Samples in ascending order, and the order statistics that follow from it.

/// Samples in nanoseconds, in ascending order.
///
/// Sorting is paid for once; everything that needs order takes a `&Sorted`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted(Vec<i64>);

impl Sorted {
    /// Sorts the samples (nanoseconds, any order, any sign).
    pub fn new(mut samples_ns: Vec<i64>) -> Self {
        samples_ns.sort_unstable();
        Self(samples_ns)
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no sample at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The samples in nanoseconds, ascending.
    pub fn as_slice(&self) -> &[i64] {
        &self.0
    }

    /// The empirical quantile in nanoseconds: the smallest sample that at least a fraction `probability` of all
    /// samples does not exceed, that is, the order statistic of rank ⌈n·p⌉.
    ///
    /// This is the inverse of the empirical distribution function (definition 1 of Hyndman and Fan, "Sample quantiles
    /// in statistical packages", The American Statistician 50(4), 1996): always a value that was observed, never an
    /// interpolation. `None` when there is no sample or `probability` is outside 0..=1. It says nothing about how
    /// well the sample supports it; [`Quantile`](crate::Quantile) does.
    pub fn nearest_rank(&self, probability: f64) -> Option<i64> {
        (0.0..=1.0).contains(&probability).then_some(())?;
        let rank = rank(self.len(), probability)?;
        Some(self.0[rank - 1])
    }

    /// The median in nanoseconds, by [`nearest_rank`](Self::nearest_rank): of an even number of samples, the lower of
    /// the two in the middle. `None` when there is no sample.
    pub fn median_ns(&self) -> Option<i64> {
        self.nearest_rank(0.5)
    }

    /// Mean and standard deviation (divisor n - 1; `None` for one sample) in nanoseconds; `None` when there is no
    /// sample.
    pub fn moments(&self) -> Option<(f64, Option<f64>)> {
        let mean = crate::moments::mean(&self.0)?;
        Some((mean, crate::moments::standard_deviation(&self.0)))
    }
}

impl From<Vec<i64>> for Sorted {
    fn from(samples_ns: Vec<i64>) -> Self {
        Self::new(samples_ns)
    }
}

/// The median in nanoseconds of samples in any order, the same value as [`Sorted::median_ns`], in linear time.
/// `None` when there is no sample.
pub fn median_of(samples_ns: &[i64]) -> Option<i64> {
    let rank = rank(samples_ns.len(), 0.5)?;
    let mut samples = samples_ns.to_vec();
    Some(*samples.select_nth_unstable(rank - 1).1)
}

/// The rank ⌈n·p⌉, counted from 1 and kept within 1..=n; `None` when n is 0.
///
/// The product is taken a few units in the last place too small, so that a probability with no exact binary form
/// (0.07 of 100 is 7.000000000000001) does not round up to the next rank.
pub(crate) fn rank(count: usize, probability: f64) -> Option<usize> {
    let product = count as f64 * probability * (1.0 - 4.0 * f64::EPSILON);
    (count > 0).then(|| (product.ceil() as usize).clamp(1, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_smallest_sample_that_enough_samples_do_not_exceed() {
        let sorted = Sorted::new((1..=100).rev().collect());
        for percent in 1..=100 {
            assert_eq!(sorted.nearest_rank(percent as f64 / 100.0), Some(percent));
        }
        assert_eq!(sorted.nearest_rank(0.0), Some(1));
        assert_eq!(sorted.nearest_rank(0.951), Some(96));
    }

    #[test]
    fn the_median_of_an_even_count_is_the_lower_middle() {
        assert_eq!(Sorted::new(vec![40, 10, 30, 20]).median_ns(), Some(20));
        assert_eq!(median_of(&[40, 10, 30, 20]), Some(20));
        assert_eq!(median_of(&[3, 1, 2]), Some(2));
        assert_eq!(median_of(&[i64::MIN, i64::MAX]), Some(i64::MIN));
    }

    #[test]
    fn what_does_not_exist_is_none() {
        assert_eq!(median_of(&[]), None);
        assert_eq!(Sorted::default().median_ns(), None);
        let one = Sorted::new(vec![5]);
        assert_eq!(one.nearest_rank(1.5), None);
        assert_eq!(one.nearest_rank(-0.1), None);
        assert_eq!(one.nearest_rank(f64::NAN), None);
    }
}
