//! Long jobs that come periodically: a timer tick, a daemon, a refresh.
//!
//! The jobs above a level are points in time; runs of neighbours are one spike. Whether spikes keep to a period is
//! told by how well their phases agree: Z = |Σ exp(2πi·t/period)|²/n is 1 on average for spikes at random and n for a
//! perfect clock (Rayleigh's test; summed over harmonics it is the Z²_m of Buccheri et al., "Search for pulsed
//! gamma-ray emission from radio pulsars in the COS-B data", Astronomy and Astrophysics 128, 1983). Rounds may begin
//! anywhere in the period, so Z is added over rounds, not the phases.

use super::{TailRound, Top};
use crate::median_of;
use serde::{Deserialize, Serialize};
use statrs::function::gamma::gamma_ur;
use std::f64::consts::TAU;

/// Shares of jobs that levels let pass.
const SHARES: [f64; 5] = [0.1, 0.03, 0.01, 0.003, 0.001];
/// Shares of the largest jobs, where only those were kept, that levels let pass.
const SHARES_OF_KEPT: [f64; 5] = [1.0, 0.3, 0.1, 0.03, 0.01];
/// Fewer spikes show no period.
const FEWEST: usize = 10;
/// With more spikes than this a level is left to the higher ones.
const MOST: usize = 20_000;
/// Harmonics added.
const HARMONICS: usize = 4;
/// Candidates followed up at each level.
const FOLLOWED: usize = 3;
/// Spikes in which candidates are first looked for.
const WINDOW: usize = 64;
/// A period counts as found when chance would show one like it less often than this.
const CHANCE: f64 = 1e-6;
/// A spike is at least this multiple of the median.
const HIGHER: f64 = 1.05;

/// Spikes that come periodically.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spikes {
    /// Period in jobs, not a whole number in general.
    pub period_jobs: f64,
    /// Mean length of a spike in jobs.
    pub jobs_per_spike: f64,
    /// Jobs above this are in a spike, ns.
    pub level_ns: i64,
    /// Median of the spikes' largest jobs, ns.
    pub height_ns: i64,
    /// Median of all jobs, ns.
    pub median_ns: i64,
    /// Spikes, periodic or not.
    pub spikes: u64,
    /// Spikes that keep to the period, within a tenth of it or one job.
    pub in_phase: u64,
    /// Spikes that keep to the period for each period measured.
    pub per_period: f64,
    /// Share of jobs that are in spikes that keep to the period.
    pub share: f64,
    /// Probability of so good an agreement among spikes at random, all periods that were possible allowed for.
    pub chance: f64,
}

/// One spike.
struct Spike {
    start: u32,
    jobs: u32,
    peak_ns: i64,
}

/// The spikes of one level, by round.
struct Level {
    level_ns: i64,
    rounds: Vec<Vec<Spike>>,
    /// Activations that the rounds span.
    spans: Vec<f64>,
}

/// The period that spikes of any level keep to best.
pub(super) fn find(rounds: &[TailRound], top: &Top) -> Option<Spikes> {
    let jobs: usize = rounds.iter().map(|round| round.values_ns.len()).sum();
    let span = |round: &TailRound| {
        let first = round.activations.iter().min().copied().unwrap_or(0);
        let last = round.activations.iter().max().copied().unwrap_or(0);
        f64::from(last - first) + 1.0
    };
    let search = Search {
        rounds,
        spans: rounds.iter().map(span).collect(),
        jobs,
        from_ns: i64::MIN,
    };
    search.best(SHARES.map(|share| (jobs as f64 * share) as usize), top)
}

/// The same where only the largest jobs are in `rounds`, all of those above `from_ns`, of `jobs` in all over `spans`
/// activations: levels are shares of all jobs.
pub(super) fn find_among(
    rounds: &[TailRound],
    spans: Vec<f64>,
    top: &Top,
    jobs: usize,
    from_ns: i64,
) -> Option<Spikes> {
    let kept = top.exceedances.len() as f64;
    let search = Search {
        rounds,
        spans,
        jobs,
        from_ns,
    };
    search.best(SHARES_OF_KEPT.map(|share| (kept * share) as usize), top)
}

/// Where spikes are looked for.
struct Search<'a> {
    rounds: &'a [TailRound<'a>],
    /// Activations that the rounds span.
    spans: Vec<f64>,
    jobs: usize,
    /// No level may be lower: below it jobs are missing.
    from_ns: i64,
}

