//! Whether a fitted law describes the values it was fitted to.

use super::ties::spread;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Resamples of the parametric bootstrap: p-values come in steps of 0.005.
const RESAMPLES: u32 = 199;

/// A continuous law that can be fitted.
pub(super) trait Law: Sized {
    /// The law of these ascending values; `None` when they determine none.
    fn fit(ascending: &[f64]) -> Option<Self>;
    /// P(X <= x).
    fn cdf(&self, x: f64) -> f64;
    /// The value that a share `probability` of all stays below.
    fn quantile(&self, probability: f64) -> f64;

    /// `count` values of this law, ascending. Sums of exponential gaps are uniform order statistics, so nothing is
    /// sorted.
    fn draw(&self, count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let mut sum = 0.0;
        let mut values: Vec<f64> = (0..count)
            .map(|_| {
                sum += exponential(random);
                sum
            })
            .collect();
        sum += exponential(random);
        for value in &mut values {
            *value = self.quantile(*value / sum);
        }
        values
    }
}

fn exponential(random: &mut Xoshiro256PlusPlus) -> f64 {
    // Never 0, so that the smallest order statistic is inside the law's support.
    -(1.0 - random.random::<f64>()).ln() + f64::MIN_POSITIVE
}

/// Anderson and Darling's A² = -n - Σ (2i-1)/n · (ln F(x_i) + ln(1 - F(x_(n+1-i)))), which weighs the ends of the
/// distribution more than its middle ("A test of goodness of fit", J. American Statistical Association 49, 1954).
pub(super) fn anderson_darling(law: &impl Law, ascending: &[f64]) -> f64 {
    let n = ascending.len();
    let share: Vec<f64> = ascending
        .iter()
        .map(|&x| law.cdf(x).clamp(1e-12, 1.0 - 1e-12))
        .collect();
    let sum: f64 = (0..n)
        .map(|i| (2 * i + 1) as f64 * (share[i].ln() + (-share[n - 1 - i]).ln_1p()))
        .sum();
    -(n as f64) - sum / n as f64
}

/// The p-value of the fit by parametric bootstrap: values are drawn from the fitted law, rounded to the clock's step
/// and spread again as the measured ones were, fitted and tested, since A² of fitted laws has no table of its own.
pub(super) fn p_value<L: Law>(
    law: &L,
    ascending: &[f64],
    step: f64,
    random: &mut Xoshiro256PlusPlus,
) -> f64 {
    let measured = anderson_darling(law, ascending);
    let mut worse = 1;
    for _ in 0..RESAMPLES {
        let mut drawn = law.draw(ascending.len(), random);
        spread(&mut drawn, step);
        let reached = match L::fit(&drawn) {
            Some(fitted) => anderson_darling(&fitted, &drawn) >= measured,
            None => true,
        };
        worse += u32::from(reached);
    }
    f64::from(worse) / f64::from(RESAMPLES + 1)
}

#[cfg(test)]
mod tests {
    use super::super::pareto::Pareto;
    use super::*;
    use rand::SeedableRng;

    /// The law's own quantiles fit better than almost any draw; two heaps at the ends fit worse than every one.
    #[test]
    fn good_and_bad_fits() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let law = Pareto {
            shape: 0.1,
            scale: 7.0,
        };
        let good: Vec<f64> = (0..200)
            .map(|i| law.quantile((f64::from(i) + 0.5) / 200.0))
            .collect();
        let fit = Pareto::fit(&good).unwrap();
        assert!(p_value(&fit, &good, 0.0, &mut random) > 0.9);
        let bad: Vec<f64> = (0..200)
            .map(|i| f64::from(i) * 0.01 + if i < 120 { 1.0 } else { 50.0 })
            .collect();
        let fit = Pareto::fit(&bad).unwrap();
        assert!(p_value(&fit, &bad, 0.0, &mut random) < 0.01);
    }

    /// Of 200 true samples about 5 % are refused at 5 %, coarse clocks included.
    #[test]
    fn true_laws_are_refused_at_the_nominal_rate() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        for step in [0.0, 3.0] {
            let law = Pareto {
                shape: 0.2,
                scale: 10.0,
            };
            let refused = (0..200)
                .filter(|_| {
                    let mut drawn = law.draw(100, &mut random);
                    spread(&mut drawn, step);
                    let fit = Pareto::fit(&drawn).unwrap();
                    p_value(&fit, &drawn, step, &mut random) <= 0.05
                })
                .count();
            assert!((2..=22).contains(&refused), "{step} {refused}");
        }
    }
}
