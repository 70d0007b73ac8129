//! Trials that took turns, compared turn by turn, also within the states that the machine was in.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use model::{Experiment, TrialPlan};
use record::RecordError;
use record::run::Run;
use record::summary::{InTurns, Metric};
use record::trial::TurnsRecord;
use stats::{
    CompareError, DEFAULT_CONFIDENCE, Foreseen, Planned, States, Turn, Verdict, compare_turns,
    confidence_of_each_look,
};

use super::pass::CellSamples;
use super::source::Source;

/// One metric of all cells that took turns with a baseline: arm 0 is the baseline, all its cells together.
pub(super) struct Turned {
    metric: Metric,
    /// The experiment's baseline, or the trial of the same cells under the same load as the others.
    baseline: String,
    /// Trial and cell of each arm after the baseline.
    arms: Vec<(String, String)>,
    /// The trials among them that repeat the baseline.
    repeats: Vec<String>,
    /// The turns of each round in order of time; each arm has one, perhaps without jobs, in each lap in which another has one.
    rounds: Vec<Vec<Turn>>,
    states: Option<States>,
    /// Activations of a cell in each round, and in each turn.
    planned: [u32; 2],
    /// Of every interval.
    confidence: f64,
    /// Which second state would have been found, computed on demand: it takes as long as several searches for states.
    least_state_share: OnceCell<Option<f64>>,
}

/// A turn of a lap while turns are gathered: when it began, its arm, and its jobs.
struct Gathered {
    begin_ns: i64,
    turn: Turn,
}

/// The laps of a round: those with the same seed were drawn together.
type Laps = BTreeMap<(u64, u32), Vec<Gathered>>;

/// The turns of all cells, cell by cell and metric by metric, as far as no group has taken them.
#[derive(Default)]
pub(super) struct Turns(Vec<CellTurns>);

/// One metric of one cell: by round, seed and lap, when its turn began and its values.
struct CellTurns {
    cell: [String; 2],
    metric: Metric,
    turns: BTreeMap<(u32, u64, u32), (i64, Vec<i64>)>,
}

impl Turns {
    /// Reads one metric of all cells.
    fn read(source: &Source, metric: Metric) -> Result<Turns, RecordError> {
        let mut all = Turns::default();
        for trial in source
            .plan
            .trials
            .iter()
            .filter(|_| source.plan.turns.is_some())
        {
            for id in source.cell_ids(&trial.name) {
                let samples = CellSamples::read(source, &trial.name, &id)?;
                all.add([&trial.name, &id], metric, &samples);
            }
        }
        Ok(all)
    }

    /// Adds one metric of a cell, where it took turns.
    pub fn add(&mut self, cell: [&str; 2], metric: Metric, samples: &CellSamples) {
        let mut own = BTreeMap::new();
        for part in samples.good() {
            let Some(turns) = part.record.turns else {
                continue;
            };
            for job in part.jobs.iter() {
                if let Some(lap) = lap_of(&turns, job.index) {
                    let turn = own.entry((part.record.round, turns.seed, lap));
                    let (_, values) = turn.or_insert((job.release_ns, Vec::new()));
                    values.push(job.of(metric));
                }
            }
        }
        if !own.is_empty() {
            self.0.push(CellTurns {
                cell: cell.map(str::to_owned),
                metric,
                turns: own,
            });
        }
    }

    /// Removes the turns of a cell that have these seeds, and gives them to its arm.
    fn take(
        &mut self,
        cell: [&str; 2],
        metric: Metric,
        arm: usize,
        wanted: impl Fn(u64) -> bool,
        rounds: &mut BTreeMap<u32, Laps>,
    ) {
        let all = self.0.iter_mut();
        for own in all.filter(|own| own.metric == metric && own.cell == cell) {
            let taken = own.turns.extract_if(.., |(_, seed, _), _| wanted(*seed));
            for ((round, seed, lap), (begin_ns, mut values_ns)) in taken {
                let lap = (rounds.entry(round).or_default())
                    .entry((seed, lap))
                    .or_default();
                match lap.iter_mut().find(|gathered| gathered.turn.arm == arm) {
                    Some(gathered) => gathered.turn.values_ns.append(&mut values_ns),
                    None => lap.push(Gathered {
                        begin_ns,
                        turn: Turn { arm, values_ns },
                    }),
                }
            }
        }
    }
}

