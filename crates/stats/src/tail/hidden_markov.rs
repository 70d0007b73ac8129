//! A hidden Markov model of two states with normal values, and the simpler models that it must beat.

use std::f64::consts::TAU;

/// Steps of expectation and maximisation.
const STEPS: usize = 40;
/// Parameters: two means, two deviations, two probabilities to stay.
pub(super) const PARAMETERS: f64 = 6.0;

/// The model: state 1 has the larger mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HiddenMarkov {
    pub mean: [f64; 2],
    pub sd: [f64; 2],
    /// Probability of staying in each state.
    pub stay: [f64; 2],
    /// Of the sequences.
    pub log_likelihood: f64,
    /// For each sequence, the probability of state 1 at each place.
    pub slow: Vec<Vec<f64>>,
}

impl HiddenMarkov {
    /// Baum and Welch's estimate (Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77(2), 1989)
    /// over sequences that follow each other with a break. `None` where the values do not make two groups.
    pub fn fit(sequences: &[Vec<f64>]) -> Option<Self> {
        let (mean, sd) = halves(sequences)?;
        let floor = 0.02 * (mean[1] - mean[0]).abs();
        let mut model = Self {
            mean,
            sd: sd.map(|sd| sd.max(floor)),
            stay: [0.9; 2],
            log_likelihood: f64::NEG_INFINITY,
            slow: Vec::new(),
        };
        for _ in 0..STEPS {
            let before = model.log_likelihood;
            let sums = model.expect(sequences);
            if model.log_likelihood - before < 1e-3 {
                break;
            }
            model.maximise(&sums, floor)?;
        }
        model.expect(sequences);
        (model.mean[0] < model.mean[1]).then_some(model)
    }

    fn densities(&self, x: f64) -> [f64; 2] {
        [0, 1].map(|s| density(x, self.mean[s], self.sd[s]))
    }

    /// Forward and backward over all sequences: fills likelihood and probabilities, returns the sums that maximising needs.
    fn expect(&mut self, sequences: &[Vec<f64>]) -> Sums {
        let mut sums = Sums::default();
        self.log_likelihood = 0.0;
        self.slow.clear();
        let share = slow_share(self.stay);
        let step = transitions(self.stay);
        for sequence in sequences {
            let mut forward: Vec<[f64; 2]> = Vec::with_capacity(sequence.len());
            let mut scales = Vec::with_capacity(sequence.len());
            let mut prior = [1.0 - share, share];
            for &x in sequence {
                let seen = self.densities(x);
                let joint = [prior[0] * seen[0], prior[1] * seen[1]];
                let scale = (joint[0] + joint[1]).max(1e-300);
                let now = joint.map(|p| p / scale);
                self.log_likelihood += scale.ln();
                forward.push(now);
                scales.push((seen, scale));
                prior = [0, 1].map(|s| now[0] * step[0][s] + now[1] * step[1][s]);
            }
            let mut slow = vec![0.0; sequence.len()];
            let mut backward = [1.0, 1.0];
            for place in (0..sequence.len()).rev() {
                let now = forward[place];
                let both = [now[0] * backward[0], now[1] * backward[1]];
                let total = (both[0] + both[1]).max(1e-300);
                let weight = both.map(|p| p / total);
                slow[place] = weight[1];
                sums.add(sequence[place], weight);
                if place > 0 {
                    let (seen, scale) = scales[place];
                    let earlier = forward[place - 1];
                    let next = [0, 1].map(|s| seen[s] * backward[s] / scale);
                    for from in 0..2 {
                        for to in 0..2 {
                            sums.moves[from][to] += earlier[from] * step[from][to] * next[to];
                        }
                    }
                    backward = [0, 1].map(|s| step[s][0] * next[0] + step[s][1] * next[1]);
                }
            }
            self.slow.push(slow);
        }
        sums
    }

    fn maximise(&mut self, sums: &Sums, floor: f64) -> Option<()> {
        for s in 0..2 {
            (sums.weight[s] > 2.0).then_some(())?;
            self.mean[s] = sums.value[s] / sums.weight[s];
            let variance = sums.square[s] / sums.weight[s] - self.mean[s].powi(2);
            self.sd[s] = variance.max(0.0).sqrt().max(floor);
            let all = sums.moves[s][0] + sums.moves[s][1];
            self.stay[s] = (sums.moves[s][s] / all.max(1e-300)).clamp(1e-6, 1.0 - 1e-6);
        }
        Some(())
    }
}

#[derive(Default)]
struct Sums {
    weight: [f64; 2],
    value: [f64; 2],
    square: [f64; 2],
    moves: [[f64; 2]; 2],
}

impl Sums {
    fn add(&mut self, x: f64, weight: [f64; 2]) {
        for (s, w) in weight.into_iter().enumerate() {
            self.weight[s] += w;
            self.value[s] += w * x;
            self.square[s] += w * x * x;
        }
    }
}

/// The share of state 1 in the long run, of a chain of two states with these probabilities of staying.
pub(super) fn slow_share(stay: [f64; 2]) -> f64 {
    let leave = stay.map(|stay| 1.0 - stay);
    (leave[0] / (leave[0] + leave[1]).max(1e-300)).clamp(1e-6, 1.0 - 1e-6)
}