impl Search<'_> {
    /// Over the levels that so many jobs pass, most first.
    fn best(&self, counts: impl IntoIterator<Item = usize>, top: &Top) -> Option<Spikes> {
        let mut values: Vec<i64> = top.exceedances.iter().map(|one| one.value_ns).collect();
        values.sort_unstable();
        let mut best: Option<(f64, Spikes)> = None;
        let mut last = None;
        for count in counts {
            if count < FEWEST || values.is_empty() {
                break;
            }
            let place = values.len().saturating_sub(count + 1);
            let level_ns = values[place];
            if last.replace(level_ns) == Some(level_ns) {
                continue;
            }
            // At the lowest level everything kept is above: the level itself is just below the smallest.
            let level_ns = if count >= values.len() {
                level_ns.saturating_sub(1)
            } else {
                level_ns
            };
            let level = Level::of(self, level_ns);
            let found = level.period().and_then(|(power, frequency, chance)| {
                let seen = level.describe(frequency, chance, top.median_ns, self.jobs)?;
                Some((power, level.whole(self, seen)))
            });
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| found.0 > best.0)
            {
                best = Some(found);
            }
        }
        best.map(|(_, spikes)| spikes)
    }
}

impl Level {
    fn of(search: &Search, level_ns: i64) -> Self {
        let spikes = |round: &TailRound| {
            let mut spikes: Vec<Spike> = Vec::new();
            let jobs = round.activations.iter().zip(round.values_ns);
            for (&activation, &value_ns) in jobs.filter(|(_, value)| **value > level_ns) {
                match spikes.last_mut() {
                    Some(last) if activation.checked_sub(last.start) == Some(last.jobs) => {
                        last.jobs += 1;
                        last.peak_ns = last.peak_ns.max(value_ns);
                    }
                    _ => spikes.push(Spike {
                        start: activation,
                        jobs: 1,
                        peak_ns: value_ns,
                    }),
                }
            }
            spikes
        };
        Self {
            level_ns,
            rounds: search.rounds.iter().map(spikes).collect(),
            spans: search.spans.clone(),
        }
    }

    /// The same spikes whole: from the level halfway between the median and their height, where that shows them at least
    /// as well as the level at which they were found.
    fn whole(&self, search: &Search, found: Spikes) -> Spikes {
        let half = found.median_ns.midpoint(found.height_ns);
        if half < search.from_ns || half >= self.level_ns && found.per_period > 0.9 {
            return found;
        }
        let level = Self::of(search, half);
        let frequency = 1.0 / found.period_jobs;
        let whole = level.describe(frequency, found.chance, found.median_ns, search.jobs);
        let purity = |spikes: &Spikes| spikes.in_phase as f64 / spikes.spikes as f64;
        whole
            .filter(|whole| purity(whole) > 0.7 * purity(&found))
            .unwrap_or(found)
    }

    fn count(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }

    fn longest(&self) -> f64 {
        self.spans.iter().copied().fold(0.0, f64::max)
    }

