//! The precision of a run, foreseen by a short one.

use super::{Turn, lap_logs, log, mean, turns_of};
use crate::compare::{Side, student};
use crate::tail::states::SLOWER;
use crate::{DEFAULT_CONFIDENCE, median_of};
use statrs::distribution::{Beta, ChiSquared, ContinuousCDF};

/// Laps below which nothing is foreseen.
const FEWEST_LAPS: usize = 8;
/// The share of pilots whose upper limit holds.
const HOLDS: f64 = 0.8;

/// The interval that a pilot foresees, as parts of the ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Foreseen {
    /// The half width by the pilot's own figures.
    pub half_width: f64,
    /// The half width is below this in four of five cases, if the machine stays as it is and for all the slow laps that so short a pilot may not have
    /// met.
    pub at_most: f64,
    /// Laps of the pilot, how many of them were slow, and which part of all may be with 95 % confidence.
    pub laps: usize,
    /// Laps in which a turn took at least 1.1 times as long as that arm's turns do in the middle.
    pub slow_laps: usize,
    /// The upper end of the share of slow laps.
    pub slow_share_at_most: f64,
}

/// The rounds, laps and baselines of a run of turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// Laps of a round.
    pub laps: usize,
    /// Rounds.
    pub rounds: usize,
    /// Equal baselines that everything is compared with, at least 1.
    pub baselines: usize,
    /// Of its intervals.
    pub confidence: f64,
    /// How many times as long jobs take in a slow lap, above 1.
    pub slow_factor: f64,
}

/// The half width that the interval around the ratio of two arms will have in such a run, as a part of the
/// ratio, from the rounds of a pilot of two equals. `None` with a round of fewer than 8 laps in the pilot, fewer than 2 rounds, or without
/// positive medians.
///
/// Two things make rounds differ. Laps vary: neighbouring ones are correlated, so the variance of their mean comes from means of
/// overlapping batches of √n laps (Meketon and Schmeiser, "Overlapping batch means: something for nothing?", Winter
/// Simulation Conference, 1984). And each round has cells of its own: the difference of the pilot's rounds beyond their laps stays,
/// however long a round is. A pilot of few rounds knows little of the latter, which is why there is an
/// upper limit: that of a variance of normal means, by chi-square.
///
/// Nor does it know of states that it has not met. Of laps that are slow alone of all, k of n, the share may be larger, up to Clopper and
/// Pearson's bound with 95 % confidence: without a slow one 1 - 0.05^(1/n), about 3 / n ("If nothing goes wrong, is everything all right?",
/// Hanley and Lippman-Hand, JAMA 249(13), 1983). The upper limit has so many more of them, each with one of its two turns
/// `slow_factor` times as long, which adds the square of its logarithm to the variance of as many laps. The bound takes laps to be slow
/// independently of each other; of stays of many laps a pilot of a second says less.
///
/// Of the variance half is the baseline's, and so many of them leave a part of that half.
pub fn foreseen_half_width(
    pilot: &[Vec<Turn>],
    arms: [usize; 2],
    planned: Planned,
) -> Option<Foreseen> {
    let Planned { laps, rounds, .. } = planned;
    let logs: Vec<Vec<f64>> = (pilot.iter())
        .map(|turns| {
            lap_logs(turns, arms)
                .ok()
                .filter(|logs| logs.len() >= FEWEST_LAPS)
        })
        .collect::<Option<_>>()?;
    (!logs.is_empty() && laps > 0 && planned.baselines > 0).then_some(())?;
    let of_laps: Vec<f64> = logs.iter().map(|logs| long_run_variance(logs)).collect();
    let of_laps = mean(&of_laps);
    let means: Vec<f64> = logs.iter().map(|logs| mean(logs)).collect();
    let lengths: Vec<f64> = logs.iter().map(|logs| 1.0 / logs.len() as f64).collect();
    let explained = of_laps * mean(&lengths);
    let (of_cells, of_cells_at_most) = match means.len() {
        1 => (0.0, 0.0),
        n => {
            let centre = mean(&means);
            let squares: f64 = means.iter().map(|mean| (mean - centre).powi(2)).sum();
            let least = ChiSquared::new((n - 1) as f64)
                .ok()?
                .inverse_cdf(1.0 - HOLDS);
            let beyond = |variance: f64| (variance - explained).max(0.0);
            (beyond(squares / (n - 1) as f64), beyond(squares / least))
        }
    };
    let student = student(rounds, planned.confidence)?;
    let pooled = (1.0 + 1.0 / planned.baselines as f64) / 2.0;
    let half_width = |of_cells: f64, of_laps: f64| {
        let error = (pooled * (of_cells + of_laps / laps as f64) / rounds as f64).sqrt();
        (error * student).exp_m1()
    };
    let slow_laps = slow_laps(pilot, arms)?;
    let met = logs.iter().map(Vec::len).sum::<usize>();
    let slow_share_at_most = share_at_most(slow_laps, met)?;
    let beyond = slow_share_at_most - slow_laps as f64 / met as f64;
    let of_unmet = beyond * planned.slow_factor.max(1.0).ln().powi(2);
    Some(Foreseen {
        half_width: half_width(of_cells, of_laps),
        at_most: half_width(of_cells_at_most, of_laps + of_unmet),
        laps: met,
        slow_laps,
        slow_share_at_most,
    })
}