/// The probability of each state behind each.
pub(super) fn transitions(stay: [f64; 2]) -> [[f64; 2]; 2] {
    [[stay[0], 1.0 - stay[0]], [1.0 - stay[1], stay[1]]]
}

pub(super) fn density(x: f64, mean: f64, sd: f64) -> f64 {
    // A little everywhere, so that one value far from both states does not stop the recursion.
    (-0.5 * ((x - mean) / sd).powi(2)).exp() / (sd * TAU.sqrt()) + 1e-12
}

/// Means and deviations below and above the cut that explains most of the variance (Otsu, "A threshold selection
/// method from gray-level histograms", IEEE Transactions on Systems, Man and Cybernetics 9(1), 1979).
pub(super) fn halves(sequences: &[Vec<f64>]) -> Option<([f64; 2], [f64; 2])> {
    let mut sorted = sequences.concat();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    (n >= 8).then_some(())?;
    let total: f64 = sorted.iter().sum();
    let (mut sum, mut best, mut cut) = (0.0, 0.0, 0);
    for (place, value) in sorted.iter().enumerate().take(n - 1) {
        sum += value;
        let (left, right) = ((place + 1) as f64, (n - place - 1) as f64);
        let between = left * right * (sum / left - (total - sum) / right).powi(2);
        if between > best {
            (best, cut) = (between, place + 1);
        }
    }
    (cut > 0).then_some(())?;
    let (low, high) = sorted.split_at(cut);
    let (low, high) = (normal_of(low), normal_of(high));
    Some(([low.0, high.0], [low.1, high.1]))
}

pub(super) fn normal_of(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// The log likelihood of one state whose neighbours resemble each other: a first-order autoregression with normal
/// noise. It has three parameters.
pub(super) fn autoregression(sequences: &[Vec<f64>]) -> f64 {
    let (mean, sd) = normal_of(&sequences.concat());
    let (mut cross, mut square) = (0.0, 0.0);
    let pairs = || sequences.iter().flat_map(|s| s.windows(2));
    for pair in pairs() {
        cross += (pair[0] - mean) * (pair[1] - mean);
        square += (pair[0] - mean).powi(2);
    }
    let factor = if square > 0.0 { cross / square } else { 0.0 };
    let residual = |pair: &[f64]| pair[1] - mean - factor * (pair[0] - mean);
    let count = pairs().count().max(1) as f64;
    let noise = (pairs().map(|pair| residual(pair).powi(2)).sum::<f64>() / count).sqrt();
    let first = sequences.iter().filter_map(|s| s.first());
    let first: f64 = first.map(|&x| density(x, mean, sd.max(1e-9)).ln()).sum();
    let rest = pairs().map(|pair| density(residual(pair), 0.0, noise.max(1e-9)).ln());
    first + rest.sum::<f64>()
}

/// The log likelihood of values drawn from the model's two states without memory, its five parameters refitted.
pub(super) fn mixture(sequences: &[Vec<f64>], start: &HiddenMarkov) -> f64 {
    let mut model = start.clone();
    let mut share = slow_share(start.stay);
    let floor = 0.02 * (start.mean[1] - start.mean[0]).abs();
    let mut best = f64::NEG_INFINITY;
    for _ in 0..STEPS {
        let mut sums = Sums::default();
        let mut likelihood = 0.0;
        for &x in sequences.iter().flatten() {
            let seen = model.densities(x);
            let joint = [(1.0 - share) * seen[0], share * seen[1]];
            let total = (joint[0] + joint[1]).max(1e-300);
            likelihood += total.ln();
            sums.add(x, joint.map(|p| p / total));
        }
        best = f64::max(best, likelihood);
        let all = sums.weight[0] + sums.weight[1];
        share = (sums.weight[1] / all).clamp(1e-6, 1.0 - 1e-6);
        if model.maximise(&sums, floor).is_none() {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Dwell times of 40 and 10 places: the probabilities to stay are 0.975 and 0.9.
    #[test]
    fn a_model_is_found_again() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let mut slow = false;
        let sequence: Vec<f64> = (0..20_000)
            .map(|_| {
                let leave = if slow { 0.1 } else { 0.025 };
                slow ^= random.random::<f64>() < leave;
                let noise = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                if slow { 5.0 + 0.5 * noise } else { noise }
            })
            .collect();
        let model = HiddenMarkov::fit(&[sequence]).unwrap();
        assert!((model.mean[0]).abs() < 0.05 && (model.mean[1] - 5.0).abs() < 0.05);
        assert!((model.sd[0] - 1.0).abs() < 0.05 && (model.sd[1] - 0.5).abs() < 0.05);
        assert!((model.stay[0] - 0.975).abs() < 0.005, "{:?}", model.stay);
        assert!((model.stay[1] - 0.9).abs() < 0.02, "{:?}", model.stay);
    }

    #[test]
    fn equal_values_make_no_two_groups() {
        assert_eq!(HiddenMarkov::fit(&[vec![1.0; 50]]), None);
        assert_eq!(HiddenMarkov::fit(&[vec![]]), None);
    }
}
