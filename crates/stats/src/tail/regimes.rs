//! Two regimes that alternate, such as normal and stalled.

use super::TailRound;
use super::hidden_markov::{self, HiddenMarkov};
use crate::median_of;
use serde::{Deserialize, Serialize};

/// Jobs in the shortest block: its median does not feel a single long job.
pub(crate) const SHORTEST: usize = 3;
/// Blocks at most.
const BLOCKS: usize = 50_000;
/// Two regimes must be better by this in Bayes' information criterion; 10 counts as very strong evidence.
const BETTER: f64 = 20.0;
/// A regime lasts at least so many blocks in the mean.
const DWELL_BLOCKS: f64 = 2.0;
/// Two regimes are apart when the difference of their means is at least this multiple of their deviations (Ashman,
/// Bird and Zepf, "Detecting bimodality in astronomical datasets", Astronomical Journal 108, 1994).
const APART: f64 = 2.0;
/// The slow regime's median is at least this multiple of the fast one's.
pub(crate) const SLOWER: f64 = 1.1;

/// One of two regimes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regime {
    /// Share of jobs in it.
    pub share: f64,
    /// Median of its jobs, ns.
    pub median_ns: i64,
    /// Mean length of a stay, in jobs.
    pub dwell_jobs: f64,
    /// Stays in it.
    pub visits: u64,
}

/// Two regimes that alternate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regimes {
    /// The one with the smaller median.
    pub fast: Regime,
    /// The other.
    pub slow: Regime,
    /// How much better two regimes describe the jobs than the better of the alternatives does, by Bayes' information
    /// criterion.
    pub evidence: f64,
}

/// Looks for two regimes: a hidden Markov model of two states over the logarithms of medians of short blocks, against
/// one regime with memory (a first-order autoregression) and two without (a mixture), by Bayes' information criterion.
/// Both alternatives matter: the first is what drift and correlation look like, the second what a heavy tail does.
pub(super) fn find(rounds: &[TailRound]) -> Option<Regimes> {
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
    let long = |regime: &Regime| regime.dwell_jobs >= DWELL_BLOCKS * block as f64;
    let real = long(&fast)
        && long(&slow)
        && slow.median_ns as f64 >= SLOWER * fast.median_ns as f64
        && slow.median_ns > fast.median_ns;
    real.then_some(Regimes {
        fast,
        slow,
        evidence,
    })
}

/// A model of two regimes for sequences of logarithms, and how much better it describes them than the better of the
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

/// Both regimes in the jobs' own values; `None` unless they alternate within a round.
fn describe(rounds: &[TailRound], model: &HiddenMarkov, block: usize) -> Option<[Regime; 2]> {
    let mut values = [Vec::new(), Vec::new()];
    let (mut visits, mut switches) = ([0_u64; 2], 0);
    for (round, slow) in rounds.iter().zip(&model.slow) {
        let mut before = None;
        for (jobs, &slow) in round.values_ns.chunks_exact(block).zip(slow) {
            let state = usize::from(slow > 0.5);
            values[state].extend_from_slice(jobs);
            if before != Some(state) {
                visits[state] += 1;
                switches += u64::from(before.is_some());
            }
            before = Some(state);
        }
    }
    (switches > 0 && visits[0] > 0 && visits[1] > 0).then_some(())?;
    let all = (values[0].len() + values[1].len()) as f64;
    let regime = |state: usize| {
        let jobs = values[state].len() as f64;
        Some(Regime {
            share: jobs / all,
            median_ns: median_of(&values[state])?,
            dwell_jobs: jobs / visits[state] as f64,
            visits: visits[state],
        })
    };
    Some([regime(0)?, regime(1)?])
}
