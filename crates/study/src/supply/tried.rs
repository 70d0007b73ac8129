//! Task sets run inside budgets: whether they met their deadlines.

use record::RecordError;
use record::isolation::Misses;
use record::run::Run;
use record::supply::{SupplyRecord, TriedOutcome, TriedSet, TriedSummary, TriedTrial};

use super::reservation;
use crate::isolation::misses;

/// The outcome of every set; adds failed ones to `failures`.
pub(super) fn tried(
    run: &Run,
    record: &SupplyRecord,
    failures: &mut Vec<String>,
) -> Result<Vec<TriedSummary>, RecordError> {
    let mut all = Vec::new();
    for set in &record.tried.sets {
        let mut outcomes = [TriedOutcome::default(), TriedOutcome::default()];
        for trial in record
            .tried
            .trials
            .iter()
            .filter(|trial| trial.set == set.number)
        {
            let name = || {
                format!(
                    "trial {} ({}, round {})",
                    trial.number,
                    name(set),
                    trial.round
                )
            };
            if let Some(failure) = &trial.failure {
                failures.push(format!("{}: {failure}", name()));
                continue;
            }
            match of_trial(run, set, trial) {
                Ok(tasks) => add(
                    &mut outcomes[usize::from(!trial.in_budget)],
                    &tasks,
                    trial.steal_ns,
                ),
                Err(error @ RecordError::Newer { .. }) => return Err(error),
                Err(error) => failures.push(format!("{}: {error}", name())),
            }
        }
        let [in_budget, without] = outcomes;
        all.push(TriedSummary {
            set: set.clone(),
            in_budget,
            without,
        });
    }
    Ok(all)
}

fn of_trial(run: &Run, set: &TriedSet, trial: &TriedTrial) -> Result<Vec<Misses>, RecordError> {
    (set.tasks.iter())
        .map(|task| {
            let samples = run.task_samples(trial.number, &task.name)?;
            let of = misses(&samples, task.period_ns, task.wcet_ns);
            Ok(Misses {
                trials: 1,
                trials_with: u64::from(of.missed() > 0),
                ..of
            })
        })
        .collect()
}

fn add(outcome: &mut TriedOutcome, tasks: &[Misses], steal_ns: Option<u64>) {
    if outcome.tasks.is_empty() {
        outcome.tasks = vec![Misses::default(); tasks.len()];
        outcome.steal_ns = Some(0);
    }
    for (sum, task) in outcome.tasks.iter_mut().zip(tasks) {
        *sum = sum.and(*task);
    }
    if steal_ns == Some(0) {
        outcome.quiet = outcome.quiet.and(Misses::together(tasks));
    }
    outcome.steal_ns = (outcome.steal_ns.zip(steal_ns)).map(|(sum, one)| sum + one);
}

/// A set's name: `the measured set of 3 ms / 10 ms`.
fn name(set: &TriedSet) -> String {
    format!(
        "the {} set of {}",
        set.chosen_by.name(),
        reservation(&set.held)
    )
}
