//! The binomial probabilities that distribution-free intervals are made of.
//!
//! Summed outwards from the mode with the exact ratio of neighbouring terms, then normalised. This needs no special
//! function and its error grows only with the width of the sum; the continued fraction for the incomplete beta
//! function in `statrs` is cut off after a fixed number of terms and is wrong in the middle of the distribution from
//! about a million trials on, which is an ordinary length for a run.

/// Terms smaller than this part of the largest one are left out: far below the resolution of `f64`.
const NEGLIGIBLE: f64 = 1e-20;

/// The probability mass of a binomial distribution where it is not negligible.
pub(crate) struct Binomial {
    /// The number of successes that `mass[0]` belongs to.
    first: u64,
    /// Probabilities of `first`, `first + 1`, ...; they sum to 1.
    mass: Vec<f64>,
}

impl Binomial {
    /// The distribution of the number of successes in `trials`, each with `probability` (strictly between 0 and 1).
    pub fn new(trials: u64, probability: f64) -> Self {
        let mode = (((trials as f64 + 1.0) * probability).floor() as u64).min(trials);
        let odds = probability / (1.0 - probability);

        let mut mass = Vec::new();
        let (mut successes, mut weight) = (mode, 1.0);
        while successes > 0 {
            weight *= successes as f64 / ((trials - successes + 1) as f64 * odds);
            if weight < NEGLIGIBLE {
                break;
            }
            successes -= 1;
            mass.push(weight);
        }
        let first = successes;
        mass.reverse();

        mass.push(1.0);
        (successes, weight) = (mode, 1.0);
        while successes < trials {
            weight *= (trials - successes) as f64 * odds / (successes + 1) as f64;
            if weight < NEGLIGIBLE {
                break;
            }
            successes += 1;
            mass.push(weight);
        }

        let total: f64 = mass.iter().sum();
        mass.iter_mut().for_each(|weight| *weight /= total);
        Self { first, mass }
    }

    /// The probability of exactly this many successes.
    pub fn at(&self, successes: u64) -> f64 {
        let index = successes
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok());
        index
            .and_then(|index| self.mass.get(index))
            .copied()
            .unwrap_or(0.0)
    }

    /// The largest k with P(successes < k) <= `tail`.
    pub fn largest_with_fewer(&self, tail: f64) -> u64 {
        self.first + within(self.mass.iter(), tail)
    }

    /// The smallest k with P(successes >= k) <= `tail`.
    pub fn smallest_with_at_least(&self, tail: f64) -> u64 {
        self.first + self.mass.len() as u64 - within(self.mass.iter().rev(), tail)
    }
}

/// How many leading terms sum to no more than `tail`.
fn within<'a>(mass: impl Iterator<Item = &'a f64>, tail: f64) -> u64 {
    let mut sum = 0.0;
    mass.take_while(|&&term| {
        sum += term;
        sum <= tail
    })
    .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Binomial as Reference, Discrete};

    #[test]
    fn small_distributions_match_an_independent_implementation() {
        for (trials, probability) in [(1, 0.5), (7, 0.1), (100, 0.5), (500, 0.99), (2_000, 0.25)] {
            let ours = Binomial::new(trials, probability);
            let reference = Reference::new(probability, trials).unwrap();
            for successes in 0..=trials {
                let (got, wanted) = (ours.at(successes), reference.pmf(successes));
                assert!(
                    (got - wanted).abs() < 1e-12,
                    "{trials} {probability} {successes}: {got} {wanted}"
                );
            }
        }
    }

    /// By symmetry P(B <= n/2) = (1 + P(B = n/2)) / 2, and by Stirling P(B = n/2) = sqrt(2 / (π n)) (1 - 1/(4n)).
    #[test]
    fn the_middle_of_a_large_distribution_is_right() {
        for trials in [1_000_000_u64, 100_000_000] {
            let n = trials as f64;
            let centre = (2.0 / (std::f64::consts::PI * n)).sqrt() * (1.0 - 0.25 / n);
            let binomial = Binomial::new(trials, 0.5);
            assert!((binomial.at(trials / 2) / centre - 1.0).abs() < 1e-9);
            assert_eq!(binomial.largest_with_fewer(0.5 + centre * 0.49), trials / 2);
            assert_eq!(
                binomial.largest_with_fewer(0.5 + centre * 0.51),
                trials / 2 + 1
            );
        }
    }

    /// B(4, 1/2) has mass 1/16, 4/16, 6/16, 4/16, 1/16.
    #[test]
    fn tails_by_hand() {
        let binomial = Binomial::new(4, 0.5);
        assert_eq!(binomial.largest_with_fewer(0.05), 0);
        assert_eq!(binomial.largest_with_fewer(1.0 / 16.0 + 1e-12), 1);
        assert_eq!(binomial.largest_with_fewer(5.0 / 16.0 + 1e-12), 2);
        assert_eq!(binomial.smallest_with_at_least(0.05), 5);
        assert_eq!(binomial.smallest_with_at_least(1.0 / 16.0 + 1e-12), 4);
    }
}
