//! A long time series made short enough to draw, without losing a spike.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The jobs of one span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesBucket {
    /// The start of the span in nanoseconds, on the clock of the series.
    pub start_ns: i64,
    /// The smallest value within the span, in nanoseconds.
    pub min_ns: i64,
    /// The largest value within the span, in nanoseconds.
    pub max_ns: i64,
    /// The number of points within the span, at least 1.
    pub count: u64,
}

/// Divides the time from the first to the last point into at most `buckets` spans of equal length, and gives the
/// smallest and largest value of each (min-max decimation): every spike and every dip survives.
///
/// Points are (time in nanoseconds, value in nanoseconds) in any order. Spans come in ascending order; spans without
/// a point are left out, so a gap stays a gap. Empty when there is no point or `buckets` is 0.
pub fn thin_series(points: &[(i64, i64)], buckets: usize) -> Vec<SeriesBucket> {
    let times = || points.iter().map(|&(time, _)| i128::from(time));
    let (Some(first), Some(last), true) = (times().min(), times().max(), buckets > 0) else {
        return Vec::new();
    };
    let length = (last - first) / buckets as i128 + 1;

    let mut spans = BTreeMap::<i128, SeriesBucket>::new();
    for &(time, value) in points {
        let start = i128::from(time) - (i128::from(time) - first) % length;
        let empty = SeriesBucket {
            start_ns: start as i64,
            min_ns: value,
            max_ns: value,
            count: 0,
        };
        let span = spans.entry(start).or_insert(empty);
        span.min_ns = span.min_ns.min(value);
        span.max_ns = span.max_ns.max(value);
        span.count += 1;
    }
    spans.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(start_ns: i64, min_ns: i64, max_ns: i64, count: u64) -> SeriesBucket {
        SeriesBucket {
            start_ns,
            min_ns,
            max_ns,
            count,
        }
    }

    /// Times 100..=119 in four spans of five; nothing happens in the third.
    #[test]
    fn by_hand() {
        let points = [(100, 5), (104, 90), (101, 6), (105, 7), (109, 1), (119, 8)];
        let wanted = [
            bucket(100, 5, 90, 3),
            bucket(105, 1, 7, 2),
            bucket(115, 8, 8, 1),
        ];
        assert_eq!(thin_series(&points, 4), wanted);
    }

    #[test]
    fn a_single_spike_in_a_million_survives() {
        let mut points: Vec<(i64, i64)> = (0..1_000_000).map(|time| (time * 1_000, 50)).collect();
        points[314_159].1 = 4_000_000;
        let thinned = thin_series(&points, 500);
        assert_eq!(thinned.len(), 500);
        let spikes: Vec<_> = thinned.iter().filter(|bucket| bucket.max_ns > 50).collect();
        assert_eq!(spikes.len(), 1);
        assert!((spikes[0].start_ns..spikes[0].start_ns + 2_000_000).contains(&314_159_000));
    }

    #[test]
    fn degenerate_series() {
        assert_eq!(thin_series(&[], 5), []);
        assert_eq!(thin_series(&[(1, 1)], 0), []);
        assert_eq!(thin_series(&[(7, 1), (7, 3)], 5), [bucket(7, 1, 3, 2)]);
        let whole = [(i64::MIN, 1), (i64::MAX, 2)];
        assert_eq!(thin_series(&whole, 1), [bucket(i64::MIN, 1, 2, 2)]);
        assert_eq!(
            thin_series(&whole, 2),
            [bucket(i64::MIN, 1, 1, 1), bucket(0, 2, 2, 1)]
        );
        assert_eq!(thin_series(&whole, usize::MAX).len(), 2);
    }
}
