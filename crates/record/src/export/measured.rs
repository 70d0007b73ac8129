//! A run as other tools would have measured it: one distribution per cell and metric, rounds pooled.

use std::collections::BTreeMap;

use super::{binned, keeps_histograms};
use crate::Metric;
use crate::RecordError;
use crate::import::measured::{Distribution, Measured};
use crate::run::Run;

/// The distributions of a run, in whole nanoseconds; trials that failed are left out, with a note.
///
/// A cell is named after its trial, and by its own name too if the trial has several. If the run kept histograms, every
/// value except the extremes and the worst jobs is the upper end of its bin, with a note.
///
/// # Errors
/// When a file of the run cannot be read.
pub fn measured(run: &Run, metrics: &[Metric]) -> Result<Measured, RecordError> {
    let plan = run.experiment()?;
    let provenance = run.provenance()?;
    let mut notes = Vec::new();
    let mut distributions = Vec::new();
    let mut failed = 0_u64;
    let mut skipped = 0_u64;
    let numbers = run.trial_numbers()?;
    let binned_run = keeps_histograms(run)?;
    let mut lost = 0_u64;
    let mut early = 0_u64;
    for &metric in metrics {
        // Cells in the order in which they first ran.
        let mut order: Vec<String> = Vec::new();
        let mut counts: BTreeMap<String, BTreeMap<i64, u64>> = BTreeMap::new();
        let mut cpus: BTreeMap<String, u32> = BTreeMap::new();
        (failed, skipped, lost) = (0, 0, 0);
        for &number in &numbers {
            let trial = run.trial(number)?;
            if trial.failure.is_some() || trial.cells.iter().any(|cell| cell.failure.is_some()) {
                failed += 1;
                continue;
            }
            for cell in &trial.cells {
                let values: Vec<(i64, u64)> = if binned_run {
                    let Some(log) = run.histograms(number, &cell.id)? else {
                        continue;
                    };
                    skipped += log.counts.skipped;
                    lost += log.counts.lost;
                    let (values, as_zero) = binned::values(&log, metric);
                    early += as_zero;
                    values
                } else {
                    let Some(samples) = run.samples(number, &cell.id)? else {
                        continue;
                    };
                    skipped += samples.header.skipped;
                    let jobs = samples.samples.iter();
                    jobs.map(|sample| (sample.of(metric), 1)).collect()
                };
                let name = match trial.cells.len() {
                    1 => trial.name.clone() + cell.caution(),
                    _ => format!("{}/{}{}", trial.name, cell.id, cell.caution()),
                };
                if !order.contains(&name) {
                    order.push(name.clone());
                }
                cpus.insert(name.clone(), cell.cpu);
                let counts = counts.entry(name).or_default();
                for (ns, count) in values {
                    *counts.entry(ns).or_default() += count;
                }
            }
        }
        for name in order {
            let mut d = Distribution::new(&name, metric.title(), 1);
            d.cpu = cpus.get(&name).copied();
            d.fill(counts.remove(&name).unwrap_or_default());
            d.said.cycles = Some(d.counted());
            distributions.push(d);
        }
    }
    if failed > 0 {
        notes.push(format!("{failed} failed trials are left out"));
    }
    if skipped > 0 {
        notes.push(format!("{skipped} skipped activations have no value"));
    }
    if lost > 0 {
        notes.push(format!("{lost} jobs ran but were not recorded"));
    }
    if binned_run {
        notes.push(binned::note(early));
    }
    Ok(Measured {
        file: run.name(),
        format: None,
        tool: format!("timecell {}", plan.name),
        version: Some(run.manifest()?.timecell_version),
        command: None,
        machine: Some(provenance.one_line()),
        distributions,
        incomplete: None,
        notes,
    })
}
