//! The box, its whiskers, and the values outside.

use crate::{Binned, Sorted};
use serde::{Deserialize, Serialize};

/// A box plot in nanoseconds (Tukey, "Exploratory Data Analysis", 1977): the box spans the quartiles, the whiskers
/// reach to the most extreme samples within 1.5 interquartile ranges of it, and the rest are outliers.
///
/// Quartiles are observed samples (see [`Sorted::nearest_rank`]). low whisker <= q1 <= median <= q3 <= high whisker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxPlot {
    /// The smallest sample that is not an outlier, in nanoseconds.
    pub low_whisker_ns: i64,
    /// The lower quartile in nanoseconds.
    pub q1_ns: i64,
    /// The median in nanoseconds.
    pub median_ns: i64,
    /// The upper quartile in nanoseconds.
    pub q3_ns: i64,
    /// The largest sample that is not an outlier, in nanoseconds.
    pub high_whisker_ns: i64,
    /// The outliers in nanoseconds, ascending; thinned, the most extreme always among them.
    pub outliers_ns: Vec<i64>,
    /// The number of outliers before thinning.
    pub outlier_count: u64,
}

impl BoxPlot {
    /// The box plot of binned samples: quartiles and whiskers are ends of bins, and each bin outside is drawn once,
    /// at its end away from the box.
    pub fn of_binned(binned: &Binned, max_outliers: usize) -> Option<Self> {
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|p| binned.nearest_rank(p));
        let (q1, median, q3) = (q1?, median?, q3?);
        let reach = 3 * (i128::from(q3) - i128::from(q1));
        let (low_fence, high_fence) = (2 * i128::from(q1) - reach, 2 * i128::from(q3) + reach);
        let below = |ns: i64| 2 * i128::from(ns) < low_fence;
        let above = |ns: i64| 2 * i128::from(ns) > high_fence;
        let inside = || {
            let bins = binned.bins().iter();
            bins.filter(move |bin| !below(bin.high_ns) && !above(bin.low_ns))
        };
        let out = binned
            .bins()
            .iter()
            .filter(|bin| below(bin.high_ns) || above(bin.low_ns));
        let outliers: Vec<i64> = out
            .clone()
            .map(|bin| {
                if below(bin.high_ns) {
                    bin.low_ns
                } else {
                    bin.high_ns
                }
            })
            .collect();
        Some(Self {
            low_whisker_ns: inside().next()?.low_ns.min(q1),
            q1_ns: q1,
            median_ns: median,
            q3_ns: q3,
            high_whisker_ns: inside().next_back()?.high_ns.max(q3),
            outlier_count: out.map(|bin| bin.count).sum(),
            outliers_ns: thin(outliers, max_outliers, median),
        })
    }

    /// The box plot of the samples, with at most `max_outliers` of its outliers; `None` when there is no sample.
    ///
    /// Thinning keeps the outermost quarter of `max_outliers` at each end, and every so-many-th between. Room for a
    /// single outlier goes to the one farther from the median.
    pub fn of(sorted: &Sorted, max_outliers: usize) -> Option<Self> {
        let samples = sorted.as_slice();
        let (q1, median, q3) = (
            sorted.nearest_rank(0.25)?,
            sorted.median_ns()?,
            sorted.nearest_rank(0.75)?,
        );
        // Doubled, so that 1.5 ranges stay an integer: 2·fence = 2·quartile ± 3·range.
        let reach = 3 * (i128::from(q3) - i128::from(q1));
        let (low_fence, high_fence) = (2 * i128::from(q1) - reach, 2 * i128::from(q3) + reach);
        let inside = samples.partition_point(|&sample| 2 * i128::from(sample) < low_fence);
        let above = samples.partition_point(|&sample| 2 * i128::from(sample) <= high_fence);

        let outliers: Vec<i64> = samples[..inside]
            .iter()
            .chain(&samples[above..])
            .copied()
            .collect();
        Some(Self {
            low_whisker_ns: samples[inside],
            q1_ns: q1,
            median_ns: median,
            q3_ns: q3,
            high_whisker_ns: samples[above - 1],
            outlier_count: outliers.len() as u64,
            outliers_ns: thin(outliers, max_outliers, median),
        })
    }
}

