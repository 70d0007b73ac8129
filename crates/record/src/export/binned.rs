//! The values of a histogram log as precisely as the log has them: most by their bin, some exactly.

use crate::Metric;
use crate::histogram::{HistogramLog, RELATIVE_ERROR};

/// Values of a metric in ns, each with its count, in no order; and how many of them are below 0 but appear as 0, since the
/// log does not know how far below.
///
/// A value is the upper end of its bin, at most [`RELATIVE_ERROR`] of it too large: the safe side, and the same as for a
/// run's own quantiles. The smallest and the largest value and those of the worst jobs are exact.
pub(super) fn values(log: &HistogramLog, metric: Metric) -> (Vec<(i64, u64)>, u64) {
    let mut totals = log.totals.iter();
    let Some(total) = totals.find(|total| total.metric == metric) else {
        return (Vec::new(), 0);
    };
    let histogram = &total.histogram;
    let lowest = |value: u64| histogram.lowest_equivalent(value);
    // A histogram iterates by the upper ends of its bins.
    let mut bins: std::collections::BTreeMap<u64, u64> = histogram
        .iter_recorded()
        .map(|bin| (lowest(bin.value_iterated_to()), bin.count_at_value()))
        .collect();
    let mut exact: Vec<i64> = log.worst.iter().map(|(_, job)| job.of(metric)).collect();
    for extreme in [total.min_ns, total.max_ns] {
        if !exact.contains(&extreme) {
            exact.push(extreme);
        }
    }
    let mut values = Vec::with_capacity(bins.len() + exact.len());
    for ns in exact {
        // Values below 0 are in the histogram as 0.
        let bin = bins.get_mut(&lowest(u64::try_from(ns).unwrap_or(0)));
        if let Some(count) = bin.filter(|count| **count > 0) {
            *count -= 1;
            values.push((ns, 1));
        }
    }
    let bins = bins.into_iter().filter(|bin| bin.1 > 0);
    let known = values.iter().filter(|value| value.0 < 0).count() as u64;
    // No value is above the largest, and none outside the worst jobs is above the smallest of them.
    let by_this = log.worst.iter().all(|(ns, job)| *ns == job.of(metric));
    let least_of_worst = log.worst.iter().map(|(ns, _)| *ns).min();
    let most = least_of_worst
        .filter(|_| by_this)
        .unwrap_or(total.max_ns)
        .min(total.max_ns);
    let at = |bin: u64| i64::try_from(histogram.highest_equivalent(bin)).unwrap_or(i64::MAX);
    values.extend(bins.map(|(bin, count)| (at(bin).min(most).max(0), count)));
    (values, total.below_zero.saturating_sub(known))
}

/// The note for readers of such values; `early` of them are below 0 and appear as 0.
pub(super) fn note(early: u64) -> String {
    let part = RELATIVE_ERROR * 100.0;
    let mut note = format!(
        "the run kept histograms: the extremes and the worst jobs are exact, all other values are up to {part:.1} % too large"
    );
    if early > 0 {
        note += &format!("; {early} values below 0 are written as 0");
    }
    note
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::SystemTime;

    use super::*;
    use crate::histogram::{Collector, WORST, parse};
    use crate::samples::{Header, Sample};
    use proptest::prelude::*;

    /// The log of jobs with these wake-up latencies.
    fn log(latencies: &[i64]) -> HistogramLog {
        let mut collector = Collector::new(&[Metric::WakeupLatency], 0, 60_000_000_000);
        let mut header = Header::new();
        header.planned = latencies.len() as u64;
        let mut text = collector.begin(&header, SystemTime::UNIX_EPOCH);
        for (index, latency) in latencies.iter().enumerate() {
            let release_ns = index as i64 * 1_000_000;
            let sample = Sample {
                index: index as u32,
                skipped: 0,
                release_ns,
                start_ns: release_ns + latency,
                end_ns: release_ns + latency,
            };
            text.extend(collector.take(&sample).unwrap_or_default());
        }
        text.extend(collector.close().unwrap_or_default());
        let log = parse(Path::new("x.hlog"), text.as_slice());
        log.expect("our own log").expect("it has begun")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// No value is lost, none is too low, none too large by more than the note says, and the tail is exact.
        #[test]
        fn bins_and_exact_values_make_up_the_whole(
            mut latencies in prop::collection::vec(-300i64..9_000_000, WORST + 1..WORST + 700),
        ) {
            let (values, early) = values(&log(&latencies), Metric::WakeupLatency);
            let mut ours: Vec<i64> = values
                .iter()
                .flat_map(|&(ns, count)| std::iter::repeat_n(ns, count as usize))
                .collect();
            ours.sort_unstable();
            latencies.sort_unstable();
            prop_assert_eq!(ours.len(), latencies.len());
            prop_assert_eq!(ours[0], latencies[0]);
            let tail = latencies.len() - WORST;
            prop_assert_eq!(&ours[tail..], &latencies[tail..]);
            for (ours, exact) in ours.iter().zip(&latencies) {
                let off = (ours.max(&0) - exact.max(&0)) as f64;
                prop_assert!(off >= 0.0 && off <= *exact.max(&0) as f64 * RELATIVE_ERROR, "{} {}", ours, exact);
            }
            let negative = |values: &[i64]| values.iter().filter(|value| **value < 0).count() as u64;
            prop_assert_eq!(negative(&ours) + early, negative(&latencies));
        }
    }
}
