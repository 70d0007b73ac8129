//! The generalised Pareto distribution of excesses over a threshold.

use super::goodness::Law;
use super::lmoments::lmoments;

/// P(Y > y) = (1 + shape·y/scale)^(-1/shape) for y >= 0, the limit exp(-y/scale) where the shape is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pareto {
    /// Above 0 a heavy tail, below 0 an end at -scale/shape.
    pub shape: f64,
    pub scale: f64,
}

/// Below this, the shape is 0 to the precision of the arithmetic.
pub(super) const FLAT: f64 = 1e-9;

impl Law for Pareto {
    /// By L-moments: shape = 2 - l1/l2 and scale = (1 - shape)·l1 (Hosking and Wallis, "Parameter and quantile
    /// estimation for the generalized Pareto distribution", Technometrics 29(3), 1987, where the sign of the shape is
    /// the opposite one).
    fn fit(ascending: &[f64]) -> Option<Self> {
        let moments = lmoments(ascending)?;
        let shape = 2.0 - moments.l1 / moments.l2;
        let scale = (1.0 - shape) * moments.l1;
        (scale > 0.0 && shape.is_finite()).then_some(Self { shape, scale })
    }

    fn cdf(&self, y: f64) -> f64 {
        if self.shape.abs() < FLAT {
            return -(-y / self.scale).exp_m1();
        }
        let inner = 1.0 + self.shape * y / self.scale;
        if inner <= 0.0 {
            return 1.0;
        }
        -(-inner.ln() / self.shape).exp_m1()
    }

    fn quantile(&self, probability: f64) -> f64 {
        let log = -(-probability).ln_1p();
        if self.shape.abs() < FLAT {
            self.scale * log
        } else {
            self.scale * (self.shape * log).exp_m1() / self.shape
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_and_distribution_are_inverse() {
        for shape in [-1.0, -0.2, 0.0, 0.3] {
            let law = Pareto { shape, scale: 40.0 };
            for p in [0.01, 0.5, 0.9, 0.999] {
                assert!((law.cdf(law.quantile(p)) - p).abs() < 1e-9, "{shape} {p}");
            }
        }
        let bounded = Pareto {
            shape: -0.5,
            scale: 10.0,
        };
        assert_eq!(bounded.cdf(21.0), 1.0);
    }

    /// Evenly spaced values are a uniform distribution, which is the case shape = -1, scale = length.
    #[test]
    fn even_spacing_is_uniform() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i) + 0.5).collect();
        let law = Pareto::fit(&values).unwrap();
        assert!((law.shape + 1.0).abs() < 0.01, "{law:?}");
        assert!((law.scale - 1000.0).abs() < 5.0, "{law:?}");
    }
}
