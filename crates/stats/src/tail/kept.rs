//! The tail of jobs of which not all were kept: the largest one by one, and of the others only their number and
//! the summary of each interval.
//!
//! Nothing above the largest value that was left out is missing, so exceedances of any threshold from there on are as
//! complete as those of raw jobs, and the fit, its tests and the curve are the same. Maxima of intervals stand for
//! maxima of blocks. Features that need every job cannot be seen: states shorter than a few intervals, and periods much
//! shorter than the distance between two of the largest jobs.

use super::blocks::Maxima;
use super::cluster::Exceedance;
use super::{Refusal, Tail, TailRound, Top, spikes, states};
use crate::median_of;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The record of the jobs of one round.
#[derive(Clone, Debug)]
pub struct KeptRound {
    /// Jobs that ran.
    pub jobs: u64,
    /// Activations from the first to the last.
    pub span: u32,
    /// Activation number and value in ns of each of the largest jobs, in the order of time.
    pub largest: Vec<(u32, i64)>,
    /// The largest value that a job which was not kept may have, ns; `None` when all were kept.
    pub left_out_ns: Option<i64>,
    /// Whole intervals in the order of time, all of the same length.
    pub intervals: Vec<KeptInterval>,
}

/// The record of an interval.
#[derive(Clone, Copy, Debug)]
pub struct KeptInterval {
    /// Jobs that ran.
    pub jobs: u64,
    /// Median of their values, ns.
    pub median_ns: i64,
    /// The largest, ns.
    pub max_ns: i64,
}

impl Tail {
    /// Studies the records of the rounds of one cell. `median_ns` is that of all jobs; `lost` jobs ran and are in no
    /// round. The same input and seed give the same answer. `None` when there is no job.
    pub fn of_kept(rounds: &[KeptRound], median_ns: i64, lost: u64, seed: u64) -> Option<Tail> {
        let jobs: u64 = rounds.iter().map(|round| round.jobs).sum();
        (jobs > 0).then_some(())?;
        let mut tail = Tail::nothing_of(jobs);
        if !tail.has_enough() {
            return Some(tail);
        }
        if lost > 0 {
            tail.refusals.push(Refusal::Lost { lost });
        }
        // One threshold for all rounds, above which none of them has left anything out.
        let from = rounds.iter().filter_map(|round| round.left_out_ns).max();
        let from = from.unwrap_or(i64::MIN);
        let above: Vec<Above> = rounds.iter().map(|round| Above::of(round, from)).collect();
        let exceedances: Vec<Exceedance> = (above.iter().zip(0..))
            .flat_map(|(round, place)| {
                let pairs = round.activations.iter().zip(&round.values_ns);
                pairs.map(move |(&activation, &value_ns)| Exceedance {
                    round: place,
                    activation,
                    value_ns,
                })
            })
            .collect();
        tail.kept = Some(exceedances.len() as u64);
        let top = Top {
            exceedances,
            median_ns,
        };
        let sparse: Vec<TailRound> = above.iter().map(Above::round).collect();
        let spans = rounds.iter().map(|round| f64::from(round.span)).collect();
        tail.spikes = spikes::find_among(&sparse, spans, &top, jobs as usize, from);
        let interval_jobs = interval_jobs(rounds);
        tail.states = states(rounds, interval_jobs);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        tail.stationary(maxima(rounds, interval_jobs), &mut random);
        tail.fit(jobs as usize, &top.exceedances, &mut random);
        Some(tail)
    }
}

/// The largest jobs of a round above one value.
struct Above {
    activations: Vec<u32>,
    values_ns: Vec<i64>,
}

impl Above {
    fn of(round: &KeptRound, from: i64) -> Above {
        let above = round.largest.iter().filter(|(_, value)| *value > from);
        let (activations, values_ns) = above.copied().unzip();
        Above {
            activations,
            values_ns,
        }
    }

    fn round(&self) -> TailRound<'_> {
        TailRound {
            activations: &self.activations,
            values_ns: &self.values_ns,
            releases_ns: &[],
        }
    }
}

/// Jobs of a usual interval; 0 without intervals.
fn interval_jobs(rounds: &[KeptRound]) -> usize {
    let intervals = rounds.iter().flat_map(|round| &round.intervals);
    let jobs: Vec<i64> = intervals
        .map(|interval| i64::try_from(interval.jobs).unwrap_or(i64::MAX))
        .collect();
    usize::try_from(median_of(&jobs).unwrap_or(0)).unwrap_or(0)
}

/// Maxima of intervals, several together where blocks of about 200 in all, of 25 jobs or more, need it.
fn maxima(rounds: &[KeptRound], interval_jobs: usize) -> Maxima {
    let by_round = rounds.iter().map(|round| {
        let maxima = round.intervals.iter().map(|interval| interval.max_ns);
        maxima.collect()
    });
    Maxima::joined(by_round.collect(), interval_jobs)
}

/// OwnStates among the medians of intervals; stays are turned into jobs.
fn states(rounds: &[KeptRound], interval_jobs: usize) -> Option<super::OwnStates> {
    let medians: Vec<Vec<i64>> = rounds
        .iter()
        .map(|round| round.intervals.iter().map(|one| one.median_ns).collect())
        .collect();
    let longest = medians.iter().map(Vec::len).max().unwrap_or(0);
    let numbers: Vec<u32> = (0..u32::try_from(longest).unwrap_or(u32::MAX)).collect();
    let rounds: Vec<TailRound> = medians
        .iter()
        .map(|medians| TailRound {
            activations: &numbers[..medians.len().min(numbers.len())],
            values_ns: medians,
            releases_ns: &[],
        })
        .collect();
    let mut found = states::find(&rounds)?;
    for state in [&mut found.fast, &mut found.slow] {
        state.dwell_jobs *= interval_jobs as f64;
    }
    Some(found)
}
