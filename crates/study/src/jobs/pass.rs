//! The samples of one cell, read once for everything that is computed from them.

use std::collections::BTreeMap;

use model::TrialPlan;
use record::RecordError;
use record::samples::{CountRow, Header, Sample};
use record::summary::{CellSummary, Metric, PointSummary, TailSummary};
use record::trial::TrialRecord;

use super::drawing::{CellData, OfPoint};
use super::source::{Rounds, Source, is_good};
use super::turns::{Turned, Turns, compare_all};
use super::{cell, compare_rounds, metrics, points, tails, tasks};

/// Times in ns, in half the room as long as all are below 2 s.
pub(super) enum Times {
    Short(Vec<i32>),
    Long(Vec<i64>),
}

/// The jobs of one samples file, column by column: values read for all of them at once lie together.
pub(super) struct Jobs {
    pub index: Vec<u32>,
    pub release_ns: Vec<i64>,
    /// From the release to the start, and from there to the end.
    late: Times,
    ran: Times,
}

/// A cell's samples of one trial.
pub(super) struct Part<'s> {
    pub record: &'s TrialRecord,
    pub header: Header,
    pub jobs: Jobs,
    /// As [`record::samples::Samples::counts`].
    pub counts: Vec<CountRow>,
}

/// A cell's samples of all its trials, in the order of rounds.
pub(super) struct CellSamples<'s>(Vec<Part<'s>>);

impl Times {
    fn room(times: usize) -> Times {
        Times::Short(Vec::with_capacity(times))
    }

    fn push(&mut self, ns: i64) {
        match (&mut *self, i32::try_from(ns)) {
            (Times::Short(all), Ok(ns)) => all.push(ns),
            (Times::Short(all), Err(_)) => {
                let mut long = Vec::with_capacity(all.capacity());
                long.extend(all.iter().copied().map(i64::from));
                long.push(ns);
                *self = Times::Long(long);
            }
            (Times::Long(all), _) => all.push(ns),
        }
    }

    fn at(&self, place: usize) -> i64 {
        match self {
            Times::Short(all) => all[place].into(),
            Times::Long(all) => all[place],
        }
    }

    fn len(&self) -> usize {
        match self {
            Times::Short(all) => all.len(),
            Times::Long(all) => all.len(),
        }
    }
}

impl Jobs {
    fn room(jobs: usize) -> Jobs {
        Jobs {
            index: Vec::with_capacity(jobs),
            release_ns: Vec::with_capacity(jobs),
            late: Times::room(jobs),
            ran: Times::room(jobs),
        }
    }

    fn push(&mut self, job: Sample) {
        self.index.push(job.index);
        self.release_ns.push(job.release_ns);
        // Of instants that make no sense nothing is lost.
        self.late.push(job.start_ns.wrapping_sub(job.release_ns));
        self.ran.push(job.end_ns.wrapping_sub(job.start_ns));
    }

    /// The jobs in the order of activation; gaps in their numbers are skipped activations.
    pub fn iter(&self) -> impl Iterator<Item = Sample> {
        (0..self.index.len()).map(|at| {
            let start_ns = self.release_ns[at].wrapping_add(self.late.at(at));
            Sample {
                index: self.index[at],
                skipped: 0,
                release_ns: self.release_ns[at],
                start_ns,
                end_ns: start_ns.wrapping_add(self.ran.at(at)),
            }
        })
    }

    /// One metric of them, ns.
    pub fn values(&self, metric: Metric) -> impl Iterator<Item = i64> {
        self.iter().map(move |job| job.of(metric))
    }
}

impl<'s> CellSamples<'s> {
    /// Reads the samples of a cell in all trials of this name, failed ones too.
    pub fn read(source: &'s Source, trial: &str, id: &str) -> Result<CellSamples<'s>, RecordError> {
        let mut parts = Vec::new();
        for record in source.records(trial) {
            let read = (source.run).samples_into(record.number, id, Jobs::room, Jobs::push)?;
            parts.extend(read.map(|(header, jobs, counts)| Part {
                record,
                header,
                jobs,
                counts,
            }));
        }
        Ok(CellSamples(parts))
    }

    /// Its part in the trial of this number.
    pub fn of(&self, number: u32) -> Option<&Part<'s>> {
        self.0.iter().find(|part| part.record.number == number)
    }

