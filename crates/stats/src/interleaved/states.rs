//! Two states of the machine that every arm meets, such as a neighbour on the sibling thread at work or not, and the ratio
//! within each: like compared with like.

use super::{Turn, lap_logs, round_log};
use crate::compare::{FEWEST_ROUNDS, Ratio};
use crate::tail::states::{self, SHORTEST, SLOWER};
use crate::{Share, median_of};
use serde::{Deserialize, Serialize};

/// How often the arms' own levels are re-estimated once states are known.
const PASSES: usize = 3;
/// Levels that moved by less than this part of a time are left as they are: states are at least 1.1 apart.
const SETTLED: f64 = 0.001;
/// Blocks at most, over all turns.
const BLOCKS: usize = 100_000;

/// In which state each job of each turn ran.
#[derive(Clone, Debug, PartialEq)]
pub struct States {
    /// How much better two states describe the jobs than the better of the alternatives does, by Bayes' information
    /// criterion.
    pub evidence: f64,
    /// The factor between the slow state and the fast one: the same for all arms, above 1.
    pub factor: f64,
    /// For each round and turn, for each job whether the state was slow.
    slow: Vec<Vec<Vec<bool>>>,
}

/// Two arms compared within the states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithinStates {
    /// The ratio of medians (other over baseline) in laps in which both turns were in the fast state throughout.
    pub fast: Option<Ratio>,
    /// The same in the slow state.
    pub slow: Option<Ratio>,
    /// The share of the baseline's jobs that were in the slow state; of several equal baselines, that of the jobs of all.
    pub slow_share_of_baseline: Share,
    /// The share of the other's jobs.
    pub slow_share_of_other: Share,
    /// The other's share less the baseline's.
    pub slow_share_difference: Share,
}

impl States {
    /// Looks for two states in the jobs of all arms together, in the order of time: a hidden Markov model over the logarithms of
    /// medians of short blocks, held against drift and against a heavy tail as in [`OwnStates`](crate::OwnStates).
    ///
    /// A state belongs to the machine and not to an arm, so each arm's own level is taken away first: its median ratio to the
    /// first arm over laps, which states do not disturb as long as most laps lie within one; then, with states known, that within
    /// them. `None` where one state describes the jobs as well.
    pub fn find(rounds: &[Vec<Turn>]) -> Option<States> {
        let jobs = rounds.iter().flatten().map(|turn| turn.values_ns.len());
        let block = SHORTEST.max(jobs.sum::<usize>().div_ceil(BLOCKS));
        let mut levels = first_levels(rounds)?;
        let mut found = None;
        for _ in 0..PASSES {
            let sequences = sequences(rounds, &levels, block)?;
            let model = states::two_levels(&sequences)?;
            let states = States {
                evidence: model.evidence,
                factor: (model.mean[1] - model.mean[0]).exp(),
                slow: labels(rounds, &model.slow, block),
            };
            let before = levels.clone();
            levels = states.levels(rounds, levels);
            found = Some(states);
            let moved = (levels.iter().zip(&before)).map(|(now, before)| (now - before).abs());
            if moved.fold(0.0, f64::max) < SETTLED {
                break;
            }
        }
        found.filter(|states| states.factor >= SLOWER && states.alternate())
    }

    /// Compares an arm with one or several equal baselines within the states, as [`compare_turns`](super::compare_turns) does over all jobs;
    /// `rounds` are those in which the states were found.
    pub fn compare(
        &self,
        rounds: &[Vec<Turn>],
        baselines: &[usize],
        other: usize,
        confidence: f64,
    ) -> WithinStates {
        let within = |slow: bool| {
            let logs: Vec<f64> = (rounds.iter().zip(&self.slow))
                .filter_map(|(turns, states)| {
                    let pure = pure_turns(turns, states, slow);
                    round_log(&pure, baselines, other).ok()?
                })
                .collect();
            let rests_on_enough = logs.len() >= FEWEST_ROUNDS.min(rounds.len());
            rests_on_enough
                .then(|| Ratio::of_logs(&logs, 0.0, confidence))
                .flatten()
        };
        // Of rounds in which both have jobs, how many were in the slow state and how many there were.
        let (of_baseline, of_other): (Vec<_>, Vec<_>) = (rounds.iter().zip(&self.slow))
            .map(|(turns, states)| {
                let count = |arms: &[usize]| slow_jobs(turns, states, arms);
                (count(baselines), count(&[other]))
            })
            .filter(|(baseline, other)| baseline.1 > 0 && other.1 > 0)
            .unzip();
        let share = |(slow, jobs): &(u64, u64)| *slow as f64 / *jobs as f64;
        let difference: Vec<f64> = (of_baseline.iter().zip(&of_other))
            .map(|(baseline, other)| share(other) - share(baseline))
            .collect();
        let none = || Share::of(&[], confidence, 0.0);
        WithinStates {
            fast: within(false),
            slow: within(true),
            slow_share_of_baseline: Share::of_counts(&of_baseline, confidence).unwrap_or_else(none),
            slow_share_of_other: Share::of_counts(&of_other, confidence).unwrap_or_else(none),
            slow_share_difference: Share::of(&difference, confidence, -1.0),
        }
    }

