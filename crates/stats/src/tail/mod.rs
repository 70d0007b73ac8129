//! The tail of a cell's times: how long the longest of many jobs may take, whether long jobs come periodically, and
//! whether two states alternate.
//!
//! A curve of exceedance probabilities (pWCET for execution times, pWCRT for response times) is given only where the
//! jobs pass every test that it rests on; where they do not, the reasons are the result. Measurement-based
//! probabilistic timing analysis asks for this (Cucu-Grosjean et al., "Measurement-based probabilistic timing analysis
//! for multi-path programs", ECRTS 2012), and Coles, "An Introduction to Statistical Modeling of Extreme Values",
//! Springer 2001, explains it. Here are fits, tests, the search for spikes and states; sentences and pictures are not.

mod blocks;
mod cluster;
mod curve;
mod extreme;
mod goodness;
pub(crate) mod hidden_markov;
mod independence;
mod kept;
mod lmoments;
mod pareto;
mod refusal;
mod spikes;
pub(crate) mod states;
mod switching;
mod threshold;
mod ties;

pub use kept::{KeptInterval, KeptRound};
pub use refusal::Refusal;
pub use spikes::Spikes;
pub use states::{OwnStates, State};

use blocks::Maxima;
use cluster::Exceedance;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Fewer jobs have no tail to fit.
pub const TAIL_JOBS: u64 = 1_000;
/// Tests of independence and of one distribution refuse below this.
const LEVEL: f64 = 0.01;

/// The jobs of one round in the order of time.
#[derive(Clone, Copy, Debug)]
pub struct TailRound<'a> {
    /// Activation number of each job; skipped ones leave gaps.
    pub activations: &'a [u32],
    /// Its value in ns; as many as activations.
    pub values_ns: &'a [i64],
    /// When it was released, ns on any clock, in the order of time; as many as activations, or none where it is not known.
    pub releases_ns: &'a [i64],
}

/// The shape of the tail of a cell's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Jobs measured.
    pub jobs: u64,
    /// The largest jobs that the study rests on where only those were kept; `None` where all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Probability of exceedance per job, descending, one per point; empty when `refusals` says why.
    pub curve: Vec<CurvePoint>,
    /// Why there is no curve; empty when there is one.
    pub refusals: Vec<Refusal>,
    /// The law above a threshold that the curve is drawn from; present where one was found, even if a test refused.
    pub peaks: Option<Pareto>,
    /// The law of block maxima: the second opinion.
    pub blocks: Option<Blocks>,
    /// Spikes that come periodically.
    pub spikes: Option<Spikes>,
    /// Two states that alternate.
    #[serde(rename = "regimes")]
    pub states: Option<OwnStates>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Probability that a job takes longer than the value.
    pub probability: f64,
    /// In ns.
    pub value_ns: f64,
    /// Lower end of the 95 % band, ns.
    pub low_ns: f64,
    /// Upper end of the 95 % band, ns.
    pub high_ns: f64,
}

/// A generalised Pareto law fitted to the excesses over a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pareto {
    /// In ns.
    pub threshold_ns: f64,
    /// Jobs above it.
    pub exceedances: u64,
    /// Clusters that they form, each counted once in the fit.
    pub clusters: u64,
    /// Share of exceedances that begin a cluster, by Ferro and Segers' estimator; 1 when long jobs come one by one.
    pub extremal_index: f64,
    /// Above 0 a heavy tail; below 0 one with an end.
    pub shape: f64,
    /// Lower end of the shape's 95 % interval.
    pub shape_low: f64,
    /// Upper end of the shape's 95 % interval.
    pub shape_high: f64,
    /// In ns.
    pub scale_ns: f64,
    /// Of the Anderson-Darling test by parametric bootstrap.
    pub p_value: f64,
}

/// A generalised extreme value law fitted to block maxima.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// Jobs in a block.
    pub block_jobs: u64,
    /// Blocks.
    pub blocks: u64,
    /// As [`Pareto::shape`].
    pub shape: f64,
    /// In ns.
    pub scale_ns: f64,
    /// In ns.
    pub location_ns: f64,
    /// Of the Anderson-Darling test by parametric bootstrap.
    pub p_value: f64,
}