    /// Its parts in good trials.
    pub fn good(&self) -> impl Iterator<Item = &Part<'s>> {
        self.0.iter().filter(|part| is_good(part.record))
    }

    /// One metric over its good rounds.
    pub fn rounds(&self, metric: Metric) -> Rounds {
        let mut rounds = Rounds::new();
        for part in self.good().filter(|part| !part.jobs.index.is_empty()) {
            let values = rounds.entry(part.record.round).or_default();
            values.reserve_exact(part.jobs.index.len());
            values.extend(part.jobs.values(metric));
        }
        rounds
    }
}

/// The results of the cells of a run, in the order of the plan.
#[derive(Default)]
pub(super) struct Read {
    pub cells: Vec<CellSummary>,
    pub tails: Vec<TailSummary>,
    pub points: Vec<PointSummary>,
    /// Of each cell that was measured.
    pub drawn: Vec<CellData>,
    /// Of each point; empty where nothing is drawn of points.
    pub counted: Vec<OfPoint>,
}

impl Read {
    fn append(&mut self, mut cell: Read) {
        let index = self.cells.len();
        cell.drawn.iter_mut().for_each(|drawn| drawn.index = index);
        self.cells.append(&mut cell.cells);
        self.tails.append(&mut cell.tails);
        self.drawn.append(&mut cell.drawn);
        self.counted.append(&mut cell.counted);
    }
}

