//! The log against the samples it was made from.

use super::*;
use crate::samples::{Header, Sample};
use proptest::prelude::*;
use std::path::Path;
use std::time::SystemTime;

const GO: i64 = 5_000_000_000_000;
const METRICS: &[Metric] = Metric::of_work(model::Work::Mac { steps: 1 });

/// The log of these samples, with its end if `end`.
fn log(samples: &[Sample], interval_ns: i64, planned: u64, end: bool) -> Vec<u8> {
    let mut collector = Collector::new(METRICS, GO, interval_ns);
    let mut header = Header::new();
    header.planned = planned;
    header.go_ns = GO;
    let mut text = collector.begin(&header, SystemTime::UNIX_EPOCH);
    for sample in samples {
        text.extend(collector.take(sample).unwrap_or_default());
    }
    if end {
        header.count = samples.len() as u64;
        header.skipped = samples.iter().map(|s| u64::from(s.skipped)).sum();
        header.complete = 1;
        text.extend(collector.end(&header));
    } else {
        text.extend(collector.close().unwrap_or_default());
    }
    text
}

fn parsed(text: &[u8]) -> Result<Option<HistogramLog>, String> {
    parse(Path::new("x.hlog"), text).map_err(|error| error.to_string())
}

/// Samples with these latencies and execution times, one each 100 us; `gap` activations are lost before each tenth.
fn samples(times: &[(i64, i64)], gap: u32) -> Vec<Sample> {
    let mut index = 0u32;
    times
        .iter()
        .enumerate()
        .map(|(place, &(latency, execution))| {
            if place % 10 == 9 {
                index += gap;
            }
            let release_ns = GO + i64::from(index) * 100_000;
            let sample = Sample {
                index,
                skipped: 0,
                release_ns,
                start_ns: release_ns + latency,
                end_ns: release_ns + latency + execution,
            };
            index += 1;
            sample
        })
        .collect()
}

fn times() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let latency = prop_oneof![-200i64..10_000, 10_000i64..1 << 36];
    prop::collection::vec((latency, 0i64..1 << 30), 1..120)
}

