//! Two states that alternate, such as normal and stalled.

use super::TailRound;
use super::hidden_markov::{self, HiddenMarkov};
use super::switching::{self, Switching};
use crate::compare::FEWEST_ROUNDS;
use crate::{DEFAULT_CONFIDENCE, Share, median_of};
use serde::{Deserialize, Serialize};

/// Jobs in the shortest block: its median does not feel a single long job.
pub(crate) const SHORTEST: usize = 3;
/// Blocks at most.
const BLOCKS: usize = 50_000;
/// Two states must be better by this in Bayes' information criterion; 10 counts as very strong evidence.
const BETTER: f64 = 20.0;
/// Minimum mean length of a state in blocks.
const DWELL_BLOCKS: f64 = 2.0;
/// Two states are apart when the difference of their means is at least this multiple of their deviations (Ashman,
/// Bird and Zepf, "Detecting bimodality in astronomical datasets", Astronomical Journal 108, 1994).
const APART: f64 = 2.0;
/// The slow state's median is at least this multiple of the fast one's.
pub(crate) const SLOWER: f64 = 1.1;

/// One of two states.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Share of jobs in it.
    pub share: f64,
    /// The ends of its 95 % interval, from the differences of rounds; `None` with fewer than three rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_interval: Option<(f64, f64)>,
    /// Median of its jobs, ns.
    pub median_ns: i64,
    /// Mean length of a stay, in jobs.
    pub dwell_jobs: f64,
    /// The same in time, ns, where the instants of releases are known. Jobs need not follow each other evenly: cells that take turns have
    /// none while others work. A change lies in the middle between the jobs that it was seen between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dwell_ns: Option<f64>,
    /// Stays in it.
    pub visits: u64,
}

/// Two states that alternate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnStates {
    /// The one with the smaller median.
    pub fast: State,
    /// The other.
    pub slow: State,
    /// How much better two states describe the jobs than the better of the alternatives does, by Bayes' information
    /// criterion.
    pub evidence: f64,
}

/// Looks for two states: a hidden Markov model of two states over the logarithms of medians of short blocks, against
/// one state with memory (a first-order autoregression) and two without (a mixture), by Bayes' information criterion.
/// Both alternatives matter: drift and correlation look like the first, a heavy tail like the second.
pub(super) fn find(rounds: &[TailRound]) -> Option<OwnStates> {
    let jobs: usize = rounds.iter().map(|round| round.values_ns.len()).sum();
    let block = SHORTEST.max(jobs.div_ceil(BLOCKS));
    let medians: Vec<Vec<i64>> = rounds
        .iter()
        .map(|round| {
            let blocks = round.values_ns.chunks_exact(block);
            blocks.filter_map(median_of).collect()
        })
        .collect();
    let floor = (median_of(&medians.concat())? / 100).max(1);
    let log = |&median: &i64| (median.max(floor) as f64).ln();
    let sequences: Vec<Vec<f64>> = medians
        .iter()
        .map(|round| round.iter().map(log).collect())
        .collect();
    let (model, evidence) = two(&sequences)?;
    let [fast, slow] = describe(rounds, &model, block)?;
    let long = |state: &State| state.dwell_jobs >= DWELL_BLOCKS * block as f64;
    let real = long(&fast)
        && long(&slow)
        && slow.median_ns as f64 >= SLOWER * fast.median_ns as f64
        && slow.median_ns > fast.median_ns;
    real.then_some(OwnStates {
        fast,
        slow,
        evidence,
    })
}

