//! The trials of a run, read once, and the way to their samples.

use model::{Experiment, TrialPlan, Workload};
use record::RecordError;
use record::run::Run;
use record::samples::Samples;
use record::summary::Metric;
use record::trial::{CellRecord, TaskRecord, TrialRecord};
use stats::{CompareError, CompareOptions, Comparison};
use std::collections::BTreeMap;

/// Samples of one metric in ns, by round, in the order recorded; rounds without a sample are absent.
pub(crate) type Rounds = BTreeMap<u32, Vec<i64>>;

/// A run's plan and the records of its trials.
pub(crate) struct Source<'a> {
    pub run: &'a Run,
    pub plan: Experiment,
    /// In the order of execution.
    pub trials: Vec<TrialRecord>,
    /// Trials whose directory holds no record, because the power failed while they were written.
    pub cut_off: Vec<u32>,
}

impl<'a> Source<'a> {
    /// Reads everything but the samples.
    pub fn open(run: &'a Run) -> Result<Source<'a>, RecordError> {
        let plan = run.experiment()?;
        let (mut trials, mut cut_off) = (Vec::new(), Vec::new());
        for number in run.trial_numbers()? {
            match run.trial(number) {
                Ok(trial) => trials.push(trial),
                Err(RecordError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    cut_off.push(number);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Source {
            run,
            plan,
            trials,
            cut_off,
        })
    }

    /// Every record of this trial, in the order of rounds.
    pub fn records(&self, trial: &str) -> Vec<&TrialRecord> {
        let mut records: Vec<&TrialRecord> =
            self.trials.iter().filter(|t| t.name == trial).collect();
        records.sort_by_key(|record| (record.round, record.number));
        records
    }

    /// The records of this trial that did not fail.
    pub fn good(&self, trial: &str) -> Vec<&TrialRecord> {
        let mut records = self.records(trial);
        records.retain(|record| is_good(record));
        records
    }

    /// Identities of this trial's cells, in the order recorded.
    pub fn cell_ids(&self, trial: &str) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for cell in self.records(trial).iter().flat_map(|record| &record.cells) {
            if !ids.contains(&cell.id) {
                ids.push(cell.id.clone());
            }
        }
        ids
    }

    /// The task of a cell.
    pub fn task_of(&self, trial: &TrialPlan, id: &str) -> Workload {
        self.plan
            .task_of(trial, trial.place_of(id).unwrap_or(usize::MAX))
    }

    /// The cells of the baseline that the cell of a trial is compared with: all of them, or where cells have tasks of their own those
    /// that do the same.
    pub fn counterparts(&self, trial: &str, id: &str) -> Vec<String> {
        let mut ids = self.cell_ids(&self.plan.baseline);
        let (Some(trial), Some(baseline)) =
            (self.plan.trial(trial), self.plan.trial(&self.plan.baseline))
        else {
            return ids;
        };
        if !(trial.own.is_empty() && baseline.own.is_empty()) {
            let task = self.task_of(trial, id);
            ids.retain(|other| {
                let other = self.task_of(baseline, other);
                (other.work, &other.program, other.period)
                    == (task.work, &task.program, task.period)
            });
        }
        ids
    }

    /// The thread of the baseline that runs the same task as this one of a trial, by the names of cell and task: identities number the
    /// threads of a trial, and trials may run different parts of a set. `None`: no thread does, or this one runs no task.
    pub fn same_task(&self, trial: &str, id: &str) -> Option<String> {
        let own = self.task_record(trial, id)?;
        let baseline = self.records(&self.plan.baseline);
        let mut cells = baseline.iter().flat_map(|record| &record.cells);
        let same = |task: &TaskRecord| (&task.cell, &task.name) == (&own.cell, &own.name);
        let found = cells.find(|cell| cell.task.as_ref().is_some_and(same));
        found.map(|cell| cell.id.clone())
    }

    /// The task that a thread of a trial runs.
    fn task_record(&self, trial: &str, id: &str) -> Option<&TaskRecord> {
        let records = self.records(trial).into_iter();
        let mut cells = records.filter_map(|record| cell(record, id));
        cells.find_map(|cell| cell.task.as_ref())
    }

    /// The samples of one cell in one trial, if it left any.
    pub fn samples(&self, record: &TrialRecord, id: &str) -> Result<Option<Samples>, RecordError> {
        self.run.samples(record.number, id)
    }

    /// One metric of one cell over its good rounds.
    pub fn rounds(&self, trial: &str, id: &str, metric: Metric) -> Result<Rounds, RecordError> {
        let mut rounds = Rounds::new();
        for record in self.good(trial) {
            let samples = self.samples(record, id)?.map(|read| read.samples);
            if let Some(samples) = samples.filter(|samples| !samples.is_empty()) {
                let values = samples.iter().map(|sample| sample.of(metric));
                rounds.entry(record.round).or_default().extend(values);
            }
        }
        Ok(rounds)
    }

    /// The same of all cells of a trial, one after the other within each round.
    pub fn pooled(&self, trial: &str, metric: Metric) -> Result<Rounds, RecordError> {
        let mut pooled = Rounds::new();
        for id in self.cell_ids(trial) {
            for (round, mut values) in self.rounds(trial, &id, metric)? {
                pooled.entry(round).or_default().append(&mut values);
            }
        }
        Ok(pooled)
    }
}

/// Compares the rounds that both sides have, paired by their number. `Ok(None)` when they share none.
pub(crate) fn compare_rounds(
    baseline: &Rounds,
    other: &Rounds,
) -> Result<Option<Comparison>, CompareError> {
    let (left, right): (Vec<Vec<i64>>, Vec<Vec<i64>>) = baseline
        .iter()
        .filter_map(|(round, values)| Some((values.clone(), other.get(round)?.clone())))
        .unzip();
    if left.is_empty() {
        return Ok(None);
    }
    stats::compare(&left, &right, &CompareOptions::default()).map(Some)
}

/// Whether a trial and all its cells are good.
pub(crate) fn is_good(record: &TrialRecord) -> bool {
    record.failure.is_none() && record.cells.iter().all(|cell| cell.failure.is_none())
}

/// The cell of this identity.
pub(crate) fn cell<'a>(record: &'a TrialRecord, id: &str) -> Option<&'a CellRecord> {
    record.cells.iter().find(|cell| cell.id == id)
}
