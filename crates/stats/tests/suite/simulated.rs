//! Experiments on simulated machines, laid out in whole rounds and in turns, and how well their intervals do.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use timecell_stats::{CompareOptions, Ratio, Share, States, Turn, compare, compare_turns};

/// The disturbance of every job by the machine, in any arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Machine {
    /// Nothing but the noise of each job.
    Quiet,
    /// Two states with this factor between them and stays of 10 to 160 jobs, drawn log-uniformly.
    States(f64),
    /// A level that wanders by a tenth over some seconds.
    Drift,
    /// A burst in every 500 jobs in the mean, in which 1 to 30 jobs take up to five times as long.
    Bursts,
    /// Both.
    DriftAndBursts,
    /// Values like the wake-up latencies of a virtual machine: neighbours are alike, one in nine lies far above the others, now and
    /// then one is up to a hundred times as long.
    WakeUps,
    /// Such values on a machine with the two states.
    WakeUpStates,
}

pub(crate) const MACHINES: [Machine; 6] = [
    Machine::Quiet,
    Machine::States(FACTOR),
    Machine::Drift,
    Machine::Bursts,
    Machine::WakeUps,
    Machine::WakeUpStates,
];

/// Between two states, as a busy sibling thread makes them.
pub(crate) const FACTOR: f64 = 1.9;
/// The share of jobs in the slow state where there are two.
pub(crate) const SLOW_SHARE: f64 = 0.5;

/// A slow state that comes over any other disturbance of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rare {
    /// The share of time in it, in the mean.
    pub(crate) share: f64,
    /// How many times as long jobs take in it.
    pub(crate) factor: f64,
    /// Its shortest and its longest stay, in jobs, drawn log-uniformly.
    pub(crate) stay: [f64; 2],
}

/// The level of the machine from job to job, as a logarithm, and the slow state.
struct Level {
    machine: Machine,
    rare: Option<Rare>,
    /// Jobs until the rare state begins or ends, and whether it is there.
    rare_left: f64,
    is_rare: bool,
    random: Xoshiro256PlusPlus,
    wander: f64,
    /// Jobs until the state or burst ends.
    left: f64,
    slow: bool,
    burst: f64,
    /// The part that neighbouring wake-ups share, and the lateness of those of a disturbed stretch.
    shared: f64,
    later: Option<f64>,
}

impl Level {
    fn new(machine: Machine, rare: Option<Rare>, seed: u64) -> Self {
        Self {
            machine,
            rare,
            rare_left: 0.0,
            is_rare: true,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            wander: 0.0,
            left: 0.0,
            slow: false,
            burst: 0.0,
            shared: 0.0,
            later: None,
        }
    }

    /// A standard normal number (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    fn next(&mut self) -> f64 {
        self.next_of_machine() + self.next_of_rare()
    }

    fn next_of_rare(&mut self) -> f64 {
        let Some(rare) = self.rare else { return 0.0 };
        self.rare_left -= 1.0;
        if self.rare_left <= 0.0 {
            self.is_rare = !self.is_rare;
            let [shortest, longest] = rare.stay;
            let stay = shortest * (longest / shortest).powf(self.random.random());
            self.rare_left = match self.is_rare {
                true => stay,
                false => stay * (1.0 - rare.share) / rare.share,
            };
        }
        match self.is_rare {
            true => rare.factor.ln(),
            false => 0.0,
        }
    }

    fn next_of_machine(&mut self) -> f64 {
        self.left -= 1.0;
        match self.machine {
            Machine::Quiet | Machine::WakeUps => 0.0,
            Machine::States(_) | Machine::WakeUpStates => {
                if self.left <= 0.0 {
                    self.slow = !self.slow;
                    self.left = 10.0 * 16_f64.powf(self.random.random());
                }
                let factor = match self.machine {
                    Machine::States(factor) => factor,
                    _ => FACTOR,
                };
                if self.slow { factor.ln() } else { 0.0 }
            }
            Machine::Drift => self.next_of_drift(),
            Machine::Bursts => self.next_of_bursts(),
            Machine::DriftAndBursts => self.next_of_drift() + self.next_of_bursts(),
        }
    }

    fn next_of_drift(&mut self) -> f64 {
        let step = self.normal();
        self.wander = 0.9998 * self.wander + 0.02_f64.mul_add(0.1 * step, 0.0);
        self.wander
    }

    fn next_of_bursts(&mut self) -> f64 {
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

    /// One job of an arm at this level, ns.
    fn job(&mut self, log_level: f64) -> i64 {
        let (base_ns, noise) = match self.machine {
            Machine::WakeUps | Machine::WakeUpStates => (14_000.0, self.wake_up()),
            _ => (27_000.0, 0.01 * self.normal()),
        };
        let log = self.next() + log_level + noise;
        (base_ns * log.exp()).round() as i64
    }

    /// The addition of a wake-up to the level: quantiles and the correlation of neighbours (0.3) are like those of the wake-up latencies of a
    /// quick run of `overhead` on a shared virtual machine.
    fn wake_up(&mut self) -> f64 {
        const SHARED: f64 = 0.95;
        self.shared = SHARED * self.shared + 0.05 * (1.0 - SHARED * SHARED).sqrt() * self.normal();
        let is_later = match self.later {
            Some(_) => self.random.random::<f64>() < 0.5,
            None => self.random.random::<f64>() < 0.06,
        };
        self.later = match (is_later, self.later) {
            (false, _) => None,
            (true, Some(by)) => Some(by),
            (true, None) => Some(-0.3 * (1.0 - self.random.random::<f64>()).ln()),
        };
        let rarely = match self.random.random::<f64>() < 1.0 / 500.0 {
            true => 4.6 * self.random.random::<f64>(),
            false => 0.0,
        };
        self.shared + 0.06 * self.normal() + self.later.unwrap_or(0.0) + rarely
    }
}

