//! Judges the conditions that a run continued to decide with the intervals of its interim looks: the end of the run is the last look.

use model::Experiment;
use record::RecordError;
use record::run::Run;
use record::summary::RunSummary;

use super::threshold::Threshold;
use super::verdict::{Judged, Outcome, Why};
use super::{Ratios, jobs_readings, judge};
use crate::jobs::{confidence_of_looks, with_looks};

/// Judges a run of periodic jobs as [`judge`] does its readings, but the conditions that it continued to decide with the confidence of
/// each of its looks: with that of a single one the end would err more often than all looks together may.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn judge_run(
    run: &Run,
    summary: &RunSummary,
    thresholds: &[Threshold],
    ratios: &Ratios,
) -> Result<Judged, RecordError> {
    let mut judged = judge(&jobs_readings(summary, ratios), thresholds);
    let plan = run.experiment()?;
    let asked = asked(&plan, thresholds);
    if asked.is_empty() {
        return Ok(judged);
    }
    let conditions: Vec<Threshold> = asked.iter().map(|&at| thresholds[at].clone()).collect();
    let looked = with_looks(run, summary, &conditions)?;
    let confidence = text::words::part(confidence_of_looks(&plan));
    for (at, mut threshold) in asked
        .into_iter()
        .zip(judge(&jobs_readings(&looked, ratios), &conditions).thresholds)
    {
        for cell in &mut threshold.cells {
            if cell.why == Some(Why::TooFew) {
                // The run ended without the jobs that it would take.
                cell.verdict = Outcome::Undecided;
                cell.why = None;
            } else if cell.verdict == Outcome::Undecided && cell.low.is_some() {
                cell.reason = format!("the limit lies within the {confidence} interval");
            }
        }
        judged.thresholds[at] = threshold;
    }
    judged.cautions.push(format!(
        "The conditions of --until have {confidence} intervals, so that all looks together err with at most 5 %."
    ));
    Ok(judged)
}

/// The places of those thresholds that are negated conditions of the experiment.
fn asked(plan: &Experiment, thresholds: &[Threshold]) -> Vec<usize> {
    let conditions: Vec<Threshold> = (plan.until.iter().cloned())
        .map(Threshold::broken)
        .collect();
    (0..thresholds.len())
        .filter(|&at| conditions.contains(&thresholds[at]))
        .collect()
}