    /// The power, frequency (1/jobs) and chance of the period that agrees best, if chance does not explain it.
    fn period(&self) -> Option<(f64, f64, f64)> {
        if !(FEWEST..=MOST).contains(&self.count()) {
            return None;
        }
        let mut candidates: Vec<(f64, f64)> = self
            .candidates()
            .into_iter()
            .map(|period| self.coarse(period))
            .collect();
        candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        // Candidates from neighbouring gaps lead to one frequency.
        candidates.dedup_by(|a, b| (a.1 - b.1).abs() < 0.002 * b.1);
        candidates.truncate(FOLLOWED);
        let found: Vec<(f64, f64, f64)> = candidates
            .into_iter()
            .map(|(_, frequency)| self.refine(frequency))
            .map(|frequency| self.judge(frequency))
            .filter(|&(_, frequency, chance)| {
                chance < CHANCE && frequency * self.longest() >= 4.0 && frequency < 0.501
            })
            .collect();
        let most = found.iter().map(|one| one.0).fold(0.0, f64::max);
        // A harmonic of the period agrees as well as the period itself.
        let full = found.into_iter().filter(|one| one.0 >= 0.8 * most);
        full.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Periods to look at, in jobs: the commonest distances between spikes up to four apart.
    fn candidates(&self) -> Vec<f64> {
        let mut distances: Vec<u32> = Vec::new();
        for round in &self.rounds {
            for apart in 1..=4 {
                let pairs = round.iter().zip(round.iter().skip(apart)).take(4_000);
                distances.extend(pairs.map(|(a, b)| b.start.saturating_sub(a.start)));
            }
        }
        // A period far shorter than the distance of spikes would go by unused nearly always.
        let mean = self.spans.iter().sum::<f64>() / self.count() as f64;
        distances.retain(|&distance| distance >= 2 && f64::from(distance) > 0.1 * mean);
        distances.sort_unstable();
        // Every distance with those up to one job and 1 % longer: how many, and their mean.
        let mut heaps: Vec<(usize, f64)> = Vec::new();
        let mut last = 0;
        for (place, &distance) in distances.iter().enumerate() {
            if distance == last {
                continue;
            }
            last = distance;
            let end = distance + 1 + distance / 100;
            let same = &distances[place..];
            let same = &same[..same.partition_point(|&other| other <= end)];
            let sum: f64 = same.iter().map(|&d| f64::from(d)).sum();
            heaps.push((same.len(), sum / same.len() as f64));
        }
        heaps.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)));
        let mut periods: Vec<f64> = heaps.iter().take(8).map(|heap| heap.1).collect();
        // Short distances are common whenever spikes are many; long ones deserve a look of their own.
        heaps.sort_unstable_by(|a, b| (b.0 as f64 * b.1).total_cmp(&(a.0 as f64 * a.1)));
        periods.extend(heaps.iter().take(8).map(|heap| heap.1));
        periods
    }

    /// The power and the frequency near this period that suits the first spikes of each round best.
    fn coarse(&self, period: f64) -> (f64, f64) {
        let about = (0.015 * period).max(1.5);
        let (low, high) = (1.0 / (period + about), 1.0 / (period - about).max(1.9));
        let window = self.window(WINDOW);
        let step = 0.25 / window;
        let steps = (((high - low) / step) as usize).min(20_000);
        self.best(low, step, steps, WINDOW, 1)
    }

    /// Jobs that the first spikes of each round span.
    fn window(&self, spikes: usize) -> f64 {
        let span = |round: &Vec<Spike>| {
            let first = &round[..round.len().min(spikes)];
            let ends = first.first().zip(first.last());
            ends.map_or(0.0, |(a, b)| f64::from(b.start.saturating_sub(a.start)))
        };
        self.rounds.iter().map(span).fold(8.0, f64::max)
    }

    /// The same frequency over twice as many spikes each time, as exactly as their span allows.
    fn refine(&self, mut frequency: f64) -> f64 {
        let longest = self.rounds.iter().map(Vec::len).max().unwrap_or(0);
        let mut spikes = WINDOW;
        loop {
            let earlier = self.window(spikes / 2);
            let about = 0.5 / earlier;
            let harmonics = harmonics(frequency);
            let step = 0.2 / (self.window(spikes) * harmonics as f64);
            let steps = ((2.0 * about / step) as usize).min(400);
            frequency = self
                .best(frequency - about, step, steps, spikes, harmonics)
                .1;
            if spikes >= longest {
                let fine = step / 20.0;
                return self.best(frequency - step, fine, 40, spikes, harmonics).1;
            }
            spikes *= 2;
        }
    }

    /// The most powerful of a row of frequencies, with its power.
    fn best(
        &self,
        low: f64,
        step: f64,
        steps: usize,
        spikes: usize,
        harmonics: usize,
    ) -> (f64, f64) {
        // From one frequency to the next every spike's phase turns by the same angle, so no sine is taken twice.
        let turn = |frequency: f64, spike: &Spike| {
            let (sin, cos) = (TAU * (f64::from(spike.start) * frequency).fract()).sin_cos();
            (cos, sin)
        };
        let turning = |spike: &Spike| (turn(low, spike), turn(step, spike));
        let mut rounds: Vec<Vec<(Vector, Vector)>> = self
            .rounds
            .iter()
            .map(|round| round.iter().take(spikes).map(turning).collect())
            .collect();
        let mut best = (0.0, low);
        for k in 0..=steps {
            let mut power = 0.0;
            for round in rounds.iter_mut().filter(|round| !round.is_empty()) {
                let sums = sums(round.iter().map(|spike| spike.0), harmonics);
                power += squares(&sums) / round.len() as f64;
                for (phase, turn) in round {
                    *phase = product(*phase, *turn);
                }
            }
            if power > best.0 {
                best = (power, low + step * k as f64);
            }
        }
        best
    }

    /// Z over rounds.
    fn z(&self, frequency: f64) -> f64 {
        let rounds = self.rounds.iter().filter(|round| !round.is_empty());
        rounds
            .map(|round| squares(&vectors(round, frequency)) / round.len() as f64)
            .sum()
    }

    /// Power, frequency and chance. Powers are taken relative to those beside the line, so that bursts and states,
    /// which raise a whole range of frequencies, do not pass for periods.
    fn judge(&self, frequency: f64) -> (f64, f64, f64) {
        let rounds = self.rounds.iter().filter(|r| !r.is_empty()).count() as f64;
        let harmonics = harmonics(frequency);
        let apart = 1.0 / self.longest();
        let power: f64 = (1..=harmonics)
            .map(|harmonic| {
                let line = frequency * harmonic as f64;
                let beside: f64 = (2..12)
                    .flat_map(|k| {
                        [-1.0, 1.0].map(|side| line + side * (f64::from(k) + 0.5) * apart)
                    })
                    .map(|beside| self.z(beside))
                    .sum();
                self.z(line) / (beside / 20.0 / rounds).max(1.0)
            })
            .sum();
        let possible = self.longest() / 2.0 * SHARES.len() as f64;
        // At half the rate of jobs phases are only 0 or 1/2, and Z is the square of one normal number, not of two.
        let half = if (frequency - 0.5).abs() < apart {
            0.5
        } else {
            1.0
        };
        let degrees = rounds * harmonics as f64 * half;
        let chance = gamma_ur(degrees, (power * half).max(1e-9)) * possible;
        (power, frequency, chance.min(1.0))
    }

    fn describe(&self, frequency: f64, chance: f64, median_ns: i64, jobs: usize) -> Option<Spikes> {
        let period = 1.0 / frequency;
        let room = (0.1 * period).max(1.0) / period;
        let (mut peaks, mut length, mut periods) = (Vec::new(), 0_u64, 0.0);
        for (round, span) in self.rounds.iter().zip(&self.spans) {
            periods += span * frequency;
            let [(x, y), ..] = vectors(round, frequency);
            let phase = y.atan2(x) / TAU;
            for spike in round {
                let off = (f64::from(spike.start) * frequency - phase).rem_euclid(1.0);
                if off.min(1.0 - off) <= room {
                    peaks.push(spike.peak_ns);
                    length += u64::from(spike.jobs);
                }
            }
        }
        let in_phase = peaks.len();
        let height_ns = median_of(&peaks)?;
        let high = height_ns as f64 >= HIGHER * median_ns as f64 && height_ns > median_ns;
        (high && in_phase >= FEWEST).then(|| Spikes {
            period_jobs: period,
            jobs_per_spike: length as f64 / in_phase as f64,
            level_ns: self.level_ns,
            height_ns,
            median_ns,
            spikes: self.count() as u64,
            in_phase: in_phase as u64,
            per_period: in_phase as f64 / periods,
            share: length as f64 / jobs as f64,
            chance,
        })
    }
}