/// In how many laps a turn of one of the arms took at least [`SLOWER`] times as long as its turns do in the middle of all.
fn slow_laps(pilot: &[Vec<Turn>], arms: [usize; 2]) -> Option<usize> {
    // Of each lap of all rounds the logarithms of both medians.
    let mut laps = Vec::new();
    for turns in pilot {
        for pair in turns_of(turns, arms[0]).zip(turns_of(turns, arms[1])) {
            let medians = [pair.0, pair.1].map(|turn| median_of(&turn.values_ns));
            if let [Some(first), Some(second)] = medians {
                let of = |ns| log(Side::Other, ns).ok();
                laps.push([of(first)?, of(second)?]);
            }
        }
    }
    let usual = [0, 1].map(|arm| {
        let mut own: Vec<f64> = laps.iter().map(|lap| lap[arm]).collect();
        own.sort_unstable_by(f64::total_cmp);
        own.get(own.len() / 2).copied().unwrap_or(0.0)
    });
    let is_slow = |lap: &&[f64; 2]| {
        [0, 1]
            .iter()
            .any(|&arm| lap[arm] - usual[arm] >= SLOWER.ln())
    };
    Some(laps.iter().filter(is_slow).count())
}

/// The upper end of a share of which `hits` of `trials` are (Clopper and Pearson, one-sided).
fn share_at_most(hits: usize, trials: usize) -> Option<f64> {
    if hits >= trials {
        return Some(1.0);
    }
    let beta = Beta::new(hits as f64 + 1.0, (trials - hits) as f64).ok()?;
    Some(beta.inverse_cdf(DEFAULT_CONFIDENCE))
}

