//! Which second state of the machine would have been found, had there been one: the same jobs with one planted in them tell.

use super::{States, Turn};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many times as long jobs take in the planted state: between two threads of a core that is little.
pub const PLANTED_FACTOR: f64 = 1.5;
/// Shares of the jobs that may be tried, the smallest first.
const SHARES: [f64; 5] = [0.02, 0.03, 0.05, 0.1, 0.2];
/// Its shortest and longest stay in jobs, drawn log-uniformly: the range seen beside a neighbour on the sibling thread.
const STAYS: (f64, f64) = (10.0, 160.0);
/// Jobs that fit between two turns.
const BETWEEN: f64 = 2.0;
/// It counts as found if it is in all of so many plantings: were it found in 4 of 5, this happens half of the time.
const PLANTINGS: u64 = 3;

impl States {
    /// From which share of jobs on a second state would have been found in these turns, in which none was: the smallest of 0.02, 0.03, 0.05,
    /// 0.1 and 0.2 that was found and above which every one was; `None` if not even a fifth was. The state makes jobs [`PLANTED_FACTOR`] times as long, in stays of 10 to 160
    /// jobs. The same turns give the same answer.
    pub fn least_share_found(rounds: &[Vec<Turn>]) -> Option<f64> {
        // A state that takes more of the time is not always found more often, so that a share below one that is not found tells nothing.
        let is_found = |&share: &f64| {
            (0..PLANTINGS).all(|seed| States::find(&planted(rounds, share, seed)).is_some())
        };
        SHARES.into_iter().rev().take_while(is_found).last()
    }
}

fn planted(rounds: &[Vec<Turn>], share: f64, seed: u64) -> Vec<Vec<Turn>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut is_slow = false;
    let mut stay = |is_slow: bool| {
        let (shortest, longest): (f64, f64) = STAYS;
        let stay = shortest * (longest / shortest).powf(random.random());
        match is_slow {
            true => stay,
            false => stay * (1.0 - share) / share,
        }
    };
    // The first round may begin anywhere in a stay.
    let mut left = stay(is_slow) * 0.5;
    let mut after = |jobs: f64| {
        left -= jobs;
        if left <= 0.0 {
            is_slow = !is_slow;
            left = stay(is_slow);
        }
        is_slow
    };
    let mut turn = |turn: &Turn| {
        let values_ns = turn.values_ns.iter().map(|&value| match after(1.0) {
            true => (value as f64 * PLANTED_FACTOR) as i64,
            false => value,
        });
        let values_ns = values_ns.collect();
        after(BETWEEN);
        Turn {
            arm: turn.arm,
            values_ns,
        }
    };
    (rounds
        .iter()
        .map(|turns| turns.iter().map(&mut turn).collect()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs that differ by 1 % show a state of a fiftieth, such that differ by a factor of up to five none that makes them half again as long.
    #[test]
    fn what_would_have_been_found_depends_on_the_noise() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut of = |spread: f64| {
            let mut turn = |arm| Turn {
                arm,
                values_ns: (0..10)
                    .map(|_| (27_000.0 * (spread * random.random::<f64>()).exp()) as i64)
                    .collect(),
            };
            let rounds: Vec<Vec<Turn>> = (0..4)
                .map(|_| (0..240).map(|place| turn(place % 3)).collect())
                .collect();
            assert!(States::find(&rounds).is_none(), "{spread}");
            States::least_share_found(&rounds)
        };
        assert_eq!(of(0.04), Some(0.02));
        assert_eq!(of(1.6), None);
    }
}
