//! The timetable of turns: cells that are compared exist at the same time and take turns on their cpu.
//!
//! The order is drawn at random before the cells are released, and each cell knows it: no message is needed, and a cell
//! sleeps until its next turn, which costs nothing. Turns are drawn in pairs of laps, the second in the reverse order of the
//! first (A B C, C B A), so that linear drift affects all cells alike; the order is drawn again for each pair. Between two
//! turns lies a period plus a random part of one, so that a job that ends late does not reach into the next turn and
//! releases do not fall into step with the machine's ticks.

/// The most arms that take turns.
pub const MOST_ARMS: u32 = 64;

/// One arm's share of the timetable of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timetable {
    /// Jobs of a turn, at least 1.
    pub jobs: u32,
    /// Periods added to the jobs of a turn.
    pub extra: u32,
    /// Time between the releases of a turn, ns, at least 1.
    pub period_ns: i64,
    /// Arms that take turns, 1 to [`MOST_ARMS`].
    pub arms: u32,
    /// The index of this arm, from 0.
    pub arm: u32,
    /// Seed of the order: the same for all arms of a round.
    pub seed: u64,
}

impl Timetable {
    /// Whether all values are in range.
    pub fn is_possible(&self) -> bool {
        self.jobs > 0
            && self.period_ns > 0
            && (1..=MOST_ARMS).contains(&self.arms)
            && self.arm < self.arms
    }

    /// The periods of a turn, ns.
    pub fn turn_length_ns(&self) -> i64 {
        (i64::from(self.jobs) + i64::from(self.extra)) * self.period_ns
    }

    /// Minimum time from the beginning of one turn to that of the next, ns.
    pub fn slot_ns(&self) -> i64 {
        self.turn_length_ns() + 2 * self.period_ns
    }

    /// One turn of each arm, ns.
    pub fn lap_ns(&self) -> i64 {
        self.slot_ns() * i64::from(self.arms)
    }

    /// The time until every arm has had turns for `jobs` jobs, ns.
    pub fn whole_ns(&self, jobs: u32) -> i64 {
        i64::from(jobs.div_ceil(self.jobs)) * self.lap_ns()
    }

    /// The first release of this arm's turn in a lap (from 0), ns after the round's.
    pub fn turn_ns(&self, lap: u32) -> i64 {
        let place = self.place(lap);
        let slot = u64::from(lap) * u64::from(self.arms) + u64::from(place);
        let within = mix(self.seed ^ !slot) % self.period_ns.unsigned_abs();
        i64::from(lap) * self.lap_ns() + i64::from(place) * self.slot_ns() + within as i64
    }

    /// This arm's place in a lap, from 0.
    fn place(&self, lap: u32) -> u32 {
        let mut order: [u32; MOST_ARMS as usize] = std::array::from_fn(|arm| arm as u32);
        let drawn = &mut order[..self.arms as usize];
        shuffle(drawn, self.seed.wrapping_add(u64::from(lap / 2)));
        let place = (order.iter()).position(|&arm| arm == self.arm);
        let place = place.map_or(0, |place| place as u32);
        if lap.is_multiple_of(2) {
            place
        } else {
            self.arms - 1 - place
        }
    }
}

/// Shuffles things into an order drawn from the seed (Fisher and Yates' shuffle; for fewer than 2^32 things the remainder's
/// bias is below 2^-32).
pub fn shuffle<T>(things: &mut [T], seed: u64) {
    let mut word = mix(seed);
    for last in (1..things.len()).rev() {
        word = mix(word);
        things.swap(last, (word % (last as u64 + 1)) as usize);
    }
}

/// A step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arm(arm: u32, arms: u32, seed: u64) -> Timetable {
        Timetable {
            jobs: 10,
            extra: 2,
            period_ns: 1_000_000,
            arms,
            arm,
            seed,
        }
    }

    proptest! {
        #[test]
        fn no_two_turns_meet_and_every_lap_has_one_of_each(arms in 1..=MOST_ARMS, seed: u64, lap in 0..100_000_u32) {
            let all: Vec<Timetable> = (0..arms).map(|a| arm(a, arms, seed)).collect();
            let mut begins: Vec<i64> = all.iter().map(|arm| arm.turn_ns(lap)).collect();
            begins.sort_unstable();
            let lap_ns = all[0].lap_ns();
            prop_assert!(begins[0] >= i64::from(lap) * lap_ns);
            prop_assert!(begins.windows(2).all(|two| two[1] - two[0] > 12 * 1_000_000));
            let end = begins.last().unwrap() + 13 * 1_000_000;
            prop_assert!(end <= i64::from(lap + 1) * lap_ns);
        }
    }

    #[test]
    fn a_second_lap_is_the_first_in_reverse() {
        for seed in 0..50 {
            for pair in 0..20 {
                let places = |lap| {
                    (0..5)
                        .map(|a| arm(a, 5, seed).place(lap))
                        .collect::<Vec<_>>()
                };
                let back: Vec<u32> = places(2 * pair + 1).iter().map(|place| 4 - place).collect();
                assert_eq!(places(2 * pair), back);
            }
        }
    }

    /// 6,000 pairs of laps: each arm is first in a third of them, with a standard deviation of 37.
    #[test]
    fn every_arm_comes_first_equally_often() {
        let mut first = [0; 3];
        for pair in 0..6_000 {
            for a in 0..3 {
                first[a as usize] += u32::from(arm(a, 3, 7).place(2 * pair) == 0);
            }
        }
        assert!(
            first.iter().all(|n| (1_850..=2_150).contains(n)),
            "{first:?}"
        );
    }
}
