//! Random numbers that are the same everywhere.

use timecell_analysis::Task;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers everywhere, one seed for each set.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included; `low` if there is nothing between.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        low + self.next() % (high - low + 1)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }

    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.between(0, from.len() as u64 - 1) as usize]
    }

    /// A task whose jobs may come late by up to half a period if the set is jittery, and whose deadline leaves room for one.
    pub fn task(&mut self, wcet: u64, period: u64, deadline: u64, jittery: bool) -> Task {
        let jitter = match jittery {
            true => self.between(0, period / 2),
            false => 0,
        };
        Task::new(wcet, period)
            .due(deadline.max(wcet))
            .jittered(jitter)
    }
}

/// How many random sets each oracle tries: `default`, or the value of the environment variable `TIMECELL_ORACLE_SETS`.
///
/// The long run is `TIMECELL_ORACLE_SETS=100000 cargo test --release -p timecell-analysis --test suite oracle`.
pub fn set_count(default: u64) -> u64 {
    match std::env::var("TIMECELL_ORACLE_SETS") {
        Ok(count) => count.parse().expect("TIMECELL_ORACLE_SETS is a number"),
        Err(_) => default,
    }
}
