use std::collections::BTreeMap;

use crate::words::plural;
use record::RecordError;
use record::run::{Manifest, Run, Status};
use record::series::{SERIES_SUMMARY_SCHEMA, Series, SeriesFigure, SeriesRecord, SeriesSummary};
use stats::{CompareOptions, Quantile, Sorted, Summary, compare};

/// Sums up a run of single measurements.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn series_study(run: &Run) -> Result<SeriesSummary, RecordError> {
    let record = run.series()?;
    let manifest = run.manifest()?;
    Ok(SeriesSummary {
        schema: SERIES_SUMMARY_SCHEMA,
        run: run.name(),
        scenario: record.scenario.clone(),
        baseline_subject: record.baseline_subject.clone(),
        figures: figures(&record),
        not_measured: record.not_measured.clone(),
        unmet: manifest
            .requirements
            .iter()
            .filter(|requirement| !requirement.met)
            .cloned()
            .collect(),
        failures: failures(&record, &manifest),
    })
}

/// One figure for every series that has a value.
fn figures(record: &SeriesRecord) -> Vec<SeriesFigure> {
    let series = record.series.iter();
    series.filter_map(|series| figure(record, series)).collect()
}

fn figure(record: &SeriesRecord, series: &Series) -> Option<SeriesFigure> {
    let sorted = Sorted::new(series.values.iter().map(|v| v.value).collect());
    let summary = Summary::of(&sorted)?;
    let quantile = |p: f64| summary.quantile(p);
    let ends = |q: &Quantile| q.low_ns.zip(q.high_ns);
    let (against_baseline, rounds_compared) = against(record, series);
    Some(SeriesFigure {
        subject: series.subject.clone(),
        part: series.part.clone(),
        of: series.of.clone(),
        unit: series.unit,
        count: summary.count,
        failed: series.failures.len() as u64,
        least: summary.min_ns,
        median: summary.median_ns,
        median_interval: quantile(0.5).and_then(ends),
        mean: summary.mean_ns,
        sd: summary.sd_ns,
        p90: quantile(0.9).and_then(|q| q.value_ns),
        p99: quantile(0.99).and_then(|q| q.value_ns),
        worst: summary.max_ns,
        against_baseline,
        rounds_compared,
    })
}

/// The ratio to the same part of the baseline over the rounds that both have a value of.
fn against(record: &SeriesRecord, series: &Series) -> (Option<stats::Ratio>, u32) {
    let baseline = record
        .baseline_subject
        .as_ref()
        .filter(|baseline| **baseline != series.subject)
        .and_then(|baseline| {
            let same = |s: &&Series| {
                s.subject == *baseline && s.part == series.part && s.unit == series.unit
            };
            record.series.iter().find(same)
        });
    let Some(baseline) = baseline else {
        return (None, 0);
    };
    let (base, mut other) = (by_round(baseline), by_round(series));
    other.retain(|round, _| base.contains_key(round));
    let base: Vec<Vec<i64>> = other.keys().map(|round| base[round].clone()).collect();
    let other: Vec<Vec<i64>> = other.into_values().collect();
    match compare(&base, &other, &CompareOptions::default()) {
        Ok(compared) => (Some(compared.ratio_of_medians), compared.rounds),
        Err(_) => (None, 0),
    }
}

fn by_round(series: &Series) -> BTreeMap<u32, Vec<i64>> {
    let mut rounds = BTreeMap::<u32, Vec<i64>>::new();
    for value in &series.values {
        rounds.entry(value.round).or_default().push(value.value);
    }
    rounds
}

/// What ended the run early, measurements that never were, and those that failed, alike ones once.
fn failures(record: &SeriesRecord, manifest: &Manifest) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    if let Some(why) = &manifest.failure {
        sentences.push(format!("the run: {why}"));
    } else if manifest.status == Status::Running {
        sentences.push("the run has not ended, or ended without a word".to_owned());
    }
    for series in &record.series {
        let mut seen: Vec<(&str, u64)> = Vec::new();
        for failure in &series.failures {
            match seen.iter_mut().find(|(why, _)| *why == failure.why) {
                Some((_, times)) => *times += 1,
                None => seen.push((&failure.why, 1)),
            }
        }
        for (why, times) in seen {
            let times = plural(times, "round");
            sentences.push(format!(
                "{}, {}, {times}: {why}",
                series.subject, series.part
            ));
        }
    }
    sentences
}
