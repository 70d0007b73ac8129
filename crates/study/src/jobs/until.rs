//! A run that continues until a condition is decided: its state so far, and how many jobs a decision takes.

use model::{Experiment, Keep};
use record::RecordError;
use record::run::Run;
use record::summary::{Metric, RunSummary};
use stats::{Quantile, Sorted, needed_count};

use super::histograms::{binned, logs, pool};
use super::source::Source;
use crate::judge::{Figure, Limit, Threshold};
use text::units::time;

/// The probability that any of the looks at a cell's quantile errs.
const LEVEL: f64 = 0.05;

/// State of the conditions that a run continues to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Pairs of a condition and a cell.
    pub asked: usize,
    /// Those not decided yet, as sentences.
    pub open: Vec<String>,
}

/// A condition that a run can continue to decide: the quantile of a time, and its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Question {
    metric: Metric,
    probability: f64,
    limit_ns: f64,
}

fn question(condition: &Threshold) -> Option<Question> {
    match (condition.figure, condition.limit) {
        (Figure::Job(metric, statistic), Limit::Time(limit)) => Some(Question {
            metric,
            probability: statistic.probability()?,
            limit_ns: limit.ns() as f64,
        }),
        _ => None,
    }
}

/// Each look errs with an equal share of the level: a bound that holds whenever the looks are taken (Bonferroni).
pub(crate) fn confidence(experiment: &Experiment) -> f64 {
    1.0 - LEVEL / experiment.looks().len().max(1) as f64
}

/// The fewest jobs of a cell after which a condition can be decided; `None` for one that more jobs do not decide, such as a maximum, a
/// count or a ratio.
pub fn jobs_until(condition: &Threshold, experiment: &Experiment) -> Option<u64> {
    needed_count(question(condition)?.probability, confidence(experiment))
}

impl Known {
    /// Looks at the trials of a run that are on record. A cell without a quantile bounded on either side of the limit is not decided.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of(run: &Run, conditions: &[Threshold]) -> Result<Known, RecordError> {
        let source = Source::open(run)?;
        let confidence = confidence(&source.plan);
        let mut known = Known {
            asked: 0,
            open: Vec::new(),
        };
        for condition in conditions {
            let Some(question) = question(condition) else {
                continue;
            };
            for trial in &source.plan.trials {
                for id in source.cell_ids(&trial.name) {
                    let label = super::cell::label(trial, &id);
                    let names = [trial.name.clone(), label.clone(), id.clone()];
                    let engines = trial.cells.iter().map(ToString::to_string);
                    let is_meant = |name: &str| {
                        (condition.selector.as_ref()).is_none_or(|own| own.matches(name))
                    };
                    if !names.iter().any(|name| is_meant(name))
                        && !engines.clone().any(|name| is_meant(&name))
                    {
                        continue;
                    }
                    known.asked += 1;
                    let found = quantile(&source, &trial.name, &id, question, confidence)?;
                    if !found
                        .as_ref()
                        .is_some_and(|found| is_known(condition, question, found))
                    {
                        known.open.push(open(&label, condition, found.as_ref()));
                    }
                }
            }
        }
        Ok(known)
    }
}

/// A summary whose quantiles in these thresholds have the intervals of a look.
///
/// # Errors
/// When the record cannot be read.
pub(crate) fn with_looks(
    run: &Run,
    summary: &RunSummary,
    thresholds: &[Threshold],
) -> Result<RunSummary, RecordError> {
    let source = Source::open(run)?;
    let confidence = confidence(&source.plan);
    let mut looked = summary.clone();
    for question in thresholds.iter().filter_map(question) {
        for cell in &mut looked.cells {
            let Some(metric) = (cell.metrics.iter_mut()).find(|m| m.metric == question.metric)
            else {
                continue;
            };
            let own = (metric.summary.quantiles.iter_mut())
                .find(|quantile| quantile.probability == question.probability);
            if let Some(own) = own
                && let Some(found) =
                    quantile(&source, &cell.trial, &cell.cell, question, confidence)?
            {
                *own = found;
            }
        }
    }
    Ok(looked)
}

/// Whether the whole interval lies on one side.
fn is_known(condition: &Threshold, question: Question, found: &Quantile) -> bool {
    let holds =
        |ns: Option<i64>| ns.map(|ns| condition.operator.holds(ns as f64, question.limit_ns));
    let (low, high) = (holds(found.low_ns), holds(found.high_ns));
    low.is_some() && low == high
}

fn open(label: &str, condition: &Threshold, found: Option<&Quantile>) -> String {
    let bound = |ns: Option<i64>| ns.map_or("?".to_owned(), |ns| time(ns as f64));
    let so_far = match found {
        Some(found) => format!("{} to {} so far", bound(found.low_ns), bound(found.high_ns)),
        None => "no jobs so far".to_owned(),
    };
    format!("{label}: {} ({so_far})", condition.figure)
}

