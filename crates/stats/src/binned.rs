//! Samples of which only the bin is known.

use crate::sorted::rank;

/// So many samples within two bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// No sample of the bin is smaller, ns.
    pub low_ns: i64,
    /// No sample of the bin is larger, ns.
    pub high_ns: i64,
    /// The number of samples, at least 1.
    pub count: u64,
}

/// Bins in ascending order, with the exact smallest and largest sample as their outer ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binned {
    bins: Vec<Bin>,
    /// Samples up to and including each bin.
    reached: Vec<u64>,
}

impl Binned {
    /// From bins (any order, not overlapping; empty ones are dropped) and the exact extremes of their samples in ns.
    pub fn new(mut bins: Vec<Bin>, min_ns: i64, max_ns: i64) -> Self {
        bins.retain(|bin| bin.count > 0 && bin.low_ns <= bin.high_ns);
        bins.sort_unstable_by_key(|bin| bin.low_ns);
        if let Some(first) = bins.first_mut() {
            first.low_ns = min_ns.min(first.high_ns);
        }
        if let Some(last) = bins.last_mut() {
            last.high_ns = max_ns.max(last.low_ns);
        }
        let mut sum = 0u64;
        let reached = bins.iter().map(|bin| {
            sum = sum.saturating_add(bin.count);
            sum
        });
        let reached = reached.collect();
        Self { bins, reached }
    }

    /// The bins, ascending.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The number of samples.
    pub fn len(&self) -> u64 {
        self.reached.last().copied().unwrap_or(0)
    }

    /// Whether there is no sample at all.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The smallest sample in ns.
    pub fn min_ns(&self) -> Option<i64> {
        Some(self.bins.first()?.low_ns)
    }

    /// The largest sample in ns.
    pub fn max_ns(&self) -> Option<i64> {
        Some(self.bins.last()?.high_ns)
    }

    /// The bin that holds the sample of this rank, counted from 1 in ascending order.
    pub fn of_rank(&self, rank: u64) -> Option<&Bin> {
        let place = self.reached.partition_point(|&reached| reached < rank);
        self.bins.get(place)
    }

    /// The upper end of the bin that holds [`Sorted::nearest_rank`](crate::Sorted::nearest_rank), in ns: never below
    /// the sample itself. `None` when there is no sample or `probability` is outside 0..=1.
    pub fn nearest_rank(&self, probability: f64) -> Option<i64> {
        (0.0..=1.0).contains(&probability).then_some(())?;
        let rank = rank(usize::try_from(self.len()).ok()?, probability)?;
        Some(self.of_rank(rank as u64)?.high_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxPlot, Sorted, Summary, ccdf, ccdf_binned};
    use proptest::prelude::*;

    /// Bins as wide as the power of two below a thousandth of their values.
    fn binned(samples: &[i64]) -> Binned {
        let bins = samples.iter().map(|&sample| {
            let width = 1i64 << (sample.max(1).ilog2().saturating_sub(10));
            let low_ns = sample.max(0) / width * width;
            (low_ns, low_ns + width - 1)
        });
        let mut counts = std::collections::BTreeMap::<(i64, i64), u64>::new();
        bins.for_each(|bin| *counts.entry(bin).or_default() += 1);
        let bins = counts.into_iter().map(|((low_ns, high_ns), count)| Bin {
            low_ns,
            high_ns,
            count,
        });
        let (min, max) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
        Binned::new(bins.collect(), *min, *max)
    }

    fn samples() -> impl Strategy<Value = Vec<i64>> {
        let sample = prop_oneof![
            1i64..5_000,
            1_000_000i64..1_100_000,
            -3i64..2,
            1i64..1 << 40
        ];
        prop::collection::vec(sample, 1..800)
    }

    proptest! {
        /// Every figure is that of the samples, but for the width of a bin: at most 1/1024 of its values.
        #[test]
        fn as_from_the_samples_within_the_width_of_a_bin(samples in samples()) {
            let binned = binned(&samples);
            let exact = Sorted::new(samples.clone());
            let whole = Summary::of(&exact).unwrap();
            let ours = Summary::of_binned(&binned, whole.mean_ns, whole.sd_ns).unwrap();
            prop_assert_eq!((ours.count, ours.min_ns, ours.max_ns), (whole.count, whole.min_ns, whole.max_ns));
            let near = |ours: i64, exact: i64| {
                (exact..=exact + exact.max(0) / 1024 + i64::from(exact < 0) * 3).contains(&ours)
            };
            prop_assert!(near(ours.median_ns, whole.median_ns), "{} {}", ours.median_ns, whole.median_ns);
            for (ours, exact) in ours.quantiles.iter().zip(&whole.quantiles) {
                prop_assert_eq!(ours.value_ns.is_some(), exact.value_ns.is_some());
                if let (Some(o), Some(e)) = (ours.value_ns, exact.value_ns) {
                    prop_assert!(near(o, e), "{} {}", o, e);
                    prop_assert!(ours.low_ns <= exact.low_ns && ours.high_ns >= exact.high_ns);
                    prop_assert!(ours.low_ns <= ours.value_ns && ours.value_ns <= ours.high_ns);
                }
            }
        }

        /// Each point of the curve is a share of samples that do reach its value.
        #[test]
        fn the_curve_tells_true_shares(samples in samples()) {
            let curve = ccdf_binned(&binned(&samples), usize::MAX);
            prop_assert_eq!(curve.first().map(|p| p.1), Some(1.0));
            prop_assert_eq!(curve.last().map(|p| p.0), samples.iter().max().copied());
            for pair in curve.windows(2) {
                prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1, "{:?}", curve);
            }
            let n = samples.len() as f64;
            let last = curve.len() - 1;
            for &(value, share) in &curve[..last] {
                let reach = samples.iter().filter(|&&s| s >= value).count() as f64 / n;
                prop_assert!((reach - share).abs() < 1e-12, "{} {} {}", value, reach, share);
            }
            prop_assert!(ccdf(&Sorted::new(samples), 5).len() <= 5 && ccdf_binned(&Binned::default(), 5).is_empty());
        }

        #[test]
        fn the_box_is_in_order(samples in samples()) {
            let plot = BoxPlot::of_binned(&binned(&samples), 20).unwrap();
            let ends = [plot.low_whisker_ns, plot.q1_ns, plot.median_ns, plot.q3_ns, plot.high_whisker_ns];
            prop_assert!(ends.is_sorted(), "{:?}", ends);
            prop_assert!(plot.outliers_ns.len() <= 20);
        }
    }
}