proptest! {
    // Each case unpacks up to forty histograms of some thousand bins, slow in a debug build.
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// With any times: counts, extremes and worst jobs are exact, quantiles within the stated error.
    #[test]
    fn as_from_the_samples(times in times(), interval_us in 1_000i64..100_000, gap in 0u32..3) {
        let samples = samples(&times, gap);
        let planned = u64::from(samples.last().unwrap().index) + 1;
        let text = log(&samples, interval_us * 1000, planned, true);
        let log = parsed(&text).unwrap().unwrap();
        prop_assert_eq!(log.counts.executed, samples.len() as u64);
        prop_assert_eq!(log.counts.accounted(), planned);
        prop_assert_eq!(log.counts.lost, planned - samples.len() as u64);
        prop_assert_eq!(log.unexplained(), 0);
        for (metric, total) in METRICS.iter().zip(&log.totals) {
            prop_assert_eq!(*metric, total.metric);
            let mut values: Vec<i64> = samples.iter().map(|s| s.of(*metric)).collect();
            values.sort_unstable();
            prop_assert_eq!(total.min_ns, values[0]);
            prop_assert_eq!(total.max_ns, *values.last().unwrap());
            prop_assert_eq!(total.below_zero, values.iter().filter(|v| **v < 0).count() as u64);
            let sorted = stats::Sorted::new(values.clone());
            let whole = stats::Summary::of(&sorted).unwrap();
            prop_assert!((total.mean_ns - whole.mean_ns).abs() <= 1e-6 * whole.mean_ns.abs().max(1.0));
            for p in [0.01, 0.5, 0.9, 0.99] {
                let exact = sorted.nearest_rank(p).unwrap().max(0);
                let ours = total.histogram.value_at_quantile(p) as i64;
                let off = (ours - exact) as f64;
                prop_assert!(off >= 0.0 && off <= exact as f64 * RELATIVE_ERROR, "{} {} {}", p, ours, exact);
            }
        }
        let mut worst: Vec<(i64, u32)> = samples.iter().map(|s| (s.of(METRICS[0]), s.index)).collect();
        worst.sort_by_key(|(value, index)| (std::cmp::Reverse(*value), *index));
        worst.truncate(WORST);
        let kept: Vec<(i64, u32)> = log.worst.iter().map(|(v, s)| (*v, s.index)).collect();
        prop_assert_eq!(kept, worst);
    }

    /// Wherever the power goes, whole intervals are read and nothing else.
    #[test]
    fn cut_anywhere_it_loses_the_last_interval_at_most(times in times(), at in 0.0f64..1.0) {
        let samples = samples(&times, 0);
        let text = log(&samples, 1_000_000, samples.len() as u64, false);
        let whole = parsed(&text).unwrap().unwrap();
        let at = (text.len() as f64 * at) as usize;
        let cut = match parsed(&text[..at]) {
            Ok(None) => return Ok(()),
            Ok(Some(log)) => log,
            Err(error) => return Err(TestCaseError::fail(error)),
        };
        prop_assert_eq!(cut.intervals.as_slice(), &whole.intervals[..cut.intervals.len()]);
        let kept: u64 = cut.intervals.iter().map(|interval| interval.counts.executed).sum();
        prop_assert_eq!(cut.counts.executed, kept);
        let closings = text[..at].split(|b| *b == b'\n').rev().skip(1)
            .filter(|line| line.starts_with(INTERVAL.as_bytes())).count();
        prop_assert_eq!(cut.intervals.len(), closings);
    }

    #[test]
    fn a_byte_changed_gives_a_log_or_a_sentence(times in times(), at in 0.0f64..1.0, to in any::<u8>()) {
        let samples = samples(&times, 1);
        let planned = u64::from(samples.last().unwrap().index) + 1;
        let mut text = log(&samples, 10_000_000, planned, true);
        let at = (text.len() as f64 * at) as usize;
        text[at] = to;
        if let Ok(Some(log)) = parsed(&text) {
            prop_assert!(log.counts.accounted() <= log.planned());
        }
    }
}

#[test]
fn what_is_wrong_is_said() {
    let samples = samples(&[(1000, 2000); 30], 0);
    let text = String::from_utf8(log(&samples, 1_000_000, 30, true)).unwrap();
    let message = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        parsed(text.replacen(from, to, 1).as_bytes()).unwrap_err()
    };
    let wrong = message("\"executed\":10", "\"executed\":11");
    assert!(
        wrong.contains("holds 10 jobs, but its interval 11"),
        "{wrong}"
    );
    let wrong = message("\"skipped\":0,\"lost\":0", "\"skipped\":7,\"lost\":0");
    assert!(wrong.contains("more than the 30 planned"), "{wrong}");
    assert!(message("HISTFAAAA", "ZZZZFAAAA").contains("not a compressed V2 histogram"));
    assert!(message("Tag=execution_time", "Tag=x").contains("unknown metric `x`"));
    assert!(message(BEGIN, "#x ").contains("without its `#timecell-begin` line"));
    assert_eq!(parsed(b"").unwrap().map(|log| log.counts), None);
}

#[test]
fn a_log_of_an_earlier_version_is_read() {
    let samples = samples(&[(1000, 2000); 30], 0);
    let text = String::from_utf8(log(&samples, 1_000_000, 30, true)).unwrap();
    let old = text.replace("\"skipped\":", "\"missed\":");
    let read = parsed(old.as_bytes()).unwrap().unwrap();
    assert!(read.end.is_some() && !old.contains("skipped"));
}

