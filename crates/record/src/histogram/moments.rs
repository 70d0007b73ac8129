//! Mean, deviations and correlation of a stream, in integers until the end.

/// Sums of the values' distances from the first one: exact, and small enough for 128 bits.
#[derive(Debug, Clone, Default)]
pub(super) struct Moments {
    count: u64,
    first: i64,
    last: i128,
    sum: i128,
    squares: i128,
    products: i128,
}

impl Moments {
    pub(super) fn take(&mut self, value: i64) {
        if self.count == 0 {
            self.first = value;
        }
        let distance = i128::from(value) - i128::from(self.first);
        self.sum += distance;
        self.squares = self
            .squares
            .saturating_add(distance.saturating_mul(distance));
        self.products = self
            .products
            .saturating_add(self.last.saturating_mul(distance));
        self.last = distance;
        self.count += 1;
    }

    /// The mean; 0 without values.
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.first as f64 + self.offset()
    }

    /// The mean distance from the first value.
    fn offset(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// Sum of the squared deviations from the mean, never negative.
    pub(super) fn squared_deviations(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        (self.squares as f64 - self.sum as f64 * self.offset()).max(0.0)
    }

    /// The sample autocorrelation at lag 1, as [`stats::autocorrelation`] defines it.
    pub(super) fn lag1(&self) -> Option<f64> {
        let variance = self.squared_deviations();
        if self.count < 2 || variance <= 0.0 {
            return None;
        }
        // Each distance is a factor of two products, but for the first (which is 0) and the last.
        let factors = 2 * self.sum - self.last;
        let mean = self.offset();
        let products =
            self.products as f64 - mean * factors as f64 + (self.count - 1) as f64 * mean * mean;
        Some((products / variance).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_from_the_whole_series(
            values in prop::collection::vec(-1_000_000i64..1_000_000_000, 1..200), far in any::<bool>(),
        ) {
            let shift = if far { 1 << 40 } else { 0 };
            let values: Vec<i64> = values.iter().map(|v| v + shift).collect();
            let mut moments = Moments::default();
            values.iter().for_each(|&value| moments.take(value));
            let summary = stats::Summary::of(&stats::Sorted::new(values.clone())).unwrap();
            prop_assert!((moments.mean() - summary.mean_ns).abs() <= 1e-9 * summary.mean_ns.abs().max(1.0));
            if let Some(sd) = summary.sd_ns {
                let mine = (moments.squared_deviations() / (values.len() - 1) as f64).sqrt();
                prop_assert!((mine - sd).abs() <= 1e-6 * sd.max(1e-3), "{} {}", mine, sd);
            }
            match (moments.lag1(), stats::autocorrelation(&values, 1)) {
                (Some(mine), Some(whole)) => prop_assert!((mine - whole).abs() < 1e-6, "{} {}", mine, whole),
                (mine, whole) => prop_assert_eq!(mine, whole),
            }
        }
    }
}
