//! Comparisons of rounds: estimates, intervals, and sides that cannot be compared.

use super::*;

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    }
}

/// Jobs around a median (nanoseconds), with a spread of ±1 %.
fn jobs(median: i64, count: i64) -> Vec<i64> {
    (0..count)
        .map(|job| median + median * ((job * 7919) % 201 - 100) / 10_000)
        .collect()
}

#[test]
fn the_estimate_is_the_geometric_mean_of_the_ratios_of_rounds() {
    let baseline = [jobs(1_000_000, 201), jobs(2_000_000, 201)];
    let other = [jobs(2_000_000, 201), jobs(16_000_000, 201)];
    let comparison = compare(&baseline, &other, &options()).unwrap();
    assert!(
        (comparison.ratio_of_medians.value - 4.0).abs() < 1e-3,
        "{comparison:?}"
    );
    assert_eq!(comparison.rounds, 2);
    assert_eq!(comparison.ratio_of_medians.verdict, Verdict::TooWide);
}

/// Without noise inside rounds the standard error is that of the mean of the logarithms alone: for three rounds with
/// ln-ratios -a, 0, a it tends to a · √(2/9), so that the half width is √1.5 · 4.30265 · √(2/9) · a = 2.4841 · a, the
/// classical interval t · s / √n.
#[test]
fn between_rounds_alone_the_interval_is_that_of_student() {
    let round = |value: f64| vec![value.round() as i64; 10];
    let (unit, step) = (1e12, 0.01_f64);
    let baseline = [round(unit), round(unit), round(unit)];
    let other = [
        round(unit * (-step).exp()),
        round(unit),
        round(unit * step.exp()),
    ];
    let options = CompareOptions {
        resamples: 40_000,
        ..CompareOptions::default()
    };
    let ratio = compare(&baseline, &other, &options)
        .unwrap()
        .ratio_of_medians;
    let half = (ratio.high.unwrap().ln() - ratio.low.unwrap().ln()) / 2.0;
    assert!((half / (2.4841 * step) - 1.0).abs() < 0.02, "{half}");
    assert!((ratio.value - 1.0).abs() < 1e-9);
}

#[test]
fn one_round_decides_nothing() {
    let comparison = compare(&[jobs(1_000, 400)], &[jobs(2_000, 400)], &options()).unwrap();
    for ratio in [
        comparison.ratio_of_medians,
        comparison.ratio_of_p99.unwrap(),
    ] {
        assert_eq!(
            (ratio.low, ratio.high, ratio.verdict),
            (None, None, Verdict::Undecided)
        );
        assert!((ratio.value - 2.0).abs() < 0.01);
    }
}

#[test]
fn p99_needs_its_samples_in_every_round() {
    let with = |count| {
        compare(
            &[jobs(1_000, 299), jobs(1_000, count)],
            &[jobs(1_000, 299), jobs(1_000, 299)],
            &options(),
        )
    };
    assert!(with(299).unwrap().ratio_of_p99.is_some());
    assert!(with(298).unwrap().ratio_of_p99.is_none());
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_seed_another() {
    let rounds = [jobs(1_000_000, 150), jobs(1_010_000, 150)];
    let other = [jobs(1_003_000, 150), jobs(1_001_000, 150)];
    let with = |seed| compare(&rounds, &other, &CompareOptions { seed, ..options() }).unwrap();
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn a_resample_without_logarithm_leaves_the_ratio_undecided() {
    // 49 zeros and 51 ones: the median is 1, but that of many resamples is 0.
    let samples: Vec<i64> = (0..100).map(|job| i64::from(job * 7 % 100 >= 49)).collect();
    let rounds = [samples.clone(), samples];
    let ratio = compare(&rounds, &rounds, &options())
        .unwrap()
        .ratio_of_medians;
    assert_eq!(
        (ratio.value, ratio.low, ratio.verdict),
        (1.0, None, Verdict::Undecided)
    );
}

#[test]
fn what_cannot_be_compared_says_why() {
    let good = || vec![vec![1], vec![2]];
    let error = |baseline: &[Vec<i64>], other: &[Vec<i64>]| {
        compare(baseline, other, &options()).unwrap_err()
    };
    assert_eq!(error(&[], &[]), CompareError::NoRounds);
    assert_eq!(
        error(&good(), &[vec![1]]),
        CompareError::UnequalRounds {
            baseline: 2,
            other: 1
        }
    );
    assert_eq!(
        error(&good(), &[vec![1], vec![]]),
        CompareError::EmptyRound {
            side: Side::Other,
            round: 1
        }
    );
    let wrong = error(&[vec![1], vec![-3]], &good());
    assert_eq!(
        wrong,
        CompareError::NonPositiveMedian {
            side: Side::Baseline,
            round: 1,
            median_ns: -3
        }
    );
    assert_eq!(
        wrong.to_string(),
        "the median of round 1 of the baseline is -3 ns; a ratio needs positive medians"
    );
    let zero = CompareError::NonPositiveMedian {
        side: Side::Other,
        round: 0,
        median_ns: 0,
    };
    assert_eq!(error(&good(), &[vec![0], vec![2]]), zero);
    for confidence in [0.0, 1.0, f64::NAN] {
        let options = CompareOptions {
            confidence,
            ..options()
        };
        assert_eq!(
            compare(&good(), &good(), &options),
            Err(CompareError::Confidence)
        );
    }
    let few = CompareOptions {
        resamples: 99,
        ..options()
    };
    assert_eq!(
        compare(&good(), &good(), &few),
        Err(CompareError::Resamples { resamples: 99 })
    );
}

#[test]
fn the_record_reads_back() {
    let comparison = compare(&[jobs(1_000, 10)], &[jobs(1_000, 10)], &options()).unwrap();
    let text = serde_json::to_string(&comparison).unwrap();
    assert!(
        text.contains("\"verdict\":\"undecided\"") && text.contains("\"low\":null"),
        "{text}"
    );
    assert_eq!(
        serde_json::from_str::<Comparison>(&text).unwrap(),
        comparison
    );
}