/// The pass over all cells, the baseline's first.
pub(super) fn all(source: &Source) -> Result<Read, RecordError> {
    let plan = &source.plan;
    // Comparisons once all have been read.
    let later = plan.turns.is_some() || plan.trials.iter().any(|trial| trial.isolate);
    let mut order: Vec<(usize, &TrialPlan)> = plan.trials.iter().enumerate().collect();
    order.sort_by_key(|(_, trial)| trial.name != plan.baseline);
    let (mut kept, mut turns) = (Kept::default(), Turns::default());
    let mut found = Vec::new();
    for (place, trial) in order {
        for id in source.cell_ids(&trial.name) {
            let own = one(source, trial, &id, &mut turns, |cell, rounds| {
                if later || trial.name == plan.baseline {
                    kept.keep(cell, &rounds);
                } else {
                    kept.compare(source, cell, &rounds);
                }
            })?;
            found.push((place, own));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let mut read = Read::default();
    found.into_iter().for_each(|(_, own)| read.append(own));
    let turned: Vec<Turned> = (metrics(plan.workload.work).iter())
        .flat_map(|&metric| Turned::groups(source, &mut turns, metric))
        .collect();
    for cell in &mut read.cells {
        let (in_turns, notes) = compare_all(&turned, &cell.trial, &cell.cell);
        let by_turns = (in_turns.iter())
            .find(|turns| Some(turns.metric) == first(cell) && turns.against == plan.baseline)
            .map(|turns| turns.comparison.clone());
        match by_turns {
            Some(by_turns) => cell.against_baseline = Some(by_turns),
            None if later && cell.trial != plan.baseline => {
                let own = kept.of(&cell.trial, [&cell.cell]);
                kept.compare(source, cell, &own);
            }
            None => {}
        }
        cell.in_turns = in_turns;
        cell.notes.extend(notes);
    }
    tasks::judge(source, &mut read.cells);
    read.points = points::study(source, &read.cells);
    for (point, counted) in read.points.iter_mut().zip(&mut read.counted) {
        point.counters = std::mem::take(&mut counted.counters);
    }
    points::compare(&mut read.points, &read.cells, &kept);
    Ok(read)
}

fn first(cell: &CellSummary) -> Option<Metric> {
    cell.metrics.first().map(|first| first.metric)
}

/// One cell except for its turns and its task; `compared` gets its primary metric by rounds, to compare it or to keep it.
fn one(
    source: &Source,
    trial: &TrialPlan,
    id: &str,
    turns: &mut Turns,
    compared: impl FnOnce(&mut CellSummary, Rounds),
) -> Result<Read, RecordError> {
    let metrics = metrics(source.plan.workload.work);
    let samples = CellSamples::read(source, &trial.name, id)?;
    let mut own = Read::default();
    if points::vary(&source.plan) {
        own.counted.push(OfPoint::of(&samples, id, metrics[0]));
    }
    let mut rounds = samples.rounds(metrics[0]);
    let mut cell = cell::study(source, trial, id, &samples, &rounds);
    let jobs = tails::Jobs::of(&samples, tails::period_ns(source, &cell));
    let mut compared = Some(compared);
    for &metric in metrics {
        if compared.is_none() {
            rounds = samples.rounds(metric);
        }
        if let Some((summary, sorted)) = cell::metric_summary(metric, &rounds) {
            if compared.is_some() {
                let p99_ns = summary.summary.quantile(0.99).and_then(|q| q.value_ns);
                let drawn = CellData::of(&cell, &samples, metric, sorted, p99_ns);
                own.drawn.extend(drawn);
            } else {
                drop(sorted);
            }
            cell.metrics.push(summary);
            let tail = tails::of_samples(source, &cell, metric, &samples, &jobs, &rounds);
            own.tails.extend(tail);
            turns.add([&trial.name, id], metric, &samples);
        }
        let rounds = std::mem::take(&mut rounds);
        if let Some(compared) = compared.take() {
            compared(&mut cell, rounds);
        }
    }
    cell.notes.extend(cell::outlived(&cell));
    own.cells.push(cell);
    Ok(own)
}

/// The primary metric of cells that others are compared with, by trial and cell.
#[derive(Default)]
pub(super) struct Kept(BTreeMap<[String; 2], BTreeMap<u32, Times>>);

impl Kept {
    fn keep(&mut self, cell: &CellSummary, rounds: &Rounds) {
        let compact = |values: &Vec<i64>| {
            let mut times = Times::room(values.len());
            values.iter().for_each(|&ns| times.push(ns));
            times
        };
        let rounds = rounds
            .iter()
            .map(|(&round, values)| (round, compact(values)));
        let of = [cell.trial.clone(), cell.cell.clone()];
        self.0.insert(of, rounds.collect());
    }

    /// The metric of some cells of a trial, one after the other within each round; nothing of cells that were not kept.
    pub fn of<'i>(&self, trial: &str, ids: impl IntoIterator<Item = &'i String>) -> Rounds {
        let ids = ids.into_iter();
        let kept = ids.filter_map(|id| self.0.get(&[trial.to_owned(), id.clone()]));
        let mut pooled = Rounds::new();
        for (round, times) in kept.flatten() {
            let values = pooled.entry(*round).or_default();
            values.extend((0..times.len()).map(|place| times.at(place)));
        }
        pooled
    }

    /// Compares a cell with the baseline by rounds: a task with itself, else with the cells that do the same.
    fn compare(&self, source: &Source, cell: &mut CellSummary, rounds: &Rounds) {
        let same: Vec<String> = match source.plan.tasks {
            Some(_) => (source.same_task(&cell.trial, &cell.cell).into_iter()).collect(),
            None => source.counterparts(&cell.trial, &cell.cell),
        };
        match compare_rounds(&self.of(&source.plan.baseline, &same), rounds) {
            Ok(comparison) => cell.against_baseline = comparison,
            Err(error) => {
                let note = format!("not compared with the baseline: {error}");
                cell.notes.push(note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_the_short_ones_changes_none_before_it() {
        let mut jobs = Jobs::room(3);
        let sample = |release_ns, start_ns, end_ns| Sample {
            release_ns,
            start_ns,
            end_ns,
            ..Sample::default()
        };
        let all = [
            sample(100, 90, 300),
            sample(1_000, 5_000_000_000, 5_000_000_001),
            sample(i64::MIN, i64::MAX, 0),
        ];
        all.into_iter().for_each(|job| jobs.push(job));
        assert!(matches!(jobs.late, Times::Long(_)));
        assert_eq!(jobs.iter().collect::<Vec<_>>(), all);
        assert_eq!(jobs.values(Metric::WakeupLatency).next(), Some(-10));
    }
}