impl Tail {
    /// Studies the rounds of one cell. The same rounds and seed give the same answer. `None` when there is no job.
    ///
    /// A round with more values than activations, or fewer, counts as far as both go.
    pub fn of(rounds: &[TailRound], seed: u64) -> Option<Self> {
        let rounds: Vec<TailRound> = rounds
            .iter()
            .map(|round| {
                let jobs = round.activations.len().min(round.values_ns.len());
                TailRound {
                    activations: &round.activations[..jobs],
                    values_ns: &round.values_ns[..jobs],
                    releases_ns: round.releases_ns.get(..jobs).unwrap_or_default(),
                }
            })
            .filter(|round| !round.values_ns.is_empty())
            .collect();
        let jobs: usize = rounds.iter().map(|round| round.values_ns.len()).sum();
        (jobs > 0).then_some(())?;
        let mut tail = Self::nothing_of(jobs as u64);
        if !tail.has_enough() {
            return Some(tail);
        }
        let top = Top::of(&rounds, jobs);
        tail.spikes = spikes::find(&rounds, &top);
        tail.states = states::find(&rounds);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        tail.stationary(Maxima::of(&rounds), &mut random);
        tail.fit(jobs, &top.exceedances, &mut random);
        Some(tail)
    }

    /// The result before any test: only the number of jobs is known.
    fn nothing_of(jobs: u64) -> Self {
        Self {
            jobs,
            kept: None,
            curve: Vec::new(),
            refusals: Vec::new(),
            peaks: None,
            blocks: None,
            spikes: None,
            states: None,
        }
    }

    /// Refuses too few jobs.
    fn has_enough(&mut self) -> bool {
        let enough = self.jobs >= TAIL_JOBS;
        if !enough {
            self.refusals.push(Refusal::FewJobs {
                jobs: self.jobs,
                needed: TAIL_JOBS,
            });
        }
        enough
    }

    /// The law above a threshold, and the curve if nothing was refused.
    fn fit(&mut self, jobs: usize, exceedances: &[Exceedance], random: &mut Xoshiro256PlusPlus) {
        match threshold::choose(jobs, exceedances, random) {
            Ok(peaks) => {
                let (fitted, curve) = curve::curve(jobs, &peaks, random);
                self.peaks = Some(fitted);
                if self.refusals.is_empty() {
                    self.curve = curve;
                }
            }
            Err(refusal) => self.refusals.push(refusal),
        }
    }

    /// The conditions for a fit to mean anything, and the law of block maxima.
    fn stationary(&mut self, maxima: Maxima, random: &mut Xoshiro256PlusPlus) {
        let refusals = &mut self.refusals;
        if self.spikes.is_some() {
            refusals.push(Refusal::Periodic);
        }
        if self.states.is_some() {
            refusals.push(Refusal::OwnStates);
        }
        let all = maxima.all();
        if all.len() < blocks::FEWEST {
            refusals.push(Refusal::FewBlocks {
                blocks: all.len() as u64,
                block_jobs: maxima.block_jobs as u64,
                needed: blocks::FEWEST as u64,
            });
            return;
        }
        let p_value = independence::ljung_box(&all);
        if p_value < LEVEL {
            refusals.push(Refusal::Dependent { p_value });
        }
        let (first, second) = all.split_at(all.len() / 2);
        let p_value = independence::kolmogorov_smirnov(first, second);
        if p_value < LEVEL {
            refusals.push(Refusal::Drift { p_value });
        }
        let groups: Vec<&[i64]> = maxima.by_round.iter().map(Vec::as_slice).collect();
        if let Some(p_value) = independence::kruskal_wallis(&groups)
            && p_value < LEVEL
        {
            refusals.push(Refusal::RoundsDiffer { p_value });
        }
        self.blocks = maxima.fit(random);
        if let Some(blocks) = &self.blocks
            && blocks.p_value <= blocks::REFUSED
        {
            let p_value = blocks.p_value;
            self.refusals.push(Refusal::NoExtremeLaw { p_value });
        }
    }
}

/// The largest tenth of all jobs, or those of the largest that were kept.
struct Top {
    /// In the order of time.
    exceedances: Vec<Exceedance>,
    /// The median of all jobs, ns.
    median_ns: i64,
}

impl Top {
    fn of(rounds: &[TailRound], jobs: usize) -> Self {
        let mut values: Vec<i64> = rounds
            .iter()
            .flat_map(|round| round.values_ns)
            .copied()
            .collect();
        let below = jobs - jobs / 10 - 1;
        let level = *values.select_nth_unstable(below).1;
        let median_ns = *values[..=below].select_nth_unstable((jobs - 1) / 2).1;
        let mut exceedances = Vec::with_capacity(jobs / 10);
        for (place, round) in rounds.iter().enumerate() {
            let pairs = round.activations.iter().zip(round.values_ns);
            let over = pairs.filter(|(_, value)| **value > level);
            exceedances.extend(over.map(|(&activation, &value_ns)| Exceedance {
                round: place as u32,
                activation,
                value_ns,
            }));
        }
        Self {
            exceedances,
            median_ns,
        }
    }
}
