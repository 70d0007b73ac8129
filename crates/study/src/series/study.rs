//! Summing up a run of single measurements.

use std::collections::BTreeMap;

use record::RecordError;
use record::run::{Manifest, Run, Status};
use record::series::{
    SERIES_SUMMARY_SCHEMA, Series, SeriesFigure, SeriesRecord, SeriesSummary, compared_with,
};
use stats::{CompareOptions, Quantile, Sorted, Summary, compare};
use text::amount::amount;
use text::words::plural;

/// Sums up a run of single measurements.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn series_study(run: &Run) -> Result<SeriesSummary, RecordError> {
    let record: SeriesRecord = run.read()?;
    let manifest = run.manifest()?;
    let figures = figures(&record);
    Ok(SeriesSummary {
        schema: SERIES_SUMMARY_SCHEMA,
        run: run.name(),
        scenario: record.scenario.clone(),
        baseline_subject: record.baseline_subject.clone(),
        notes: unlocked(&figures),
        sweep: record.sweep.clone(),
        figures,
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

/// Subjects whose payload had little of its mapped memory resident: it was not locked, so their memory is not comparable with the others'.
fn unlocked(figures: &[SeriesFigure]) -> Vec<String> {
    let of_payload = |subject: &str, what: &str| {
        let part = format!("{what} of payload");
        let same = |f: &&SeriesFigure| f.subject == subject && f.part == part;
        figures.iter().find(same).map(|f| f.mean)
    };
    let subjects = figures.iter().filter(|f| f.part == "RSS of payload");
    subjects
        .filter_map(|rss| {
            let mapped = of_payload(&rss.subject, "mapped memory")?;
            (rss.mean < LOCKED * mapped).then(|| {
                format!(
                    "{}: only {} of the {} mapped by its payload were resident: its memory was not locked, so PSS and RSS count only what \
                     it touched and are not comparable with the others",
                    rss.subject,
                    amount(rss.unit, rss.mean),
                    amount(rss.unit, mapped),
                )
            })
        })
        .collect()
}

/// The part of its mapped memory that a payload with locked memory has resident at least.
const LOCKED: f64 = 0.9;

/// The ratio to the same part of the baseline over the rounds for which both have a value.
fn against(record: &SeriesRecord, series: &Series) -> (Option<stats::Ratio>, u32) {
    let baseline = record.baseline_subject.as_deref();
    let with = compared_with(&record.sweep, baseline, &series.subject);
    let baseline = with.and_then(|with| {
        let same =
            |s: &&Series| s.subject == with && s.part == series.part && s.unit == series.unit;
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

/// The run's early end, measurements that never took place, and those that failed, equal ones once.
fn failures(record: &SeriesRecord, manifest: &Manifest) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    if let Some(why) = &manifest.failure {
        sentences.push(format!("the run: {why}"));
    } else if manifest.status == Status::Running {
        sentences.push("the run has not ended, or ended without a trace".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;
    use record::series::{Failure, Quantity, SERIES_SCHEMA, Value};

    /// `b` takes about three times as long as `a`, and fails in round 2.
    fn record(rounds: u32) -> SeriesRecord {
        let mut record = SeriesRecord {
            schema: SERIES_SCHEMA,
            scenario: "x".to_owned(),
            question: String::new(),
            conditions: Vec::new(),
            rounds_planned: rounds,
            baseline_subject: Some("a".to_owned()),
            series: Vec::new(),
            not_measured: Vec::new(),
            sweep: Vec::new(),
        };
        for round in 1..=rounds {
            for (subject, times) in [("a", 1), ("b", 3)] {
                let series = record.of(subject, "whole", None, Quantity::Ns);
                let order = 2 * round + times as u32;
                if subject == "b" && round == 2 {
                    let why = "it fell over".to_owned();
                    series.failures.push(Failure { round, order, why });
                } else {
                    let value = times * (1_000 + i64::from(round % 3));
                    series.values.push(Value {
                        round,
                        order,
                        value,
                    });
                }
            }
        }
        record
    }

    #[test]
    fn ratios_pair_the_rounds_that_both_have() {
        let figures = figures(&record(30));
        assert_eq!((figures[0].count, figures[1].count), (30, 29));
        assert_eq!(figures[0].against_baseline, None);
        assert_eq!((figures[1].failed, figures[1].rounds_compared), (1, 29));
        let ratio = figures[1].against_baseline.as_ref().unwrap();
        assert!((ratio.value - 3.0).abs() < 1e-9, "{ratio:?}");
        assert_eq!(ratio.verdict, stats::Verdict::Larger);
        assert_eq!(figures[1].worst, 3_006);
        assert!(figures[1].p90.is_some() && figures[1].p99.is_none());
    }

    #[test]
    fn few_values_claim_little() {
        let figures = figures(&record(1));
        assert_eq!(figures[0].median_interval, None);
        assert_eq!((figures[0].sd, figures[0].p90), (None, None));
        let ratio = figures[1].against_baseline.as_ref().unwrap();
        assert_eq!(ratio.verdict, stats::Verdict::Undecided);
        // A series without a value has no figure.
        let mut empty = record(1);
        empty.series[1].values.clear();
        assert_eq!(super::figures(&empty).len(), 1);
    }

    #[test]
    fn memory_that_was_not_locked_is_said() {
        let mut record = record(1);
        record.series.clear();
        for (subject, resident) in [("bare", 95), ("podman-rootless", 23)] {
            for (part, bytes) in [
                ("RSS of payload", resident),
                ("mapped memory of payload", 100),
            ] {
                let series = record.of(subject, part, None, Quantity::Bytes);
                series.values.push(Value {
                    round: 1,
                    order: 1,
                    value: bytes * 10_000,
                });
            }
        }
        let notes = unlocked(&figures(&record));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("podman-rootless: only 224.6 KiB of the 976.6 KiB"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_failure_that_recurs_is_said_once() {
        let mut record = record(3);
        let again = record.series[1].failures[0].clone();
        record.series[1].failures.push(again);
        let manifest = Manifest {
            schema: 1,
            timecell_version: String::new(),
            status: Status::Complete,
            started: String::new(),
            finished: None,
            trials_planned: 6,
            trials_done: 6,
            requirements: Vec::new(),
            not_measured: Vec::new(),
            failure: None,
            resumed: Vec::new(),
            remarks: Vec::new(),
        };
        assert_eq!(
            failures(&record, &manifest),
            ["b, whole, 2 rounds: it fell over"]
        );
    }
}
