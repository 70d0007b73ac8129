//! Two states over noise that wanders: a first-order autoregression whose level switches between two.
//!
//! A plain [hidden Markov model](super::hidden_markov) assumes that the noise beside its two levels is independent. Where the
//! machine drifts as well, that makes it a worse description than drift alone, and a state of a small share of the jobs is lost.
//! Here drift is part of the model (Hamilton, "A new approach to the economic analysis of nonstationary time series and the
//! business cycle", Econometrica 57(2), 1989), and has to be beaten by the jumps.

use super::hidden_markov::{density, halves, normal_of, slow_share, transitions};

/// Steps of expectation and maximisation.
const STEPS: usize = 40;
/// Parameters: two means, two deviations, the factor, two probabilities to stay.
pub(super) const PARAMETERS: f64 = 7.0;
/// The same where the state has no memory.
pub(super) const WITHOUT_MEMORY: f64 = 6.0;
/// Values on either side whose median the first guess takes for drift: a state that is there for less than half of so long stays
/// visible.
const BESIDE: usize = 150;

/// The model: state 1 has the larger mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Switching {
    pub mean: [f64; 2],
    /// Of the difference between a value and its forecast from the one before.
    pub sd: [f64; 2],
    /// The part of a value's distance to its mean that the next one inherits.
    pub factor: f64,
    /// Probability of staying in each state.
    pub stay: [f64; 2],
    /// Of the sequences.
    pub log_likelihood: f64,
    /// For each sequence, the probability of state 1 at each place.
    pub slow: Vec<Vec<f64>>,
    /// Whether the state at one place depends on that at the one before.
    has_memory: bool,
    /// Mean and deviation of all values: how the first of a sequence is distributed.
    all: (f64, f64),
}

impl Switching {
    /// Expectation and conditional maximisation (Meng and Rubin, "Maximum likelihood estimation via the ECM algorithm",
    /// Biometrika 80(2), 1993) over sequences that follow each other with a break. `None` where the values do not make two groups.
    pub fn fit(sequences: &[Vec<f64>]) -> Option<Self> {
        Self::guess(sequences)?.climb(sequences)
    }

    fn guess(sequences: &[Vec<f64>]) -> Option<Self> {
        let drift = sequences.iter().map(|sequence| drift(sequence));
        let level: Vec<Vec<f64>> = (sequences.iter().zip(drift))
            .map(|(sequence, drift)| sequence.iter().zip(drift).map(|(x, d)| x - d).collect())
            .collect();
        let (guess, _) = halves(&level)?;
        let all = normal_of(&sequences.concat());
        let apart = guess[1] - guess[0];
        let noise = noise(sequences)?.max(0.02 * apart);
        let share = share_above(&level, (guess[0] + guess[1]) / 2.0);
        Some(Self {
            mean: [all.0 - share * apart, all.0 + (1.0 - share) * apart],
            sd: [noise; 2],
            factor: 0.95,
            stay: [1.0 - 0.1 * share, 0.9],
            log_likelihood: f64::NEG_INFINITY,
            slow: Vec::new(),
            has_memory: true,
            all,
        })
    }

    /// The log likelihood of the best model whose state has no memory near this one, else near the first guess: a level that wanders and
    /// now and then jumps by any amount, as in a burst or for one long job. `None` without a guess.
    pub fn jumps(sequences: &[Vec<f64>], near: Option<&Self>) -> Option<f64> {
        let start = match near {
            Some(near) => near.clone(),
            None => Self::guess(sequences)?,
        };
        let share = slow_share(start.stay);
        let model = Self {
            stay: [1.0 - share, share],
            log_likelihood: f64::NEG_INFINITY,
            has_memory: false,
            ..start
        };
        Some(model.climb(sequences)?.log_likelihood)
    }

    fn climb(mut self, sequences: &[Vec<f64>]) -> Option<Self> {
        for _ in 0..STEPS {
            let before = self.log_likelihood;
            let pairs = self.expect(sequences);
            if self.log_likelihood - before < 1e-3 {
                break;
            }
            self.maximise(sequences, &pairs)?;
        }
        self.expect(sequences);
        (self.mean[0] < self.mean[1]).then_some(self)
    }