/// The variance of the mean of many such values times their number.
fn long_run_variance(values: &[f64]) -> f64 {
    let n = values.len();
    let batch = ((n as f64).sqrt() as usize).clamp(1, n / 2);
    let centre = mean(values);
    let squares = values
        .windows(batch)
        .map(|batch| (mean(batch) - centre).powi(2));
    let factor = (n * batch) as f64 / ((n - batch) * (n - batch + 1)) as f64;
    factor * squares.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn planned(rounds: usize, baselines: usize) -> Planned {
        Planned {
            laps: 100,
            rounds,
            baselines,
            confidence: 0.95,
            slow_factor: 2.0,
        }
    }

    /// Independent signs, each given so many times over.
    fn signs(count: u32, repeat: u32) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let mut sign = 1.0;
        (0..count)
            .map(|place| {
                if place % repeat == 0 {
                    sign = if random.random() { 1.0 } else { -1.0 };
                }
                sign
            })
            .collect()
    }

    /// Independent logarithms of ±1 % with t(0.975, 9) = 2.26216. From 63 batches' worth the half width is known to about 7 %.
    #[test]
    fn independent_laps_give_students_interval() {
        let turn = |arm, value| Turn {
            arm,
            values_ns: vec![value],
        };
        let turns = |skip: usize, by: f64| -> Vec<Turn> {
            signs(4_000 + skip as u32, 1)
                .into_iter()
                .skip(skip)
                .map(|sign| (1e9 * (0.01 * sign + by).exp()) as i64)
                .flat_map(|value| [turn(0, 1_000_000_000), turn(1, value)])
                .collect()
        };
        let foresee = |pilot: &[Vec<Turn>], rounds| {
            foreseen_half_width(pilot, [0, 1], planned(rounds, 1)).map(|f| f.half_width)
        };
        let half = foresee(&[turns(0, 0.0)], 10).unwrap();
        let expected = 2.262_16 * 0.01 / 1000_f64.sqrt();
        assert!((half / expected - 1.0).abs() < 0.2, "{half} {expected}");
        // Two baselines leave three quarters of the variance.
        let pooled = foreseen_half_width(&[turns(0, 0.0)], [0, 1], planned(10, 2)).unwrap();
        let part = (1.0 + pooled.half_width).ln() / (1.0 + half).ln();
        assert!((part - 0.75_f64.sqrt()).abs() < 1e-9, "{part}");
        assert!(foresee(&[turns(0, 0.0)], 1).is_none());
        assert!(foresee(&[turns(0, 0.0)[..14].to_vec()], 10).is_none());
        assert!(foresee(&[], 10).is_none());
        // Cells that differ by ±1 % from round to round are not to be had away by longer rounds.
        let rounds = [
            turns(0, 0.01),
            turns(7, -0.01),
            turns(13, 0.01),
            turns(29, -0.01),
        ];
        let half = foresee(&rounds, 10).unwrap();
        let expected = 2.262_16 * (0.01_f64.powi(2) * 4.0 / 3.0 / 10.0).sqrt();
        assert!((half / expected - 1.0).abs() < 0.1, "{half} {expected}");
    }

    /// Three rounds whose cells differ by a normal 1 % and whose laps by a normal 1 % more: the limit holds for four of five of 1,000
    /// pilots (a standard deviation of 1.3 %), while the seen half width does for about half of them.
    #[test]
    fn the_upper_limit_holds_for_four_of_five_pilots() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(16);
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let truth: f64 = (2.262_16 * (0.01_f64.powi(2) * 1.01 / 10.0).sqrt()).exp_m1();
        let (mut holds, mut seen) = (0, 0);
        for _ in 0..1_000 {
            let pilot: Vec<Vec<Turn>> = (0..3)
                .map(|_| {
                    let cells = 0.01 * normal();
                    let mut laps = Vec::new();
                    for _ in 0..20 {
                        let value = (1e9 * (cells + 0.01 * normal()).exp()) as i64;
                        for (arm, value) in [(0, 1_000_000_000), (1, value)] {
                            let values_ns = vec![value];
                            laps.push(Turn { arm, values_ns });
                        }
                    }
                    laps
                })
                .collect();
            let foreseen = foreseen_half_width(&pilot, [0, 1], planned(10, 1)).unwrap();
            assert!(foreseen.half_width <= foreseen.at_most);
            // Normal laps of 1 % have no slow one: the limit without those that were not met.
            let extra = foreseen.slow_share_at_most * 2_f64.ln().powi(2) / 100.0 / 10.0;
            let with = (1.0 + foreseen.at_most).ln() / 2.262_16;
            let foreseen = Foreseen {
                at_most: ((with * with - extra).sqrt() * 2.262_16).exp_m1(),
                ..foreseen
            };
            holds += u32::from(truth <= foreseen.at_most);
            seen += u32::from(truth <= foreseen.half_width);
        }
        assert!((760..=860).contains(&holds), "{holds}");
        assert!((300..=500).contains(&seen), "{seen}");
    }

    /// Pilots of 40 laps of which a part is slow, twice as long: most pilots meet none or too few of them. The half width they saw is too little for
    /// nearly all, the upper limit holds for four of five at least.
    #[test]
    fn the_upper_limit_holds_where_few_laps_are_slow() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(17);
        for share in [0.02, 0.04, 0.07] {
            // Of the laps' logarithms: one turn or the other is slow.
            let variance = share * 2_f64.ln().powi(2) + 1e-6;
            let truth = (2.262_16 * (variance / 100.0 / 10.0).sqrt()).exp_m1();
            let (mut holds, mut none_met) = (0, 0);
            for _ in 0..1_000 {
                let mut round = |laps: usize| -> Vec<Turn> {
                    let lap = |_| {
                        let is_slow = random.random::<f64>() < share;
                        let slow_arm = usize::from(random.random::<bool>());
                        let noise = 1.0 + 0.001 * (random.random::<f64>() - 0.5);
                        [0, 1].map(|arm| {
                            let factor = if is_slow && slow_arm == arm {
                                2.0
                            } else {
                                noise
                            };
                            let values_ns = vec![(1e9 * factor) as i64];
                            Turn { arm, values_ns }
                        })
                    };
                    (0..laps).flat_map(lap).collect()
                };
                let pilot = [round(14), round(13), round(13)];
                let foreseen = foreseen_half_width(&pilot, [0, 1], planned(10, 1)).unwrap();
                assert_eq!(foreseen.laps, 40);
                holds += u32::from(truth <= foreseen.at_most);
                if foreseen.slow_laps == 0 {
                    none_met += 1;
                    assert!(truth > 10.0 * foreseen.half_width, "{foreseen:?}");
                    assert!(truth <= foreseen.at_most, "{truth} {foreseen:?}");
                    assert!((foreseen.slow_share_at_most - 0.0722).abs() < 1e-4);
                }
            }
            assert!(none_met > 20, "{share}: {none_met}");
            assert!(holds >= 800, "{share}: {holds}");
        }
    }

    /// Laps of which ten at a time agree are worth a tenth.
    #[test]
    fn correlated_laps_foresee_a_wider_interval() {
        let ratio = long_run_variance(&signs(4_000, 10)) / long_run_variance(&signs(4_000, 1));
        assert!((7.0..=12.0).contains(&ratio), "{ratio}");
    }
}