#[test]
fn a_late_job_belongs_to_the_interval_that_is_open_and_a_stall_closes_one() {
    let mut collector = Collector::new(METRICS, GO, 1_000_000);
    let at = |index: u32, release: i64| Sample {
        index,
        release_ns: GO + release,
        start_ns: GO + release + 10,
        end_ns: GO + release + 20,
        ..Sample::default()
    };
    assert!(collector.take(&at(0, 0)).is_none());
    assert!(collector.close_if_over(GO + 2_500_000, 2_000_000).is_none());
    let text = collector.close_if_over(GO + 3_100_000, 2_000_000).unwrap();
    assert!(String::from_utf8_lossy(&text).contains("\"interval\":0,"));
    assert!(
        collector.take(&at(1, 500_000)).is_none(),
        "released in what is closed"
    );
    let text = collector.close().unwrap();
    assert!(String::from_utf8_lossy(&text).contains("\"interval\":1,"));
    assert_eq!(collector.counts().executed, 2);
}

/// Memory and the log's length do not grow with the number of jobs.
#[test]
fn the_worst_jobs_are_written_once() {
    let mut collector = Collector::new(METRICS, GO, 100_000_000);
    let mut longest = 0;
    let mut intervals = 0;
    for index in 0..200_000u32 {
        let release_ns = GO + i64::from(index) * 100_000;
        let latency = i64::from(index.wrapping_mul(2_654_435_761) >> 12);
        let sample = Sample {
            index,
            skipped: 0,
            release_ns,
            start_ns: release_ns + latency,
            end_ns: release_ns + latency * 2,
        };
        if let Some(text) = collector.take(&sample) {
            intervals += 1;
            if intervals > 100 {
                longest = longest.max(text.len());
            }
        }
    }
    assert_eq!(intervals, 199);
    // Some ten of a thousand jobs are among the worst thousand of a hundred thousand.
    assert!(longest < 24_000, "{longest}");
}

/// Logs from before threads counted their activations say nothing of it.
#[test]
fn a_log_of_an_older_timecell_is_read() {
    let text = String::from_utf8(log(&samples(&[(5, 7); 30], 0), 1_000_000, 30, true)).unwrap();
    let older = |line: &str| {
        let Some((head, json)) = line.split_once(" {\"magic\"") else {
            return line.to_owned();
        };
        let json = format!("{{\"magic\"{json}");
        let mut header: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&json).unwrap();
        let before = header.len();
        header.retain(|key, _| !key.starts_with("count") || key == "count");
        assert_eq!(before - header.len(), 7, "{line}");
        format!("{head} {}", serde_json::to_string(&header).unwrap())
    };
    let older: Vec<String> = text.lines().map(older).collect();
    assert_ne!(older.join("\n") + "\n", text);
    let read = parsed((older.join("\n") + "\n").as_bytes())
        .unwrap()
        .unwrap();
    assert_eq!((read.counts.executed, read.begin.counted), (30, 0));
    assert!(read.end.is_some());
}

/// Three seconds of jobs in intervals of a minute.
#[test]
fn the_last_interval_ends_with_the_run() {
    const ENDED: i64 = 3_000_100_000;
    let mut collector = Collector::new(METRICS, GO, 60_000_000_000);
    let mut header = Header::new();
    header.planned = 3;
    header.go_ns = GO;
    let mut text = collector.begin(&header, SystemTime::UNIX_EPOCH);
    for index in 0..3 {
        let release_ns = GO + i64::from(index) * 1_500_000_000;
        text.extend(
            collector
                .take(&Sample {
                    index,
                    skipped: 0,
                    release_ns,
                    start_ns: release_ns + 1_000,
                    end_ns: release_ns + 100_000,
                })
                .unwrap_or_default(),
        );
    }
    header.count = 3;
    header.complete = 1;
    header.ended_ns = GO + ENDED;
    text.extend(collector.end(&header));
    let log = parsed(&text).unwrap().unwrap();
    let spans: Vec<(i64, i64)> = (log.intervals.iter())
        .map(|interval| (interval.start_ns, interval.end_ns))
        .collect();
    let [(start, end)] = spans.as_slice() else {
        panic!("{spans:?}");
    };
    assert_eq!(end - start, ENDED);
}