    /// The density of a value behind another, for each state before and each now.
    fn densities(&self, before: f64, x: f64) -> [[f64; 2]; 2] {
        [0, 1].map(|from| {
            let inherited = self.factor * (before - self.mean[from]);
            [0, 1].map(|to| density(x, self.mean[to] + inherited, self.sd[to]))
        })
    }

    /// Forward and backward over all sequences: fills likelihood and probabilities, returns for each sequence the probability of each pair of states
    /// of two neighbours.
    fn expect(&mut self, sequences: &[Vec<f64>]) -> Vec<Vec<[[f64; 2]; 2]>> {
        self.log_likelihood = 0.0;
        self.slow.clear();
        let share = slow_share(self.stay);
        let step = transitions(self.stay);
        let mut all = Vec::with_capacity(sequences.len());
        for sequence in sequences {
            let mut forward = vec![[1.0 - share, share]];
            // For each step the factors that the two states pass on to the two behind, for one.
            let mut passed: Vec<[[f64; 2]; 2]> = Vec::with_capacity(sequence.len());
            if let Some(&first) = sequence.first() {
                self.log_likelihood += density(first, self.all.0, self.all.1.max(1e-9)).ln();
            }
            for pair in sequence.windows(2) {
                let seen = self.densities(pair[0], pair[1]);
                let now = forward[forward.len() - 1];
                let mut pass = [0, 1].map(|from| [0, 1].map(|to| step[from][to] * seen[from][to]));
                let joint = [0, 1].map(|to| now[0] * pass[0][to] + now[1] * pass[1][to]);
                let scale = (joint[0] + joint[1]).max(1e-300);
                self.log_likelihood += scale.ln();
                pass.iter_mut().flatten().for_each(|pass| *pass /= scale);
                passed.push(pass);
                forward.push(joint.map(|joint| joint / scale));
            }
            let mut slow = vec![0.0; sequence.len()];
            let mut pairs = vec![[[0.0; 2]; 2]; passed.len()];
            let mut backward = [1.0, 1.0];
            for place in (0..sequence.len()).rev() {
                let both = [0, 1].map(|s| forward[place][s] * backward[s]);
                slow[place] = both[1] / (both[0] + both[1]).max(1e-300);
                if place > 0 {
                    let pass = passed[place - 1];
                    let earlier = forward[place - 1];
                    pairs[place - 1] = [0, 1]
                        .map(|from| [0, 1].map(|to| earlier[from] * pass[from][to] * backward[to]));
                    backward = [0, 1]
                        .map(|from| pass[from][0] * backward[0] + pass[from][1] * backward[1]);
                }
            }
            self.slow.push(slow);
            all.push(pairs);
        }
        all
    }

    /// Each group of parameters in its turn, the others held.
    fn maximise(&mut self, sequences: &[Vec<f64>], pairs: &[Vec<[[f64; 2]; 2]>]) -> Option<()> {
        let each = || {
            (sequences.iter().zip(pairs)).flat_map(|(sequence, pairs)| {
                (sequence.windows(2).zip(pairs)).flat_map(|(values, weights)| {
                    [(0, 0), (0, 1), (1, 0), (1, 1)]
                        .map(|(from, to)| (from, to, values[0], values[1], weights[from][to]))
                })
            })
        };
        let (mut moves, mut weight) = ([[0.0; 2]; 2], [0.0; 2]);
        for (from, to, _, _, w) in each() {
            moves[from][to] += w;
            weight[to] += w;
        }
        weight.iter().all(|&w| w > 2.0).then_some(())?;
        // The means: least squares in two unknowns, since a step from one state to the other has both in it.
        let (mut square, mut right) = ([[0.0; 2]; 2], [0.0; 2]);
        for (from, to, before, x, w) in each() {
            let mut row = [0.0; 2];
            row[to] += 1.0;
            row[from] -= self.factor;
            let w = w / self.sd[to].powi(2);
            for s in 0..2 {
                right[s] += w * row[s] * (x - self.factor * before);
                square[s][0] += w * row[s] * row[0];
                square[s][1] += w * row[s] * row[1];
            }
        }
        let determinant = square[0][0] * square[1][1] - square[0][1] * square[1][0];
        (determinant > 0.0).then_some(())?;
        self.mean = [
            (right[0] * square[1][1] - right[1] * square[0][1]) / determinant,
            (right[1] * square[0][0] - right[0] * square[1][0]) / determinant,
        ];
        let (mut cross, mut own) = (0.0, 0.0);
        for (from, to, before, x, w) in each() {
            let w = w / self.sd[to].powi(2);
            cross += w * (before - self.mean[from]) * (x - self.mean[to]);
            own += w * (before - self.mean[from]).powi(2);
        }
        self.factor = (cross / own.max(1e-300)).clamp(0.0, 0.999);
        let mut squares = [0.0; 2];
        for (from, to, before, x, w) in each() {
            let foretold = self.mean[to] + self.factor * (before - self.mean[from]);
            squares[to] += w * (x - foretold).powi(2);
        }
        let floor = 0.02 * (self.mean[1] - self.mean[0]).abs();
        for s in 0..2 {
            self.sd[s] = (squares[s] / weight[s]).sqrt().max(floor).max(1e-9);
        }
        if self.has_memory {
            let staying = [moves[0][0], moves[1][1]];
            let all = moves.map(|moves| moves[0] + moves[1]);
            self.stay =
                [0, 1].map(|s| (staying[s] / f64::max(all[s], 1e-300)).clamp(1e-6, 1.0 - 1e-6));
        } else {
            let share = (weight[1] / (weight[0] + weight[1])).clamp(1e-6, 1.0 - 1e-6);
            self.stay = [1.0 - share, share];
        }
        Some(())
    }
}