/// A model of two states for sequences of logarithms, and how much better it describes them than the better of the
/// alternatives does. `None` where they are not apart or it is not better.
pub(crate) fn two(sequences: &[Vec<f64>]) -> Option<(HiddenMarkov, f64)> {
    let count = sequences.iter().map(Vec::len).sum::<usize>() as f64;
    let model = HiddenMarkov::fit(sequences)?;
    let spread = ((model.sd[0].powi(2) + model.sd[1].powi(2)) / 2.0).sqrt();
    (model.mean[1] - model.mean[0] >= APART * spread).then_some(())?;
    let criterion = |likelihood: f64, parameters: f64| parameters * count.ln() - 2.0 * likelihood;
    let two = criterion(model.log_likelihood, hidden_markov::PARAMETERS);
    let drift = criterion(hidden_markov::autoregression(sequences), 3.0);
    let tail = criterion(hidden_markov::mixture(sequences, &model), 5.0);
    let evidence = drift.min(tail) - two;
    (evidence >= BETTER).then_some((model, evidence))
}

/// Two levels that a machine alternates between, beside all else that it does.
pub(crate) struct TwoLevels {
    /// Of the logarithms: state 1 has the larger.
    pub mean: [f64; 2],
    /// For each sequence, the probability of state 1 at each place.
    pub slow: Vec<Vec<f64>>,
    /// As of [`OwnStates`].
    pub evidence: f64,
}

/// The better of two models of two levels, one with independent noise and one with noise that wanders, against models without a second
/// level: drift (a first-order autoregression), a heavy tail (a mixture without memory), and a level that wanders and now and then jumps by
/// any amount (the same with noise that wanders). `None` where levels are not apart, stays are shorter than two values in the mean, or neither is
/// better than all of these.
pub(crate) fn two_levels(sequences: &[Vec<f64>]) -> Option<TwoLevels> {
    let count = sequences.iter().map(Vec::len).sum::<usize>() as f64;
    let criterion = |likelihood: f64, parameters: f64| parameters * count.ln() - 2.0 * likelihood;
    let plain = HiddenMarkov::fit(sequences);
    let wandering = Switching::fit(sequences);
    let mut one = criterion(hidden_markov::autoregression(sequences), 3.0);
    if let Some(model) = &plain {
        one = one.min(criterion(hidden_markov::mixture(sequences, model), 5.0));
    }
    if let Some(likelihood) = Switching::jumps(sequences, wandering.as_ref()) {
        one = one.min(criterion(likelihood, switching::WITHOUT_MEMORY));
    }
    let plain = plain.map(|m| {
        let two = criterion(m.log_likelihood, hidden_markov::PARAMETERS);
        (two, m.sd, m.stay, m.mean, m.slow)
    });
    let wandering = wandering.map(|m| {
        let two = criterion(m.log_likelihood, switching::PARAMETERS);
        (two, m.sd, m.stay, m.mean, m.slow)
    });
    let found = plain.into_iter().chain(wandering);
    let found = found.filter_map(|(two, sd, stay, mean, slow)| {
        let spread = ((sd[0].powi(2) + sd[1].powi(2)) / 2.0).sqrt();
        let dwell = stay.map(|stay| 1.0 / (1.0 - stay));
        let evidence = one - two;
        let is_real = mean[1] - mean[0] >= APART * spread
            && dwell.iter().all(|&dwell| dwell >= DWELL_BLOCKS)
            && evidence >= BETTER;
        is_real.then_some(TwoLevels {
            mean,
            slow,
            evidence,
        })
    });
    found.max_by(|a, b| a.evidence.total_cmp(&b.evidence))
}

