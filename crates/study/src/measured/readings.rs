//! The figures of other tools' files that can be judged: each series is judged as a cell, by its histogram and the tool's figures.

use record::import::measured::{Distribution, Measured as File, Overflow, Reach};
use record::summary::Metric;
use stats::{Bin, Binned, DEFAULT_CONFIDENCE, Quantile};

use crate::judge::{
    Absent, Ends, Figure, Measured, Reading, Readings, Statistic, Subject, Unit, Why,
};
use crate::kind::Kind;
use ::text::units::Scale;
use ::text::words::clean;

/// The figures of files, series by series. A selector matches names of series, of files, `file/series`, and tools.
///
/// `execution` means execution times, `response` response and completion times, and `latency` everything else that tools measure, except
/// slack: wake-ups, hand-overs, interruptions, noise.
pub fn measured_readings(files: &[File]) -> Readings {
    let of_file = |file: &File| -> Vec<Subject> {
        let all = file.distributions.iter();
        all.map(|d| subject(file, d)).collect()
    };
    Readings::new(Kind::Files, files.iter().flat_map(of_file).collect())
}

fn subject(file: &File, d: &Distribution) -> Subject {
    let short = file.file.rsplit('/').next().unwrap_or(&file.file);
    let label = clean(&format!("{short}/{}", d.name));
    let readings = metric(&d.quantity).map_or_else(Vec::new, |metric| {
        let reading = |statistic| reading(d, metric, statistic);
        Statistic::ALL.map(reading).to_vec()
    });
    let shared = [short, &file.file, &file.tool].map(str::to_owned);
    Subject {
        own: vec![d.name.clone(), label.clone()],
        open: (file.incomplete.as_ref()).map(|what| (clean(short), what.clone())),
        ..Subject::new(label, readings).also(shared)
    }
}

/// The metric that a quantity of a file is judged as; `None` for those where more is better.
fn metric(quantity: &str) -> Option<Metric> {
    let quantity = quantity.to_lowercase();
    match quantity.as_str() {
        _ if quantity.contains("slack") => None,
        _ if quantity.contains("execution time") => Some(Metric::ExecutionTime),
        _ if quantity.contains("response time") || quantity.contains("completion time") => {
            Some(Metric::ResponseTime)
        }
        _ => Some(Metric::WakeupLatency),
    }
}

fn reading(d: &Distribution, metric: Metric, statistic: Statistic) -> Reading {
    let figure = Figure::Job(metric, statistic);
    if d.is_empty() {
        return empty(d, figure, statistic);
    }
    let found = found(d, statistic);
    let bounded = matches!(&found, Ok(measured) if measured.ends == Ends::AtMost);
    let reading = Reading::new(figure, Unit::Ns, found);
    match bounded {
        true => reading.remarked(format!(
            "the file has no {}, which is at most the maximum",
            statistic.name()
        )),
        false => reading,
    }
}

fn found(d: &Distribution, statistic: Statistic) -> Result<Measured, Absent> {
    let measured = match (statistic, statistic.probability()) {
        (Statistic::Min, _) => d.min_ns().map(|ns| Measured::fact(ns as f64)),
        (Statistic::Max, _) => match (d.max_ns(), d.overflow) {
            (Some(ns), _) => Some(Measured::fact(ns as f64)),
            // The largest is not in the file, but it is at least this.
            (None, Some(Overflow { at_least_ns, .. })) => Some(at_least(at_least_ns)),
            (None, None) => None,
        },
        (Statistic::Mean, _) => d.mean_ns().map(Measured::fact),
        (_, Some(probability)) => match quantile(d, probability) {
            Some(q) => match (q.value_ns, q.low_ns, q.high_ns) {
                // The upper end lies beyond the histogram.
                (Some(value), Some(low), Some(i64::MAX)) => Some(Measured {
                    value: value as f64,
                    ends: Ends::AtLeast(low as f64),
                }),
                (Some(value), Some(low), Some(high)) => {
                    let interval = (low as f64, high as f64);
                    Some(Measured::estimate(value as f64, Some(interval), ""))
                }
                _ => {
                    let has = d.total().unwrap_or(0);
                    let reason = format!("needs {} values, has {has}", q.needed_count);
                    return Err((Why::TooFew, reason));
                }
            },
            None => match d.quantile(probability) {
                // The tool's own figure.
                Reach::At(ns) => Some(Measured::fact(ns as f64)),
                _ => d
                    .quantile_at_most_ns(probability)
                    .map(|ns| at_most(ns as f64)),
            },
        },
        (_, None) => None,
    };
    let none = || {
        (
            Why::NoFigure,
            format!("the file has no {}", statistic.name()),
        )
    };
    measured.ok_or_else(none)
}