    /// Each arm's level against the first one's, from laps within one state.
    fn levels(&self, rounds: &[Vec<Turn>], before: Vec<f64>) -> Vec<f64> {
        let level = |arm: usize| {
            let logs: Vec<f64> = (rounds.iter().zip(&self.slow))
                .flat_map(|(turns, states)| {
                    [false, true].map(|slow| lap_logs(&pure_turns(turns, states, slow), [0, arm]))
                })
                .flatten()
                .flatten()
                .collect();
            median(logs)
        };
        before
            .iter()
            .enumerate()
            .map(|(arm, &before)| level(arm).unwrap_or(before))
            .collect()
    }

    /// Whether both states come and go within rounds.
    fn alternate(&self) -> bool {
        self.slow.iter().any(|round| {
            let mut jobs = round.iter().flatten();
            let first = jobs.next();
            jobs.any(|slow| Some(slow) != first)
        })
    }
}

/// The turns, those that were not in this state throughout without their jobs, so that laps stay paired.
fn pure_turns(turns: &[Turn], states: &[Vec<bool>], slow: bool) -> Vec<Turn> {
    (turns.iter().zip(states))
        .map(|(turn, states)| Turn {
            arm: turn.arm,
            values_ns: if states.iter().all(|&state| state == slow) {
                turn.values_ns.clone()
            } else {
                Vec::new()
            },
        })
        .collect()
}

/// How many jobs of these arms were in the slow state, and how many they have.
fn slow_jobs(turns: &[Turn], states: &[Vec<bool>], arms: &[usize]) -> (u64, u64) {
    let own = (turns.iter().zip(states)).filter(|(turn, _)| arms.contains(&turn.arm));
    own.fold((0, 0), |(slow, jobs), (_, states)| {
        let slow_here = states.iter().filter(|&&slow| slow).count();
        (slow + slow_here as u64, jobs + states.len() as u64)
    })
}

/// The median over laps of the logarithm of each arm's ratio to the first; 0 where they have no lap in common. `None` without
/// turns.
fn first_levels(rounds: &[Vec<Turn>]) -> Option<Vec<f64>> {
    let arms = rounds.iter().flatten().map(|turn| turn.arm).max()? + 1;
    let level = |arm: usize| {
        let logs = rounds
            .iter()
            .filter_map(|turns| lap_logs(turns, [0, arm]).ok());
        median(logs.flatten().collect()).unwrap_or(0.0)
    };
    Some((0..arms).map(level).collect())
}

/// For each round the logarithms of the medians of its blocks, less their arms' levels. `None` where a median is not
/// positive.
fn sequences(rounds: &[Vec<Turn>], levels: &[f64], block: usize) -> Option<Vec<Vec<f64>>> {
    let round = |turns: &Vec<Turn>| -> Option<Vec<f64>> {
        turns
            .iter()
            .flat_map(|turn| blocks(&turn.values_ns, block).map(|jobs| (turn.arm, jobs)))
            .map(|(arm, jobs)| {
                let median = median_of(jobs).filter(|&median| median > 0)?;
                Some((median as f64).ln() - levels[arm])
            })
            .collect()
    };
    rounds.iter().map(round).collect()
}

/// Blocks of this number of jobs of a turn; the last one takes the remainder.
fn blocks(values: &[i64], block: usize) -> impl Iterator<Item = &[i64]> {
    let count = (values.len() / block).max(usize::from(!values.is_empty()));
    (0..count).map(move |place| {
        let end = if place + 1 == count {
            values.len()
        } else {
            (place + 1) * block
        };
        &values[place * block..end]
    })
}

/// The state of each job from the probability of its block.
fn labels(rounds: &[Vec<Turn>], slow: &[Vec<f64>], block: usize) -> Vec<Vec<Vec<bool>>> {
    (rounds.iter().zip(slow))
        .map(|(turns, slow)| {
            let mut slow = slow.iter();
            let turn = |turn: &Turn| {
                blocks(&turn.values_ns, block)
                    .flat_map(|jobs| {
                        let slow = slow.next().is_some_and(|&slow| slow > 0.5);
                        std::iter::repeat_n(slow, jobs.len())
                    })
                    .collect()
            };
            turns.iter().map(turn).collect()
        })
        .collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
