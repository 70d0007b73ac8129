//! The promise of an interval, by simulation: of many comparisons of a thing with itself, the stated part encloses 1.
//!
//! Every simulation is seeded, so each test gives one fixed answer; the tolerances are those that 400 repetitions of an
//! exact 95 % interval allow (standard deviation 1.1 %), or more.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use timecell_stats::{CompareOptions, Ratio, Verdict, compare};

/// Noise in a simulated experiment, as standard deviations of the logarithm.
#[derive(Clone, Copy)]
struct Noise {
    /// Common to both sides of a round.
    shared: f64,
    /// Of each side of each round on its own.
    between: f64,
    /// Of each job.
    within: f64,
    /// How much of a job's noise carries over to the next (AR(1) coefficient).
    carried: f64,
}

const DRIFT: Noise = Noise {
    shared: 0.05,
    between: 0.02,
    within: 0.002,
    carried: 0.0,
};

struct Laboratory {
    random: Xoshiro256PlusPlus,
    noise: Noise,
    rounds: usize,
    jobs: usize,
}

impl Laboratory {
    fn new(rounds: usize, jobs: usize, noise: Noise) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(2026),
            noise,
            rounds,
            jobs,
        }
    }

    /// A standard normal number (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// The jobs of one round, in nanoseconds, lognormal around the level.
    fn round(&mut self, log_level: f64) -> Vec<i64> {
        let Noise {
            within, carried, ..
        } = self.noise;
        let fresh = (1.0 - carried * carried).sqrt();
        let mut state = self.normal();
        (0..self.jobs)
            .map(|_| {
                state = carried * state + fresh * self.normal();
                (1e6 * (log_level + within * state).exp()) as i64
            })
            .collect()
    }

    /// All rounds of the baseline, and of the same thing `factor` times as slow.
    fn experiment(&mut self, factor: f64) -> [Vec<Vec<i64>>; 2] {
        let mut sides = [Vec::new(), Vec::new()];
        for _ in 0..self.rounds {
            let shared = self.noise.shared * self.normal();
            for (side, shift) in sides.iter_mut().zip([0.0, factor.ln()]) {
                let level = shared + shift + self.noise.between * self.normal();
                side.push(self.round(level));
            }
        }
        sides
    }

    /// The ratios of medians and of p99 (if the rounds are long enough) of one comparison.
    fn compare(&mut self, factor: f64) -> (Ratio, Option<Ratio>) {
        let [baseline, other] = self.experiment(factor);
        let options = CompareOptions {
            resamples: 200,
            seed: self.random.random(),
            ..CompareOptions::default()
        };
        let comparison = compare(&baseline, &other, &options).unwrap();
        (comparison.ratio_of_medians, comparison.ratio_of_p99)
    }
}

fn encloses(ratio: &Ratio, truth: f64) -> bool {
    ratio.low.unwrap() <= truth && truth <= ratio.high.unwrap()
}

/// The part of `repetitions` comparisons of a thing with itself for which the check holds.
fn part(
    laboratory: &mut Laboratory,
    repetitions: u32,
    check: impl Fn((Ratio, Option<Ratio>)) -> bool,
) -> f64 {
    let held = (0..repetitions)
        .filter(|_| check(laboratory.compare(1.0)))
        .count();
    held as f64 / f64::from(repetitions)
}

/// Drift between rounds dominates: the interval is exact, neither too narrow nor too wide.
#[test]
fn nothing_compared_with_itself_is_within_noise_at_the_nominal_rate() {
    for rounds in [3, 5, 10] {
        let mut laboratory = Laboratory::new(rounds, 40, DRIFT);
        let coverage = part(&mut laboratory, 400, |(median, _)| {
            assert_eq!(
                matches!(median.verdict, Verdict::WithinNoise | Verdict::TooWide),
                encloses(&median, 1.0)
            );
            encloses(&median, 1.0)
        });
        assert!(
            (0.92..=0.98).contains(&coverage),
            "{rounds} rounds: {coverage}"
        );
    }
}

/// The same without the calibration, to show that it is needed and that the test above can fail: the plain interval
/// z · (standard error) of 3 rounds encloses the truth in about 75 % of experiments only (P(|t(2)| < 1.96 · √(2/3))
/// is 0.752).
#[test]
fn without_calibration_three_rounds_would_cover_far_too_little() {
    let widened = (3.0_f64 / 2.0).sqrt() * 4.302_65 / 1.959_96;
    let coverage = part(&mut Laboratory::new(3, 40, DRIFT), 400, |(median, _)| {
        let half = (median.high.unwrap().ln() - median.value.ln()) / widened;
        median.value.ln().abs() <= half
    });
    assert!((0.68..=0.82).contains(&coverage), "{coverage}");
}

/// Where only noise within rounds exists, even correlated from job to job, intervals may be wider than they must, but
/// never too narrow.
#[test]
fn correlated_jobs_do_not_break_the_promise() {
    let noise = Noise {
        shared: 0.0,
        between: 0.0,
        within: 0.02,
        carried: 0.8,
    };
    let coverage = part(&mut Laboratory::new(3, 60, noise), 300, |(median, _)| {
        encloses(&median, 1.0)
    });
    assert!(coverage >= 0.93, "{coverage}");
}

#[test]
fn the_tail_is_covered_too() {
    let coverage = part(&mut Laboratory::new(5, 300, DRIFT), 60, |(_, p99)| {
        encloses(&p99.unwrap(), 1.0)
    });
    assert!(coverage >= 0.88, "{coverage}");
}

/// 10 % slower with 1 % of noise is found with 5 rounds, always, in the right direction, and the truth is enclosed
/// at about the nominal rate.
#[test]
fn a_true_difference_is_found() {
    let noise = Noise {
        shared: 0.05,
        between: 0.01,
        within: 0.01,
        carried: 0.3,
    };
    let mut laboratory = Laboratory::new(5, 60, noise);
    let mut enclosed = 0;
    for _ in 0..100 {
        let slower = laboratory.compare(1.1).0;
        assert_eq!(slower.verdict, Verdict::Larger, "{slower:?}");
        enclosed += u32::from(encloses(&slower, 1.1));
        let faster = laboratory.compare(1.0 / 1.1).0;
        assert_eq!(faster.verdict, Verdict::Smaller, "{faster:?}");
    }
    assert!(enclosed >= 88, "{enclosed}");
}