impl Turned {
    /// One metric of everything that took turns, once for each group that did: those with the experiment's baseline first,
    /// then those with a trial of the same cells. Takes it out of `all`.
    pub fn groups(source: &Source, all: &mut Turns, metric: Metric) -> Vec<Turned> {
        let groups = baselines(source).into_iter();
        groups
            .filter_map(|baseline| Turned::group(source, all, metric, baseline))
            .collect()
    }

    /// One metric of everything that took turns with this baseline; `None` where nothing did.
    fn group(source: &Source, all: &mut Turns, metric: Metric, baseline: &str) -> Option<Turned> {
        let plan = &source.plan;
        let turns = plan.turns?;
        let mut rounds: BTreeMap<u32, Laps> = BTreeMap::new();
        for id in source.cell_ids(baseline) {
            all.take([baseline, &id], metric, 0, |_| true, &mut rounds);
        }
        let with_baseline: BTreeSet<u64> = (rounds.values())
            .flat_map(|laps| laps.keys().map(|(seed, _)| *seed))
            .collect();
        let met = |seed| with_baseline.contains(&seed);
        let mut arms = Vec::new();
        for trial in plan.trials.iter().filter(|t| t.name != baseline) {
            for id in source.cell_ids(&trial.name) {
                arms.push((trial.name.clone(), id.clone()));
                all.take([&trial.name, &id], metric, arms.len(), met, &mut rounds);
            }
        }
        let rounds: Vec<Vec<Turn>> = (rounds.into_values())
            .map(|laps| in_order(laps, arms.len() + 1))
            .filter(|turns| !turns.is_empty())
            .collect();
        if rounds.is_empty() {
            return None;
        }
        let took_turns = |trial: &str| {
            let is_its = |turn: &&Turn| turn.arm > 0 && arms[turn.arm - 1].0 == trial;
            let mut turns = rounds.iter().flatten().filter(is_its);
            turns.any(|turn| !turn.values_ns.is_empty())
        };
        let repeats = repetitions(plan, baseline)
            .map(|trial| trial.name.clone())
            .filter(|trial| took_turns(trial))
            .collect();
        Some(Turned {
            metric,
            baseline: baseline.to_owned(),
            repeats,
            arms,
            states: States::find(&rounds),
            planned: {
                let load = &plan.workload;
                [load.jobs, turns.jobs(load.period)]
            },
            rounds,
            confidence: confidence_of_each_look(turns.looks(plan.rounds).len())
                .unwrap_or(DEFAULT_CONFIDENCE),
            least_state_share: OnceCell::new(),
        })
    }

    /// The share of jobs from which a second state would have been found; `None` if one was found, and if none would have been.
    fn least_state_share(&self) -> Option<f64> {
        let least = || match self.states {
            Some(_) => None,
            None => States::least_share_found(&self.rounds),
        };
        *self.least_state_share.get_or_init(least)
    }

    /// The trials that a trial is compared with besides the baseline: none for a repetition, so that it shows a difference between equals.
    fn pooled_with(&self, trial: &str) -> &[String] {
        match self.repeats.iter().any(|repeat| repeat == trial) {
            true => &[],
            false => &self.repeats,
        }
    }

    /// One cell against the baseline; `None` where it took no turns with it.
    fn compare(&self, trial: &str, id: &str) -> Option<Result<InTurns, CompareError>> {
        let own = |(of, cell): &(String, String)| of == trial && cell == id;
        let arm = self.arms.iter().position(own)? + 1;
        let pooled_with = self.pooled_with(trial);
        let is_pooled = |(_, (of, _)): &(usize, &(String, String))| pooled_with.contains(of);
        let arms = self.arms.iter().enumerate().filter(is_pooled);
        let mut baselines = vec![0];
        baselines.extend(arms.map(|(place, _)| place + 1));
        let comparison = match compare_turns(&self.rounds, &baselines, arm, self.confidence) {
            Ok(comparison) => comparison,
            Err(CompareError::NoRounds) => return None,
            Err(error) => return Some(Err(error)),
        };
        let within = (self.states.as_ref())
            .map(|states| states.compare(&self.rounds, &baselines, arm, self.confidence));
        let laps = |turns: &Vec<Turn>| {
            let full = |arm: usize| -> Vec<bool> {
                let own = turns.iter().filter(|turn| turn.arm == arm);
                own.map(|turn| !turn.values_ns.is_empty()).collect()
            };
            let baselines: Vec<Vec<bool>> = baselines.iter().map(|&arm| full(arm)).collect();
            let met = |lap: usize| (baselines.iter()).any(|full| full.get(lap) == Some(&true));
            let own = full(arm).into_iter().enumerate();
            own.filter(|&(lap, full)| full && met(lap)).count() as u64
        };
        Some(Ok(InTurns {
            metric: self.metric,
            against: self.baseline.clone(),
            pooled_with: pooled_with.to_vec(),
            laps: self.rounds.iter().map(laps).sum(),
            jobs_for_p99: (comparison.ratio_of_p99.is_none())
                .then(|| self.jobs_for_p99(&baselines, arm))
                .flatten(),
            comparison,
            slow_over_fast: self.states.as_ref().map(|states| states.factor),
            within,
            least_state_share: None,
        }))
    }
}