/// How the jobs of an experiment are laid out in turns.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) rounds: usize,
    /// Jobs of each arm in a round.
    pub(crate) jobs: usize,
    /// Jobs of a turn, and how many of them are dropped.
    pub(crate) turn: usize,
    pub(crate) settle: usize,
    pub(crate) arms: usize,
    /// The addition of each creation of a cell to its level: the standard deviation of the logarithm.
    pub(crate) creation: f64,
    /// Whether as many jobs are laid out in whole rounds as well.
    pub(crate) whole_rounds: bool,
    /// Whether states are looked for, which takes most of the time.
    pub(crate) states: bool,
    /// Whether the baseline's repetition is taken to it as well.
    pub(crate) pooled: bool,
    /// A slow state beside the machine's disturbance.
    pub(crate) rare: Option<Rare>,
    /// Of the first experiment; each has the next one.
    pub(crate) first_seed: u64,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            rounds: 10,
            jobs: 1_500,
            turn: 12,
            settle: 2,
            arms: 4,
            creation: 0.001,
            whole_rounds: false,
            states: true,
            pooled: true,
            rare: None,
            first_seed: 1_000,
        }
    }
}

/// Whole rounds that as many jobs are laid out in.
const WHOLE_ROUNDS: usize = 3;
/// Jobs that fit between two turns: one period and a part of another.
const BETWEEN: usize = 2;
/// The arms that take longer than the others and that repeat the baseline.
pub(crate) const OTHER: usize = 1;
pub(crate) const AGAIN: usize = 2;

impl Layout {
    /// The level of each arm in a round: `OTHER` takes `ratio` times as long as the others.
    fn levels(&self, level: &mut Level, ratio: f64) -> Vec<f64> {
        let own = |arm| if arm == OTHER { ratio.ln() } else { 0.0 };
        (0..self.arms)
            .map(|arm| self.creation * level.normal() + own(arm))
            .collect()
    }

    /// Whole rounds, one arm after another: those of the baseline and of the other.
    fn in_rounds(&self, level: &mut Level, ratio: f64) -> [Vec<Vec<i64>>; 2] {
        let jobs = self.rounds * self.jobs / WHOLE_ROUNDS;
        let mut kept = [Vec::new(), Vec::new()];
        for _ in 0..WHOLE_ROUNDS {
            for (arm, own) in self.levels(level, ratio).into_iter().enumerate() {
                let jobs: Vec<i64> = (0..jobs).map(|_| level.job(own)).collect();
                if let Some(kept) = kept.get_mut(arm) {
                    kept.push(jobs);
                }
            }
        }
        kept
    }

    /// The same in turns: the order is drawn for each pair of laps, and reversed in the second.
    fn in_turns(&self, level: &mut Level, ratio: f64) -> Vec<Vec<Turn>> {
        (0..self.rounds)
            .map(|_| {
                let own = self.levels(level, ratio);
                let mut order: Vec<usize> = (0..self.arms).collect();
                let mut turns = Vec::new();
                for lap in 0..self.jobs / self.turn {
                    match lap % 2 {
                        0 => (1..self.arms).for_each(|last| {
                            order.swap(last, level.random.random_range(0..=last));
                        }),
                        _ => order.reverse(),
                    }
                    for &arm in &order {
                        let mut values_ns: Vec<i64> =
                            (0..self.turn).map(|_| level.job(own[arm])).collect();
                        values_ns.drain(..self.settle);
                        turns.push(Turn { arm, values_ns });
                        for _ in 0..BETWEEN {
                            level.next();
                        }
                    }
                }
                turns
            })
            .collect()
    }
}

/// Of many experiments: how many intervals there were, how many enclosed the truth, and their half widths.
#[derive(Default)]
pub(crate) struct Score {
    pub(crate) covered: usize,
    pub(crate) halves: Vec<f64>,
    /// By how many half widths each estimate is off.
    pub(crate) off: Vec<f64>,
}

impl Score {
    /// A half width is a part of the ratio.
    fn add(&mut self, ratio: Option<&Ratio>, truth: f64) {
        if let Some((low, high)) = ratio.and_then(|ratio| ratio.low.zip(ratio.high)) {
            self.covered += usize::from(low <= truth && truth <= high);
            let half = (high / low).ln() / 2.0;
            self.halves.push(half);
            self.off.push(((high * low).sqrt() / truth).ln() / half);
        }
    }

