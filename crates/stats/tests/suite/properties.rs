//! Properties of every input, the extremes of `i64` included.

use proptest::collection::vec;
use proptest::prelude::*;
use timecell_stats::*;

/// Any samples: small ones with many ties, any at all, and the ends of the range.
fn samples(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<i64>> {
    let sample =
        prop_oneof![4 => -5..5_i64, 4 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    vec(sample, length)
}

fn rounds(sample: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = [Vec<Vec<i64>>; 2]> {
    (1..5_usize, 1..30_usize).prop_flat_map(move |(rounds, jobs)| {
        let side = || vec(vec(sample.clone(), jobs), rounds);
        [side(), side()]
    })
}

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    }
}

fn check_ratio(ratio: &Ratio) {
    assert!(ratio.value.is_finite() && ratio.value > 0.0);
    assert_eq!(ratio.low.is_none(), ratio.high.is_none());
    assert_eq!(ratio.low.is_none(), ratio.verdict == Verdict::Undecided);
    if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
        assert!(low > 0.0 && high.is_finite(), "{ratio:?}");
        assert!(
            low <= ratio.value * (1.0 + 1e-12) && ratio.value <= high * (1.0 + 1e-12),
            "{ratio:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_quantile_lies_within_its_interval_and_the_interval_within_the_sample(
        samples in samples(1..400), probability in 0.001..0.999_f64, confidence in 0.01..0.999_f64,
    ) {
        let sorted = Sorted::new(samples);
        let quantile = Quantile::of(&sorted, probability, confidence).unwrap();
        let enough = sorted.len() as u64 >= quantile.needed_count;
        prop_assert_eq!([quantile.low_ns, quantile.value_ns, quantile.high_ns].map(|end| end.is_some()), [enough; 3]);
        if let (Some(low), Some(value), Some(high)) = (quantile.low_ns, quantile.value_ns, quantile.high_ns) {
            prop_assert!(low <= value && value <= high);
            prop_assert!(sorted.as_slice().binary_search(&low).is_ok() && sorted.as_slice().binary_search(&high).is_ok());
        }
    }

    #[test]
    fn the_needed_count_is_enough_and_one_less_is_not(probability in 0.001..0.999_f64, confidence in 0.01..0.999_f64) {
        let needed = needed_count(probability, confidence).unwrap();
        let covered = |count: u64| 1.0 - probability.powf(count as f64) - (1.0 - probability).powf(count as f64);
        prop_assert!(covered(needed) >= confidence - 1e-12);
        prop_assert!(covered(needed - 1) <= confidence + 1e-12);
    }

    #[test]
    fn a_summary_is_ordered_finite_and_blind_to_order(samples in samples(1..400), turn in any::<prop::sample::Index>()) {
        let summary = Summary::of(&Sorted::new(samples.clone())).unwrap();
        prop_assert!(summary.min_ns <= summary.median_ns && summary.median_ns <= summary.max_ns);
        prop_assert!(summary.min_ns as f64 <= summary.mean_ns && summary.mean_ns <= summary.max_ns as f64);
        let values: Vec<i64> = summary.quantiles.iter().filter_map(|quantile| quantile.value_ns).collect();
        prop_assert!(values.is_sorted());
        let derived = [summary.sd_ns, summary.coefficient_of_variation, summary.tail_ratio_p95, summary.tail_ratio_p99];
        prop_assert!(derived.iter().flatten().all(|number| number.is_finite() && *number >= 0.0));

        let mut turned = samples;
        let by = turn.index(turned.len());
        turned.rotate_left(by);
        turned.reverse();
        let again = Summary::of(&Sorted::new(turned.clone())).unwrap();
        prop_assert_eq!(median_of(&turned), Some(again.median_ns));
        prop_assert_eq!(summary, again);
    }

    #[test]
    fn a_ccdf_descends_from_one_is_exact_and_ends_at_the_largest(samples in samples(1..600), room in 0..300_usize) {
        let sorted = Sorted::new(samples);
        let points = ccdf(&sorted, room);
        prop_assert!(points.len() <= room);
        prop_assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1));
        for &(value, probability) in &points {
            let reached = sorted.as_slice().iter().filter(|&&sample| sample >= value).count();
            prop_assert_eq!(probability, reached as f64 / sorted.len() as f64);
        }
        if room >= 1 {
            prop_assert_eq!(points.last().unwrap().0, *sorted.as_slice().last().unwrap());
        }
        if room >= 2 {
            prop_assert_eq!(points[0], (sorted.as_slice()[0], 1.0));
        }
        if room > CCDF_TAIL {
            let largest = &sorted.as_slice()[sorted.len().saturating_sub(CCDF_TAIL)..];
            // A value whose ties reach beyond the largest hundred need not be kept, unless it is the largest of all.
            let tied = |value: &i64| sorted.as_slice().iter().filter(|sample| *sample >= value).count() > CCDF_TAIL;
            prop_assert!(largest.iter().all(|value| tied(value) || points.iter().any(|point| point.0 == *value)));
        }
    }

    #[test]
    fn a_box_plot_is_ordered_and_keeps_the_extremes(samples in samples(1..300), room in 0..40_usize) {
        let sorted = Sorted::new(samples);
        let plot = BoxPlot::of(&sorted, room).unwrap();
        let marks = [plot.low_whisker_ns, plot.q1_ns, plot.median_ns, plot.q3_ns, plot.high_whisker_ns];
        prop_assert!(marks.is_sorted());
        prop_assert_eq!(plot.outliers_ns.len() as u64, plot.outlier_count.min(room as u64));
        prop_assert!(plot.outliers_ns.is_sorted());
        let outside = |value: &i64| *value < plot.low_whisker_ns || *value > plot.high_whisker_ns;
        let count = sorted.as_slice().iter().filter(|sample| outside(sample)).count();
        prop_assert_eq!(plot.outlier_count, count as u64);
        prop_assert!(plot.outliers_ns.iter().all(outside));
        if room >= 2 {
            let ends = [sorted.as_slice()[0], sorted.as_slice()[sorted.len() - 1]];
            prop_assert!(ends.iter().filter(|end| outside(end)).all(|end| plot.outliers_ns.contains(end)));
        }
    }

    #[test]
    fn a_thinned_series_loses_no_extreme_and_no_point(
        times in samples(1..200), values in samples(200..201), buckets in 1..50_usize,
    ) {
        let points: Vec<(i64, i64)> = times.into_iter().zip(values).collect();
        let thinned = thin_series(&points, buckets);
        prop_assert!(thinned.len() <= buckets);
        prop_assert!(thinned.windows(2).all(|pair| pair[0].start_ns < pair[1].start_ns));
        prop_assert_eq!(thinned.iter().map(|bucket| bucket.count).sum::<u64>(), points.len() as u64);
        for (index, bucket) in thinned.iter().enumerate() {
            let end = thinned.get(index + 1).map(|next| next.start_ns);
            let within = |time: i64| time >= bucket.start_ns && end.is_none_or(|end| time < end);
            let values = || points.iter().filter(|point| within(point.0)).map(|point| point.1);
            prop_assert_eq!((Some(bucket.min_ns), Some(bucket.max_ns)), (values().min(), values().max()));
        }
    }

    #[test]
    fn autocorrelation_is_a_correlation(samples in samples(0..200), lag in 0..220_usize) {
        if let Some(correlation) = autocorrelation(&samples, lag) {
            prop_assert!((-1.0..=1.0).contains(&correlation));
        }
    }

    #[test]
    fn skew_is_blind_to_order(mut starts in samples(0..50)) {
        let skew = skew_ns(&starts);
        starts.reverse();
        prop_assert_eq!(skew_ns(&starts), skew);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_comparison_panics_or_leaves_the_numbers(sides in rounds(prop_oneof![any::<i64>(), 1..i64::MAX, Just(1), Just(i64::MAX)])) {
        if let Ok(comparison) = compare(&sides[0], &sides[1], &options()) {
            check_ratio(&comparison.ratio_of_medians);
        }
    }

    /// Swapping the sides inverts the estimate exactly, and the width of the interval up to the noise of resampling.
    #[test]
    fn swapped_sides_give_the_inverse(sides in rounds(900_000..1_100_000_i64)) {
        let [baseline, other] = sides;
        let there = compare(&baseline, &other, &options()).unwrap().ratio_of_medians;
        let back = compare(&other, &baseline, &options()).unwrap().ratio_of_medians;
        prop_assert!((there.value * back.value - 1.0).abs() < 1e-12);
        let width = |ratio: &Ratio| Some((ratio.high?.ln() - ratio.low?.ln()) / 2.0);
        if let (Some(there), Some(back)) = (width(&there), width(&back)) {
            prop_assert!((there - back).abs() <= 0.5 * there.max(back), "{there} {back}");
        }
    }

    #[test]
    fn a_thing_is_within_noise_of_itself(sides in rounds(1..1_000_000_i64)) {
        let ratio = compare(&sides[0], &sides[0], &options()).unwrap().ratio_of_medians;
        prop_assert_eq!(ratio.value, 1.0);
        prop_assert!(matches!(ratio.verdict, Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided));
    }
}