impl Turned {
    /// Activations of a round from which these give a ratio of p99, in whole turns and one more for skipped ones; at the share of them that
    /// the median round compared, of whichever had fewest. `None` if nothing was compared, or there were as many.
    fn jobs_for_p99(&self, baselines: &[usize], arm: usize) -> Option<u32> {
        let [planned, of_turn] = self.planned;
        let of = |arm: usize| -> Option<u64> {
            let in_round = |turns: &Vec<Turn>| -> u64 {
                let own = turns.iter().filter(|turn| turn.arm == arm);
                own.map(|turn| turn.values_ns.len() as u64).sum()
            };
            let mut rounds: Vec<u64> = self.rounds.iter().map(in_round).collect();
            rounds.sort_unstable();
            rounds.get(rounds.len() / 2).copied()
        };
        let compared = (baselines.iter().chain([&arm])).filter_map(|&arm| of(arm));
        let fewest = compared.min().filter(|&jobs| jobs > 0)?;
        let needed = stats::needed_count(0.99, DEFAULT_CONFIDENCE)?;
        let jobs = (needed * u64::from(planned)).div_ceil(fewest);
        let of_turn = u64::from(of_turn.max(1));
        let jobs = u32::try_from((jobs.div_ceil(of_turn) + 1) * of_turn).ok()?;
        (jobs > planned).then_some(jobs)
    }
}

/// One cell against every baseline that it took turns with, metric by metric; and why, if something cannot be compared.
pub(super) fn compare_all(turned: &[Turned], trial: &str, id: &str) -> (Vec<InTurns>, Vec<String>) {
    let mut compared: Vec<InTurns> = Vec::new();
    let mut notes = Vec::new();
    for group in turned {
        let is_first = compared.is_empty();
        // The experiment's baseline comes first, and is the one that counts.
        if compared.iter().any(|other| other.metric == group.metric) {
            continue;
        }
        match group.compare(trial, id) {
            Some(Ok(in_turns)) => compared.push(InTurns {
                least_state_share: is_first.then(|| group.least_state_share()).flatten(),
                ..in_turns
            }),
            Some(Err(error)) => notes.push(format!(
                "turns are not compared with {} in {}: {error}",
                group.baseline,
                group.metric.title()
            )),
            None => {}
        }
    }
    (compared, notes)
}

/// The state of a run that ends once everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Cells that are compared with the baseline.
    pub compared: usize,
    /// Those among them whose ratio of medians is neither known well enough nor shown to differ from 1, by trial and cell.
    pub undecided: Vec<String>,
}

impl Standing {
    /// Whether something that the run is to decide is still open: without a cell besides the baseline it decides nothing.
    pub const fn is_open(&self) -> bool {
        self.compared == 0 || !self.undecided.is_empty()
    }

    /// Looks at the trials of a run that are on record.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of(run: &Run) -> Result<Standing, RecordError> {
        let source = Source::open(run)?;
        let primary = super::metrics(source.plan.workload.work)[0];
        let within = source.plan.turns.and_then(|turns| turns.decides_within());
        let mut standing = Standing {
            compared: 0,
            undecided: Vec::new(),
        };
        let Some(within) = within else {
            return Ok(standing);
        };
        let groups = Turned::groups(&source, &mut Turns::read(&source, primary)?, primary);
        let cells = groups.iter().flat_map(|turned| {
            let cells = turned.arms.iter();
            cells.filter_map(|(trial, cell)| Some((trial, cell, turned.compare(trial, cell)?)))
        });
        for (trial, cell, in_turns) in cells {
            standing.compared += 1;
            let is_decided = in_turns.is_ok_and(|in_turns| {
                let ratio = &in_turns.comparison.ratio_of_medians;
                let differs = matches!(ratio.verdict, Verdict::Larger | Verdict::Smaller);
                let known = (ratio.low.zip(ratio.high))
                    .is_some_and(|(low, high)| (high - low) / 2.0 <= within * ratio.value);
                differs || known
            });
            if !is_decided {
                standing.undecided.push(format!("{trial}/{cell}"));
            }
        }
        Ok(standing)
    }
}