/// Both states in the jobs' own values; `None` unless they alternate within a round.
fn describe(rounds: &[TailRound], model: &HiddenMarkov, block: usize) -> Option<[State; 2]> {
    let mut values = [Vec::new(), Vec::new()];
    let (mut visits, mut switches) = ([0_u64; 2], 0);
    let mut stayed_ns = Some([0.0; 2]);
    // Of each round the jobs in each state.
    let mut counts: Vec<[u64; 2]> = Vec::new();
    for (round, slow) in rounds.iter().zip(&model.slow) {
        let states: Vec<usize> = slow.iter().map(|&slow| usize::from(slow > 0.5)).collect();
        let mut before = None;
        let mut count = [0; 2];
        for (jobs, &state) in round.values_ns.chunks_exact(block).zip(&states) {
            values[state].extend_from_slice(jobs);
            count[state] += block as u64;
            if before != Some(state) {
                visits[state] += 1;
                switches += u64::from(before.is_some());
            }
            before = Some(state);
        }
        counts.push(count);
        stayed_ns = stayed_ns
            .zip(stayed(round.releases_ns, &states, block))
            .map(|(all, round)| [all[0] + round[0], all[1] + round[1]]);
    }
    (switches > 0 && visits[0] > 0 && visits[1] > 0).then_some(())?;
    let all = (values[0].len() + values[1].len()) as f64;
    let state = |state: usize| {
        let jobs = values[state].len() as f64;
        Some(State {
            share: jobs / all,
            share_interval: share_interval(&counts, state),
            median_ns: median_of(&values[state])?,
            dwell_jobs: jobs / visits[state] as f64,
            dwell_ns: stayed_ns.map(|ns| ns[state] / visits[state] as f64),
            visits: visits[state],
        })
    };
    Some([state(0)?, state(1)?])
}

/// The interval of the share of jobs in a state, from how many each round had in each.
fn share_interval(counts: &[[u64; 2]], state: usize) -> Option<(f64, f64)> {
    let of_rounds: Vec<(u64, u64)> = (counts.iter())
        .map(|count| (count[state], count[0] + count[1]))
        .filter(|(_, jobs)| *jobs > 0)
        .collect();
    (of_rounds.len() >= FEWEST_ROUNDS).then_some(())?;
    let share = Share::of_counts(&of_rounds, DEFAULT_CONFIDENCE)?;
    share.low.zip(share.high)
}

/// How long a round was in each state, ns. A block lasts from the middle between the release of its first job and that of the job
/// before to the same place of the next block; beyond its first and last release a round goes on for half of the mean distance between
/// two. `None` without the releases.
fn stayed(releases_ns: &[i64], states: &[usize], block: usize) -> Option<[f64; 2]> {
    let releases = releases_ns.get(..states.len() * block)?;
    releases.is_sorted().then_some(())?;
    let mut stayed = [0.0; 2];
    let [Some(&first), Some(&last)] = [releases.first(), releases.last()] else {
        return Some(stayed);
    };
    let half = (last - first) as f64 / (releases.len() - 1).max(1) as f64 / 2.0;
    let edge = |place: usize| match place {
        0 => -half,
        place if place == releases.len() => (last - first) as f64 + half,
        place => (releases[place - 1] - first + releases[place] - first) as f64 / 2.0,
    };
    for (place, &state) in states.iter().enumerate() {
        stayed[state] += edge((place + 1) * block) - edge(place * block);
    }
    Some(stayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of six jobs, 1 ms apart, a lap every 50 ms; the machine is slow in every other four laps.
    #[test]
    fn stays_are_told_in_the_time_that_they_took() {
        let places = 0..3_000_i64;
        let releases_ns: Vec<i64> = (places.clone())
            .map(|job| (job / 6 * 50 + job % 6) * 1_000_000)
            .collect();
        let values_ns: Vec<i64> = (places.clone())
            .map(|job| 1_000 + job % 7 + job / 24 % 2 * 1_000)
            .collect();
        let activations: Vec<u32> = (0..3_000).collect();
        let round = TailRound {
            activations: &activations,
            values_ns: &values_ns,
            releases_ns: &releases_ns,
        };
        let found = find(&[round, round]).unwrap();
        for state in [found.fast, found.slow] {
            assert!((state.dwell_jobs - 24.0).abs() < 1e-9, "{state:?}");
            let dwell_ms = state.dwell_ns.unwrap() / 1e6;
            assert!((dwell_ms - 200.0).abs() < 1.0, "{dwell_ms}");
        }
        let unknown = TailRound {
            releases_ns: &[],
            ..round
        };
        let found = find(&[round, unknown]).unwrap();
        assert_eq!((found.fast.dwell_ns, found.slow.dwell_ns), (None, None));
    }
}