fn at_most(ns: f64) -> Measured {
    Measured {
        value: ns,
        ends: Ends::AtMost,
    }
}

fn at_least(ns: i64) -> Measured {
    Measured {
        value: ns as f64,
        ends: Ends::AtLeast(ns as f64),
    }
}

/// A series without a value. Where the tool keeps only values above a threshold, all lie at or below it; else nothing was measured, as
/// in a trial that did not take place.
fn empty(d: &Distribution, figure: Figure, statistic: Statistic) -> Reading {
    match d.kept_above_ns {
        Some(most) if statistic != Statistic::Sd => {
            let within = at_most(most as f64);
            let most = Scale::of([most as f64]).show(most as f64);
            Reading::new(figure, Unit::Ns, Ok(within)).remarked(format!(
                "nothing was seen above the tool's threshold, {most} without its option -T"
            ))
        }
        _ => {
            let nothing = (Why::NotMeasured, "it holds no value".to_owned());
            Reading::new(figure, Unit::Ns, Err(nothing))
        }
    }
}

fn quantile(d: &Distribution, probability: f64) -> Option<Quantile> {
    Quantile::of_binned(&binned(d)?, probability, DEFAULT_CONFIDENCE)
}

/// The histogram with its overflow; `None` if the file does not say how many values there are.
fn binned(d: &Distribution) -> Option<Binned> {
    let total = d.total().filter(|total| *total > 0)?;
    let mut bins: Vec<Bin> = d
        .counts
        .iter()
        .map(|&(value, count)| Bin {
            low_ns: value.saturating_sub(d.resolution_ns - d.unit_ns),
            high_ns: value,
            count,
        })
        .collect();
    // Bins may not overlap, and one that ends at the largest value is narrower than the others.
    for at in 1..bins.len() {
        bins[at].low_ns = bins[at].low_ns.max(bins[at - 1].high_ns.saturating_add(1));
    }
    let over = total - d.counted();
    if let Some(Overflow { at_least_ns, .. }) = d.overflow.filter(|_| over > 0) {
        bins.push(Bin {
            low_ns: at_least_ns,
            high_ns: d.max_ns().unwrap_or(i64::MAX).max(at_least_ns),
            count: over,
        });
    }
    let (min, max) = (bins.first()?.low_ns, bins.last()?.high_ns);
    let min = d.min_ns().map_or(min, |said| said.max(min));
    Some(Binned::new(bins, min, max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Judged, Outcome, judge};
    use record::import::measured::{Options, import};

    fn verdicts(text: &str, threshold: &str) -> Judged {
        let file = import(None, "a.txt", text.as_bytes(), Options::default()).unwrap();
        let threshold = threshold.parse().unwrap();
        judge(&measured_readings(&[file]), &[threshold])
    }

    fn judged(text: &str, threshold: &str) -> Outcome {
        verdicts(text, threshold).outcome()
    }

    /// Whether a series has a remark that begins so.
    fn is_remarked(text: &str, threshold: &str, remark: &str) -> bool {
        let judged = verdicts(text, threshold);
        let mut series = judged.thresholds[0].cells.iter();
        series.any(|one| one.reason.starts_with(remark))
    }

    #[test]
    fn a_file_that_holds_fewer_threads_than_it_says_decides_nothing_in_its_favour() {
        let text = "{\"cmdline\": \"cyclictest -t4\", \"rt_test_version\": \"2.5\", \"num_threads\": 4, \"resolution_in_ns\": 0, \
            \"return_code\": 1, \"thread\": {\"0\": {\"histogram\": {\"1\": 5, \"2\": 5}, \"cycles\": 10, \"min\": 1, \"max\": 2, \
            \"avg\": 1.5}}}";
        for (threshold, outcome) in [
            ("latency.max > 10us", Outcome::Undecided),
            ("latency.max > 1us", Outcome::Fails),
        ] {
            assert_eq!(judged(text, threshold), outcome, "{threshold}");
        }
        let whole = text.replace("\"num_threads\": 4", "\"num_threads\": 1");
        assert_eq!(judged(&whole, "latency.max > 10us"), Outcome::Passes);
    }

    #[test]
    fn a_file_meets_or_misses_a_threshold_and_what_it_hides_is_undecided() {
        let text = "# Histogram\n000005 000997\n000009 000000\n# Min Latencies: 00005\n# Avg Latencies: 00005\n\
            # Max Latencies: 00400\n# Histogram Overflows: 00003\n";
        for (threshold, outcome) in [
            ("latency.max > 300us", Outcome::Fails),
            ("latency.max > 400us", Outcome::Passes),
            ("latency.p99 > 10us", Outcome::Passes),
            ("latency.p99 > 4us", Outcome::Fails),
            ("latency.p99.9 > 10us", Outcome::NotApplicable),
            ("thread*.latency.median >= 5us", Outcome::Fails),
            ("cyclictest.latency.mean > 6us", Outcome::Passes),
            ("b.latency.max > 300us", Outcome::NotApplicable),
            ("execution.max > 300us", Outcome::NotApplicable),
            ("missed > 0", Outcome::NotApplicable),
        ] {
            assert_eq!(judged(text, threshold), outcome, "{threshold}");
        }
        let status = "T: 0 ( 1) P:80 I:1000 C: 5 Min: 3 Act: 3 Avg: 14 Max: 39\n";
        assert_eq!(judged(status, "latency.max > 30us"), Outcome::Fails);
        // A quantile that only the maximum bounds.
        assert_eq!(judged(status, "latency.p99 > 30us"), Outcome::Undecided);
        assert_eq!(judged(status, "latency.p99 > 39us"), Outcome::Passes);
        assert_eq!(judged(status, "latency.sd > 39us"), Outcome::NotApplicable);
    }

    #[test]
    fn nothing_above_the_threshold_of_the_tool_meets_every_limit_from_there_on() {
        let none = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\nIndex\n\
            over: 0\ncount: 0\nmin: 0\navg: 0\nmax: 0\n";
        for (threshold, outcome) in [
            ("latency.max > 1ms", Outcome::Passes),
            ("latency.max > 5us", Outcome::Passes),
            ("latency.max >= 5us", Outcome::Undecided),
            ("latency.p99 > 4us", Outcome::Undecided),
            ("latency.median > 5us", Outcome::Passes),
            ("latency.max < 1ms", Outcome::Fails),
            ("latency.sd > 1ms", Outcome::NotApplicable),
        ] {
            assert_eq!(judged(none, threshold), outcome, "{threshold}");
        }
        let remark = "nothing was seen above the tool's threshold, ";
        assert!(is_remarked(none, "latency.max > 1ms", remark));
    }

    #[test]
    fn a_series_without_a_value_is_skipped_where_others_have_some_and_it_is_not_named() {
        let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:02\n\
            Index   IRQ-001   Thr-001   Usr-001\n0   990  944  0\n1    10   56  0\nover:   0   0   0\n\
            count:   1000  1000  0\nmin:  0  0  -\navg:  0  0  -\nmax:  1  1  -\n";
        for (threshold, outcome) in [
            ("latency.max > 1ms", Outcome::Passes),
            ("*cpu*1.latency.p99 > 1ms", Outcome::Passes),
            ("a.txt.latency.max > 1ms", Outcome::Passes),
            ("latency.max > 0ns", Outcome::Fails),
            ("return*.latency.max > 1ms", Outcome::NotApplicable),
        ] {
            assert_eq!(judged(text, threshold), outcome, "{threshold}");
        }
        let remark = "it holds no value";
        assert!(is_remarked(text, "latency.max > 1ms", remark));
    }
}