/// The half width that the intervals of an experiment will have, as a part of the ratio, from a pilot whose trial `again` repeats its
/// baseline; after the first look if it may end early. In slow laps that the pilot did not meet, jobs take `slow_factor` times as long.
/// `None` if the pilot cannot tell.
///
/// # Errors
/// When the pilot cannot be read.
pub fn foresee(
    pilot: &Run,
    again: &str,
    experiment: &Experiment,
    slow_factor: f64,
) -> Result<Option<Foreseen>, RecordError> {
    let source = Source::open(pilot)?;
    let primary = super::metrics(source.plan.workload.work)[0];
    let mut all = Turns::read(&source, primary)?;
    let turned = Turned::group(&source, &mut all, primary, &source.plan.baseline);
    let (Some(turns), Some(turned)) = (experiment.turns, turned) else {
        return Ok(None);
    };
    let Some(arm) = turned.arms.iter().position(|(trial, _)| trial == again) else {
        return Ok(None);
    };
    let workload = &experiment.workload;
    let laps = workload.jobs.div_ceil(turns.jobs(workload.period));
    let looks = turns.looks(experiment.rounds);
    let repeats = repetitions(experiment, &experiment.baseline).count();
    // A repetition is compared with the baseline alone.
    let pooled = match experiment.trials.len() > 1 + repeats {
        true => repeats,
        false => 0,
    };
    Ok(stats::foreseen_half_width(
        &turned.rounds,
        [0, arm + 1],
        Planned {
            laps: laps as usize,
            rounds: looks.first().map_or(0, |&first| first as usize),
            baselines: 1 + pooled,
            confidence: confidence_of_each_look(looks.len()).unwrap_or(DEFAULT_CONFIDENCE),
            slow_factor,
        },
    ))
}

/// The trials that repeat this one, so that either may stand for the other. Trials of several cells do not count: each cell has its own
/// place, on a cpu or in the order of creation.
fn repetitions<'p>(plan: &'p Experiment, baseline: &str) -> impl Iterator<Item = &'p TrialPlan> {
    let baseline = (plan.trial(baseline)).filter(|trial| trial.cells.len() == 1);
    (plan.trials.iter()).filter(move |trial| baseline.is_some_and(|first| trial.repeats(first)))
}

/// The trials that others are compared with turn by turn: the experiment's baseline, and those of the same cells that took turns with none
/// of these.
fn baselines<'s>(source: &'s Source<'_>) -> Vec<&'s str> {
    let plan = &source.plan;
    let seeds = |trial: &str| -> Vec<u64> {
        let records = source.good(trial).into_iter();
        records
            .filter_map(|record| Some(record.turns?.seed))
            .collect()
    };
    let Some(first) = plan.trials.iter().find(|trial| trial.name == plan.baseline) else {
        return Vec::new();
    };
    let mut found = vec![first.name.as_str()];
    let mut known = seeds(&first.name);
    for trial in plan
        .trials
        .iter()
        .filter(|trial| trial.cells == first.cells)
    {
        let own = seeds(&trial.name);
        if !own.is_empty() && own.iter().all(|seed| !known.contains(seed)) {
            found.push(&trial.name);
            known.extend(own);
        }
    }
    found
}

/// The lap of a job that is compared; `None` for one that lets its turn settle.
fn lap_of(turns: &TurnsRecord, index: u32) -> Option<u32> {
    let jobs = turns.jobs.max(1);
    (index % jobs >= turns.settle).then_some(index / jobs)
}

/// All turns in the order of time, an empty one for each arm that had no jobs in a lap.
fn in_order(laps: Laps, arms: usize) -> Vec<Turn> {
    let mut all: Vec<Gathered> = Vec::new();
    for (_, mut lap) in laps {
        let begin_ns = lap.iter().map(|gathered| gathered.begin_ns).min();
        let absent: Vec<usize> = (0..arms)
            .filter(|arm| lap.iter().all(|gathered| gathered.turn.arm != *arm))
            .collect();
        lap.extend(absent.into_iter().map(|arm| Gathered {
            begin_ns: begin_ns.unwrap_or(0),
            turn: Turn {
                arm,
                values_ns: Vec::new(),
            },
        }));
        all.extend(lap);
    }
    all.sort_by_key(|gathered| gathered.begin_ns);
    all.into_iter().map(|gathered| gathered.turn).collect()
}
