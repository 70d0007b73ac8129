//! From the record to numbers: what `summary.json` holds.
//!
//! Rounds are pooled for each cell of each trial, and compared with the baseline round by round. A trial that failed
//! is counted and named but its samples are not pooled, because its cells did not run under the conditions asked for.
//! Nothing is judged against a threshold here.

mod against;
mod cell;
mod deadlines;
mod failures;
mod histograms;
mod loads;
mod overloads;
mod points;
mod skews;
mod source;
mod tails;
mod turns;
mod unmeasured;
mod until;

pub(crate) use against::{compare_rounds, pooled_rounds};
pub(crate) use histograms::{binned, logs, round_quantiles};
pub(crate) use points::pairs;
pub(crate) use source::Source;
pub use turns::{Standing, foresee};
pub(crate) use unmeasured::study as not_measured;
pub use until::{Known, jobs_until};
pub(crate) use until::{confidence as confidence_of_looks, with_looks};

use crate::{reserved, tasks};
use model::Keep;
use std::collections::BTreeMap;
use turns::Turned;

use record::RecordError;
use record::run::Run;
use record::summary::{CellSummary, Metric, RunSummary, SUMMARY_SCHEMA};

/// Sums up a run. Reads the samples of one cell at a time, so that memory stays at a few times the samples of the
/// largest cell plus those of the baseline.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn study(run: &Run) -> Result<RunSummary, RecordError> {
    let source = Source::open(run)?;
    let manifest = run.manifest()?;
    let plan = &source.plan;
    let primary = metrics(plan.workload.work)[0];
    let cells = match plan.keep {
        Keep::Samples => cells_of_samples(&source, primary)?,
        Keep::Histograms { .. } => histograms::study(&source)?,
    };
    let measured = || cells.iter().filter(|cell| !cell.metrics.is_empty());
    Ok(RunSummary {
        schema: SUMMARY_SCHEMA,
        run: run.name(),
        experiment: plan.name.clone(),
        baseline: plan.baseline.clone(),
        primary,
        real_time: measured().all(|cell| cell.real_time),
        loads: loads::study(&source),
        skews: skews::study(&source),
        tails: tails::study(&source, &cells)?,
        not_measured: unmeasured::study(&source, &manifest)?,
        unmet: manifest
            .requirements
            .iter()
            .filter(|requirement| !requirement.met)
            .cloned()
            .collect(),
        failures: failures::study(&source, &cells, manifest.failure.as_deref(), &run.damage()?),
        overloads: overloads::study(&source, &cells)?,
        points: points::study(&source, &cells, primary)?,
        cells,
        // A gap would count.
        lasted_ns: (manifest.resumed.is_empty())
            .then(|| lasted_ns(&source))
            .flatten(),
        resumed: manifest.resumed,
    })
}

/// From the first release to the last, and as much again as lies between two of them for what follows the last.
fn lasted_ns(source: &Source) -> Option<i64> {
    let trials = source.plan.trials.iter();
    let records = trials.flat_map(|trial| source.records(&trial.name));
    let mut releases: Vec<i64> = records.filter_map(|record| record.go_unix_ns).collect();
    // Trials that took turns were released together.
    releases.sort_unstable();
    releases.dedup();
    let spans = i64::try_from(releases.len().checked_sub(1)?).ok()?;
    let between = releases.last()?.checked_sub(*releases.first()?)?;
    (spans > 0).then(|| between / spans * (spans + 1))
}

fn cells_of_samples(source: &Source, primary: Metric) -> Result<Vec<CellSummary>, RecordError> {
    let plan = &source.plan;
    let baseline = pooled_rounds(source, &plan.baseline, primary)?;
    let mut turned = Vec::new();
    for &metric in metrics(plan.workload.work) {
        turned.extend(Turned::read_all(source, metric)?);
    }
    let mut cells = Vec::new();
    for trial in &plan.trials {
        let records = source.records(&trial.name);
        let bounds = (records.first()).map_or_else(BTreeMap::new, |r| tasks::bounds(&r.cells));
        let held = reserved::study(&records);
        for id in source.cell_ids(&trial.name) {
            // A task is compared with itself.
            let twin = source.same_task(&trial.name, &id);
            let own = match (&plan.tasks, &twin) {
                (Some(_), Some(twin)) => Some(source.rounds(&plan.baseline, twin, primary)?),
                (Some(_), None) => Some(source::Rounds::new()),
                (None, _) => None,
            };
            let same = source.counterparts(&trial.name, &id);
            let alike = match own.is_none() && same != source.cell_ids(&plan.baseline) {
                true => Some(against::rounds_of(source, &plan.baseline, &same, primary)?),
                false => None,
            };
            let baseline = own.as_ref().or(alike.as_ref()).unwrap_or(&baseline);
            let (in_turns, notes) = turns::compare_all(&turned, &trial.name, &id);
            let by_turns = (in_turns.iter())
                .find(|turns| turns.metric == primary && turns.against == plan.baseline)
                .map(|turns| turns.comparison.clone());
            let by_rounds = trial.name != plan.baseline && by_turns.is_none();
            let mut cell = cell::study(source, trial, &id, by_rounds.then_some(baseline))?;
            cell.against_baseline = by_turns.or(cell.against_baseline);
            cell.in_turns = in_turns;
            cell.notes.extend(notes);
            if let (Some(task), None) = (&cell.task, twin) {
                cell.notes.push(format!(
                    "not compared: no thread of the baseline `{}` runs task `{}` of cell `{}`",
                    plan.baseline, task.name, task.cell
                ));
            }
            if let Some(task) = &mut cell.task {
                task.bound_ns = bounds.get(&id).copied();
                if let Some(held) = held.get(&id) {
                    task.bound_ns = held.bound_ns;
                    task.held = Some(held.held.clone());
                }
            }
            cells.push(cell);
        }
    }
    Ok(cells)
}

/// What is measured of a job of this work, the metric that comparisons are about first.
pub(crate) fn metrics(work: model::Work) -> &'static [Metric] {
    Metric::of_work(work)
}