/// At most `room` of the outliers (ascending), see [`BoxPlot::of`].
fn thin(outliers: Vec<i64>, room: usize, median: i64) -> Vec<i64> {
    if outliers.len() <= room {
        return outliers;
    }
    let last = outliers.len() - 1;
    if room == 1 {
        let (low, high) = (outliers[0], outliers[last]);
        return vec![if low.abs_diff(median) > high.abs_diff(median) {
            low
        } else {
            high
        }];
    }
    let edge = room.div_ceil(4).min(room / 2);
    let (between, middle) = (room - 2 * edge, outliers.len() - 2 * edge);
    let low = 0..edge;
    let every = (0..between).map(|step| edge + (2 * step + 1) * middle / (2 * between));
    let high = outliers.len() - edge..outliers.len();
    low.chain(every)
        .chain(high)
        .map(|index| outliers[index])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(samples: Vec<i64>, max_outliers: usize) -> BoxPlot {
        BoxPlot::of(&Sorted::new(samples), max_outliers).unwrap()
    }

    /// Quartiles of 1..=8 with -20 and 100: ranks 3, 5 and 8 of ten, that is 2, 4, 7; range 5, fences -5.5 and 14.5.
    #[test]
    fn by_hand() {
        let plot = plot(vec![-20, 1, 2, 3, 4, 5, 6, 7, 8, 100], 10);
        assert_eq!((plot.q1_ns, plot.median_ns, plot.q3_ns), (2, 4, 7));
        assert_eq!((plot.low_whisker_ns, plot.high_whisker_ns), (1, 8));
        assert_eq!((plot.outliers_ns, plot.outlier_count), (vec![-20, 100], 2));
    }

    /// Quartiles 10 and 20 give fences -5 and 35: a sample on the fence is no outlier.
    #[test]
    fn the_fence_itself_is_inside() {
        let plot = plot(vec![-6, -5, 10, 10, 15, 20, 20, 35, 36], 10);
        assert_eq!((plot.q1_ns, plot.q3_ns), (10, 20));
        assert_eq!((plot.low_whisker_ns, plot.high_whisker_ns), (-5, 35));
        assert_eq!(plot.outliers_ns, [-6, 36]);
    }

    #[test]
    fn thinning_keeps_count_and_extremes() {
        let mut samples = vec![0; 10_000];
        samples.extend(1..=1_000);
        samples.push(-5);
        let plot = plot(samples, 40);
        assert_eq!(plot.outlier_count, 1_001);
        assert_eq!(plot.outliers_ns.len(), 40);
        assert_eq!(plot.outliers_ns[0], -5);
        assert_eq!(plot.outliers_ns[30..], (991..=1_000).collect::<Vec<_>>());
        assert!(plot.outliers_ns.is_sorted());
    }

    #[test]
    fn room_for_few_goes_to_the_farthest() {
        let mut samples = vec![0; 100];
        samples.extend([-9, -8, 3, 4]);
        assert!(plot(samples.clone(), 0).outliers_ns.is_empty());
        assert_eq!(plot(samples.clone(), 1).outliers_ns, [-9]);
        assert_eq!(plot(samples.clone(), 2).outliers_ns, [-9, 4]);
        assert_eq!(plot(samples, 3).outliers_ns, [-9, 3, 4]);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let plot = plot(vec![i64::MIN, i64::MIN, i64::MAX, i64::MAX], 4);
        assert_eq!(
            (
                plot.low_whisker_ns,
                plot.high_whisker_ns,
                plot.outlier_count
            ),
            (i64::MIN, i64::MAX, 0)
        );
        assert_eq!(BoxPlot::of(&Sorted::default(), 4), None);
    }
}
