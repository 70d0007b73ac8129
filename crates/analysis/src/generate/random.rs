//! Random numbers that a seed determines.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers that a seed determines: xoshiro256++ (Blackman & Vigna, ACM TOMS 2021).
///
/// ```
/// use timecell_analysis::generate::Random;
///
/// assert_eq!(Random::new(7).unit(), Random::new(7).unit());
/// assert_ne!(Random::new(7).unit(), Random::new(8).unit());
/// ```
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of a seed.
    ///
    /// ```
    /// assert_eq!(timecell_analysis::generate::Random::new(0).unit(), timecell_analysis::generate::Random::new(0).unit());
    /// ```
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The stream of the set with this index under a seed: sets can be made in any order, on any number of threads.
    ///
    /// ```
    /// use timecell_analysis::generate::Random;
    ///
    /// assert_ne!(Random::of_set(1, 0).unit(), Random::of_set(1, 1).unit());
    /// assert_ne!(Random::of_set(1, 1).unit(), Random::of_set(2, 0).unit());
    /// ```
    pub fn of_set(seed: u64, index: u64) -> Random {
        // The odd constant of splitmix64 keeps seeds and indices from meeting: (s, i) and (s + 1, i - 1) differ.
        Random::new(seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    ///
    /// ```
    /// let draw = timecell_analysis::generate::Random::new(1).unit();
    /// assert!((0.0..1.0).contains(&draw) && (draw * (1u64 << 53) as f64).fract() == 0.0);
    /// ```
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    ///
    /// ```
    /// assert!((2.0..3.0).contains(&timecell_analysis::generate::Random::new(1).between(2.0, 3.0)));
    /// ```
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// In random order, each order as likely as any other (Fisher & Yates).
    ///
    /// ```
    /// let mut items = [1, 2, 3, 4];
    /// timecell_analysis::generate::Random::new(1).shuffle(&mut items);
    /// items.sort();
    /// assert_eq!(items, [1, 2, 3, 4]);
    /// ```
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = (self.unit() * (last + 1) as f64) as usize;
            items.swap(last, other.min(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_same_on_every_machine() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..3)
            .map(|_| (random.unit() * (1u64 << 53) as f64) as u64)
            .collect();
        // By the published algorithm (splitmix64 into xoshiro256++), computed elsewhere.
        assert_eq!(
            drawn,
            [
                7_310_352_432_619_640,
                6_729_321_042_593_788,
                902_079_143_671_134
            ]
        );
    }

    #[test]
    fn sets_of_a_seed_have_streams_of_their_own() {
        let first = |seed, index| Random::of_set(seed, index).unit().to_bits();
        let mut all: Vec<u64> = (0..20)
            .flat_map(|seed| (0..20).map(move |index| first(seed, index)))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 400);
    }

    #[test]
    fn units_are_spread_evenly() {
        let mut random = Random::new(3);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[(random.unit() * 10.0) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&count| (900..1100).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut items: Vec<u32> = (0..50).collect();
        Random::new(5).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