    /// A half width is one of shares.
    fn add_share(&mut self, share: &Share, truth: f64) {
        if let Some((low, high)) = share.low.zip(share.high) {
            self.covered += usize::from(low <= truth && truth <= high);
            self.halves.push((high - low) / 2.0);
            self.off.push((share.value - truth) / ((high - low) / 2.0));
        }
    }

    pub(crate) fn coverage(&self) -> f64 {
        self.covered as f64 / self.halves.len().max(1) as f64
    }

    /// By how many half widths the estimates are off in the mean: the interval cannot make up for it.
    pub(crate) fn bias(&self) -> f64 {
        self.off.iter().sum::<f64>() / self.off.len().max(1) as f64
    }

    /// The part of its half width that an interval would have needed to hold the truth in 95 % of the experiments.
    pub(crate) fn needed(&self) -> f64 {
        let mut off: Vec<f64> = self.off.iter().map(|off| off.abs()).collect();
        off.sort_unstable_by(f64::total_cmp);
        (off.get((0.95 * off.len() as f64) as usize).copied()).unwrap_or(f64::NAN)
    }

    pub(crate) fn median_half(&mut self) -> f64 {
        self.halves.sort_unstable_by(f64::total_cmp);
        self.halves
            .get(self.halves.len() / 2)
            .copied()
            .unwrap_or(f64::NAN)
    }
}

#[derive(Default)]
pub(crate) struct Scores {
    pub(crate) rounds: Score,
    pub(crate) turns: Score,
    pub(crate) p99: Score,
    pub(crate) fast: Score,
    pub(crate) slow: Score,
    /// Of the baseline's jobs in the slow state.
    pub(crate) share: Score,
    /// The other's share less the baseline's.
    pub(crate) difference: Score,
    /// Experiments in which two states were found.
    pub(crate) found: usize,
    /// In each of them, the factor between them and the baseline's share of jobs in the slow one.
    pub(crate) factors: Vec<f64>,
    pub(crate) shares: Vec<f64>,
    /// Against the baseline and its repetition together.
    pub(crate) pooled: Pooled,
}

#[derive(Default)]
pub(crate) struct Pooled {
    pub(crate) turns: Score,
    pub(crate) p99: Score,
    pub(crate) fast: Score,
    pub(crate) slow: Score,
    pub(crate) difference: Score,
}

/// The turns of each experiment.
pub(crate) fn experiments(
    machine: Machine,
    truth: f64,
    repetitions: u64,
    layout: &Layout,
) -> impl Iterator<Item = Vec<Vec<Turn>>> {
    (0..repetitions).map(move |seed| {
        let mut level = Level::new(machine, layout.rare, layout.first_seed + seed);
        layout.in_turns(&mut level, truth)
    })
}

pub(crate) fn simulate(machine: Machine, truth: f64, repetitions: u64, layout: &Layout) -> Scores {
    let mut scores = Scores::default();
    if layout.whole_rounds {
        for seed in 0..repetitions {
            let mut level = Level::new(machine, layout.rare, 1_000 * layout.first_seed + seed);
            let [baseline, other] = layout.in_rounds(&mut level, truth);
            let options = CompareOptions {
                resamples: 200,
                ..CompareOptions::default()
            };
            let comparison = compare(&baseline, &other, &options).unwrap();
            scores.rounds.add(Some(&comparison.ratio_of_medians), truth);
        }
    }
    for rounds in experiments(machine, truth, repetitions, layout) {
        let comparison = compare_turns(&rounds, &[0], OTHER, 0.95).unwrap();
        scores.turns.add(Some(&comparison.ratio_of_medians), truth);
        scores.p99.add(comparison.ratio_of_p99.as_ref(), truth);
        let pooled = &mut scores.pooled;
        if layout.pooled {
            let comparison = compare_turns(&rounds, &[0, AGAIN], OTHER, 0.95).unwrap();
            pooled.turns.add(Some(&comparison.ratio_of_medians), truth);
            pooled.p99.add(comparison.ratio_of_p99.as_ref(), truth);
        }
        if !layout.states {
            continue;
        }
        if let Some(states) = States::find(&rounds) {
            scores.found += 1;
            let within = states.compare(&rounds, &[0], OTHER, 0.95);
            scores.factors.push(states.factor);
            scores.shares.push(within.slow_share_of_baseline.value);
            scores.fast.add(within.fast.as_ref(), truth);
            scores.slow.add(within.slow.as_ref(), truth);
            let share = layout.rare.map_or(SLOW_SHARE, |rare| rare.share);
            (scores.share).add_share(&within.slow_share_of_baseline, share);
            (scores.difference).add_share(&within.slow_share_difference, 0.0);
            if !layout.pooled {
                continue;
            }
            let within = states.compare(&rounds, &[0, AGAIN], OTHER, 0.95);
            pooled.fast.add(within.fast.as_ref(), truth);
            pooled.slow.add(within.slow.as_ref(), truth);
            (pooled.difference).add_share(&within.slow_share_difference, 0.0);
        }
    }
    scores
}