/// The drift of a sequence: the median of the values about each place.
fn drift(sequence: &[f64]) -> Vec<f64> {
    /// Places that share one.
    const SHARE: usize = 10;
    let n = sequence.len();
    let of = |place: usize| {
        let from = place.saturating_sub(BESIDE);
        middle(&sequence[from..(place + BESIDE + 1).min(n)])
    };
    let mut all = Vec::with_capacity(n);
    for begin in (0..n).step_by(SHARE) {
        let drift = of((begin + SHARE / 2).min(n - 1));
        all.resize((begin + SHARE).min(n), drift);
    }
    all
}

/// The deviation of steps between neighbours, from its median absolute value: a few large ones do not count.
fn noise(sequences: &[Vec<f64>]) -> Option<f64> {
    let steps = sequences.iter().flat_map(|s| s.windows(2));
    let steps: Vec<f64> = steps.map(|pair| (pair[1] - pair[0]).abs()).collect();
    (!steps.is_empty()).then(|| 1.483 * middle(&steps))
}

/// The upper median; 0 of none.
fn middle(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let place = values.len() / 2;
    match values.is_empty() {
        true => 0.0,
        false => *values.select_nth_unstable_by(place, f64::total_cmp).1,
    }
}

fn share_above(sequences: &[Vec<f64>], level: f64) -> f64 {
    let above = sequences.iter().flatten().filter(|&&x| x > level).count();
    let all = sequences.iter().map(Vec::len).sum::<usize>().max(1);
    (above as f64 / all as f64).clamp(1e-3, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Drift whose deviation is half of the step between the levels, stays of 400 and 20 places: a twentieth of the time. One level that drifts alike
    /// is better described without a second.
    #[test]
    fn a_rare_level_is_found_again_in_drift() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
        let (mut slow, mut drift) = (false, 0.0);
        let mut sequence = |step: f64| -> Vec<f64> {
            (0..20_000)
                .map(|_| {
                    slow ^= random.random::<f64>() < if slow { 0.05 } else { 0.0025 };
                    let noise = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                    drift = 0.999 * drift + 0.01 * noise;
                    drift + if slow { step } else { 0.0 }
                })
                .collect()
        };
        let two = [sequence(0.45)];
        let model = Switching::fit(&two).unwrap();
        let step = model.mean[1] - model.mean[0];
        assert!((step - 0.45).abs() < 0.01, "{step}");
        assert!((model.factor - 0.999).abs() < 0.002, "{}", model.factor);
        assert!((model.stay[0] - 0.9975).abs() < 0.001, "{:?}", model.stay);
        assert!((model.stay[1] - 0.95).abs() < 0.02, "{:?}", model.stay);
        assert!(super::super::states::two_levels(&two).is_some());
        assert!(super::super::states::two_levels(&[sequence(0.0)]).is_none());
        assert_eq!(Switching::fit(&[vec![1.0; 50]]), None);
    }
}