/// Harmonics below half the rate of jobs, beyond which they are images of others; one at least.
fn harmonics(frequency: f64) -> usize {
    ((0.49 / frequency) as usize).clamp(1, HARMONICS)
}

/// A vector in the plane, or a phase as one of length 1.
type Vector = (f64, f64);

/// The phase that is the sum of two.
fn product(a: Vector, b: Vector) -> Vector {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The sums of phases and of their multiples, one for each harmonic; those not asked for are 0.
fn sums(phases: impl Iterator<Item = Vector>, harmonics: usize) -> [Vector; HARMONICS] {
    let mut sums = [(0.0, 0.0); HARMONICS];
    for phase in phases {
        let mut multiple = (1.0, 0.0);
        for sum in &mut sums[..harmonics] {
            multiple = product(multiple, phase);
            *sum = (sum.0 + multiple.0, sum.1 + multiple.1);
        }
    }
    sums
}

fn squares(sums: &[Vector]) -> f64 {
    sums.iter().map(|(x, y)| x * x + y * y).sum()
}

/// The sum of the spikes' phases at one frequency.
fn vectors(spikes: &[Spike], frequency: f64) -> [Vector; HARMONICS] {
    let phase = |spike: &Spike| {
        let (sin, cos) = (TAU * (f64::from(spike.start) * frequency).fract()).sin_cos();
        (cos, sin)
    };
    sums(spikes.iter().map(phase), 1)
}
