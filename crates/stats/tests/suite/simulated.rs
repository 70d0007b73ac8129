//! Experiments on simulated machines, laid out in whole rounds and in turns, and how well their intervals do.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::{CompareOptions, Ratio, States, Turn, compare, compare_turns};

/// What the machine does to every job, whoever runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Machine {
    /// Nothing but the noise of each job.
    Quiet,
    /// Two states with a factor of 1.9 between them and stays of 10 to 160 jobs, drawn log-uniformly.
    States,
    /// A level that wanders by a tenth over some seconds.
    Drift,
    /// A burst in every 500 jobs in the mean, in which 1 to 30 jobs take up to five times as long.
    Bursts,
}

pub(crate) const MACHINES: [Machine; 4] = [
    Machine::Quiet,
    Machine::States,
    Machine::Drift,
    Machine::Bursts,
];

/// The level of the machine from job to job, as a logarithm, and the slow state.
struct Level {
    machine: Machine,
    random: Xoshiro256PlusPlus,
    wander: f64,
    /// Jobs until the state or burst ends.
    left: f64,
    slow: bool,
    burst: f64,
}

impl Level {
    fn new(machine: Machine, seed: u64) -> Self {
        Self {
            machine,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            wander: 0.0,
            left: 0.0,
            slow: false,
            burst: 0.0,
        }
    }

    /// A standard normal number (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    fn next(&mut self) -> f64 {
        self.left -= 1.0;
        match self.machine {
            Machine::Quiet => 0.0,
            Machine::States => {
                if self.left <= 0.0 {
                    self.slow = !self.slow;
                    self.left = 10.0 * 16_f64.powf(self.random.random());
                }
                if self.slow { 1.9_f64.ln() } else { 0.0 }
            }
            Machine::Drift => {
                let step = self.normal();
                self.wander = 0.9998 * self.wander + 0.02_f64.mul_add(0.1 * step, 0.0);
                self.wander
            }
            Machine::Bursts => {
                if self.left <= 0.0 {
                    let starts = self.random.random::<f64>() < 1.0 / 500.0;
                    self.burst = if starts {
                        1.6 * self.random.random::<f64>()
                    } else {
                        0.0
                    };
                    self.left = if starts {
                        30.0 * self.random.random::<f64>()
                    } else {
                        0.0
                    };
                }
                self.burst
            }
        }
    }

    /// One job of an arm at this level, ns.
    fn job(&mut self, log_level: f64) -> i64 {
        let log = self.next() + log_level + 0.01 * self.normal();
        (27_000.0 * log.exp()).round() as i64
    }
}

/// How the jobs of an experiment are laid out. All have as many jobs for each arm.
#[derive(Clone, Copy)]
struct Plan {
    rounds: usize,
    jobs: usize,
}

const ROUNDS: Plan = Plan {
    rounds: 3,
    jobs: 5_000,
};
const TURNS: Plan = Plan {
    rounds: 10,
    jobs: 1_500,
};
/// Jobs of a turn, and how many of them are dropped.
const TURN: usize = 12;
const SETTLE: usize = 2;
const ARMS: usize = 4;

/// What each creation of a cell adds to its level: the standard deviation of the logarithm.
const CREATION: f64 = 0.001;

/// Arm 1 takes `ratio` times as long as the others; whole rounds, one arm after another.
fn in_rounds(level: &mut Level, ratio: f64) -> [Vec<Vec<i64>>; 2] {
    let mut kept = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS.rounds {
        for arm in 0..ARMS {
            let own = CREATION * level.normal() + if arm == 1 { ratio.ln() } else { 0.0 };
            let jobs: Vec<i64> = (0..ROUNDS.jobs).map(|_| level.job(own)).collect();
            if let Some(kept) = kept.get_mut(arm) {
                kept.push(jobs);
            }
        }
    }
    kept
}

/// The same in turns: every second lap runs backwards.
fn in_turns(level: &mut Level, ratio: f64) -> Vec<Vec<Turn>> {
    let round = |level: &mut Level| {
        let own: Vec<f64> = (0..ARMS)
            .map(|arm| CREATION * level.normal() + if arm == 1 { ratio.ln() } else { 0.0 })
            .collect();
        let mut turns = Vec::new();
        for lap in 0..TURNS.jobs / TURN {
            for place in 0..ARMS {
                let arm = if lap % 2 == 0 {
                    place
                } else {
                    ARMS - 1 - place
                };
                let mut values_ns: Vec<i64> = (0..TURN).map(|_| level.job(own[arm])).collect();
                values_ns.drain(..SETTLE);
                turns.push(Turn { arm, values_ns });
            }
        }
        turns
    };
    (0..TURNS.rounds).map(|_| round(level)).collect()
}

/// Of many experiments: how many intervals there were, how many enclosed the truth, and their half widths.
#[derive(Default)]
pub(crate) struct Score {
    covered: usize,
    pub(crate) halves: Vec<f64>,
}

impl Score {
    fn add(&mut self, ratio: &Ratio, truth: f64) {
        if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
            self.covered += usize::from(low <= truth && truth <= high);
            self.halves.push((high / low).ln() / 2.0);
        }
    }

    pub(crate) fn coverage(&self) -> f64 {
        self.covered as f64 / self.halves.len().max(1) as f64
    }

    pub(crate) fn median_half(&mut self) -> f64 {
        self.halves.sort_unstable_by(f64::total_cmp);
        self.halves
            .get(self.halves.len() / 2)
            .copied()
            .unwrap_or(f64::NAN)
    }
}

pub(crate) struct Scores {
    pub(crate) rounds: Score,
    pub(crate) turns: Score,
    pub(crate) p99: Score,
    pub(crate) fast: Score,
    pub(crate) slow: Score,
    pub(crate) found: usize,
}

pub(crate) fn simulate(machine: Machine, truth: f64, repetitions: u64, rounds_too: bool) -> Scores {
    let mut scores = Scores {
        rounds: Score::default(),
        turns: Score::default(),
        p99: Score::default(),
        fast: Score::default(),
        slow: Score::default(),
        found: 0,
    };
    for seed in 0..repetitions {
        let mut level = Level::new(machine, 1_000 + seed);
        if rounds_too {
            let [baseline, other] = in_rounds(&mut level, truth);
            let options = CompareOptions {
                resamples: 200,
                ..CompareOptions::default()
            };
            let comparison = compare(&baseline, &other, &options).unwrap();
            scores.rounds.add(&comparison.ratio_of_medians, truth);
        }
        let rounds = in_turns(&mut level, truth);
        let comparison = compare_turns(&rounds, 0, 1, 0.95).unwrap();
        scores.turns.add(&comparison.ratio_of_medians, truth);
        scores.p99.add(&comparison.ratio_of_p99.unwrap(), truth);
        if let Some(states) = States::find(&rounds) {
            scores.found += 1;
            let within = states.compare(&rounds, 0, 1, 0.95);
            for (score, ratio) in [
                (&mut scores.fast, within.fast),
                (&mut scores.slow, within.slow),
            ] {
                if let Some(ratio) = ratio {
                    score.add(&ratio, truth);
                }
            }
        }
    }
    scores
}