fn quantile(
    source: &Source,
    trial: &str,
    id: &str,
    question: Question,
    confidence: f64,
) -> Result<Option<Quantile>, RecordError> {
    if source.plan.keep == Keep::Samples {
        let rounds = source.rounds(trial, id, question.metric)?;
        let values = Sorted::new(rounds.into_values().flatten().collect());
        return Ok(Quantile::of(&values, question.probability, confidence));
    }
    let mut pooled = std::collections::BTreeMap::new();
    for (record, log) in logs(source, trial, id)? {
        if super::source::is_good(record) {
            pool(&mut pooled, 1, &log);
        }
    }
    let total = pooled.get(&1).into_iter().flatten();
    let total = total.clone().find(|total| total.metric == question.metric);
    Ok(total
        .and_then(|total| Quantile::of_binned(&binned(total), question.probability, confidence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantile(low_ns: Option<i64>, high_ns: Option<i64>) -> Quantile {
        Quantile {
            probability: 0.99,
            value_ns: low_ns,
            low_ns,
            high_ns,
            confidence: 0.99,
            needed_count: 459,
        }
    }

    #[test]
    fn known_is_what_lies_on_one_side_altogether() {
        for (condition, low, high, expected) in [
            ("latency.p99 < 100us", Some(40_000), Some(99_999), true),
            ("latency.p99 < 100us", Some(40_000), Some(100_000), false),
            ("latency.p99 < 100us", Some(100_000), Some(120_000), true),
            ("latency.p99 <= 100us", Some(40_000), Some(100_000), true),
            ("latency.p99 < 100us", Some(40_000), None, false),
            ("latency.p99 < 100us", None, None, false),
        ] {
            let condition: Threshold = condition.parse().unwrap();
            let asked = question(&condition).unwrap();
            let found = quantile(low, high);
            assert_eq!(
                is_known(&condition, asked, &found),
                expected,
                "{condition} {found:?}"
            );
        }
    }

    /// 2,000 runs of jobs whose p90 is the limit, which no interval may leave out: the share that is wrong at any look has a standard
    /// deviation of 0.5 %. The end is one more look: judged at 95 % it would err too often, as it is judged it does not.
    #[test]
    fn all_looks_and_the_end_together_err_with_at_most_five_percent() {
        use rand::{RngExt, SeedableRng};

        let text = "schema = 1\nname = \"x\"\nrounds = 16\nuntil = [\"latency.p90 < 900us\"]\n[workload]\nkind = \"timer\"\n\
                    [[trial]]\nname = \"a\"\ncells = [\"bare\"]\n";
        let experiment = Experiment::parse("x", text).unwrap();
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(17);
        let looks = experiment.looks();
        let runs = 2_000;
        let mut wrong = [0, 0];
        for _ in 0..runs {
            let mut jobs: Vec<i64> = Vec::new();
            let mut errs = [false, false];
            for &rounds in &looks {
                jobs.extend(
                    (jobs.len() as u32..rounds * 200).map(|_| random.random_range(1..=1_000_000)),
                );
                let sorted = Sorted::new(jobs.clone());
                let leaves_out = |confidence: f64| {
                    let found = Quantile::of(&sorted, 0.9, confidence).unwrap();
                    let ends = found.low_ns.zip(found.high_ns);
                    ends.is_some_and(|(low, high)| 900_000 < low || high < 900_000)
                };
                let of_looks = leaves_out(confidence(&experiment));
                errs[0] |= of_looks;
                let is_end = Some(&rounds) == looks.last();
                errs[1] |= if is_end { leaves_out(0.95) } else { of_looks };
            }
            for (wrong, errs) in wrong.iter_mut().zip(errs) {
                *wrong += u32::from(errs);
            }
        }
        let [share, with_another_end] = wrong.map(|wrong| f64::from(wrong) / f64::from(runs));
        assert!((0.02..=0.05).contains(&share), "{share}");
        assert!(with_another_end > 0.05, "{with_another_end}");
    }

    #[test]
    fn only_quantiles_of_times_become_known_with_more_jobs() {
        let text = "schema = 1\nname = \"x\"\nrounds = 16\nuntil = [\"latency.p99.99 < 100us\"]\n[workload]\nkind = \"timer\"\n\
                    [[trial]]\nname = \"a\"\ncells = [\"bare\"]\n";
        let experiment = Experiment::parse("x", text).unwrap();
        let needed = |text: &str| jobs_until(&text.parse().unwrap(), &experiment);
        // At 99 %: ln 0.01 / ln 0.9999.
        assert_eq!(needed("latency.p99.99 < 100us"), Some(46_050));
        for text in [
            "late < 1",
            "latency.max < 1ms",
            "latency.p99 < 1.1x",
            "skew.p99 < 1us",
        ] {
            assert_eq!(needed(text), None, "{text}");
        }
    }
}
