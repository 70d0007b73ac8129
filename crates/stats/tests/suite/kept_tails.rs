//! Tails of which only the largest jobs and figures of intervals were kept, from made-up jobs whose truth is known.
//! Every simulation is seeded, so each test gives one fixed answer.

use crate::{margin, repetitions};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use timecell_stats::{KeptInterval, KeptRound, Refusal, Tail, TailRound, median_of};

const KEPT: usize = 1_000;

/// The record that a histogram run would keep of these jobs.
fn kept(jobs: &[i64], interval_jobs: usize) -> KeptRound {
    let mut largest: Vec<(u32, i64)> = (0..).zip(jobs.iter().copied()).collect();
    largest.sort_by_key(|(at, value)| (std::cmp::Reverse(*value), *at));
    largest.truncate(KEPT);
    let left_out_ns = largest.last().map(|(_, value)| *value);
    let all = largest.len() == jobs.len();
    largest.sort_unstable();
    let intervals = jobs.chunks_exact(interval_jobs).map(|jobs| KeptInterval {
        jobs: jobs.len() as u64,
        median_ns: median_of(jobs).unwrap(),
        max_ns: *jobs.iter().max().unwrap(),
    });
    KeptRound {
        jobs: jobs.len() as u64,
        span: jobs.len() as u32,
        largest,
        left_out_ns: left_out_ns.filter(|_| !all),
        intervals: intervals.collect(),
    }
}

fn study(rounds: &[Vec<i64>], interval_jobs: usize, lost: u64) -> Tail {
    let kept: Vec<KeptRound> = rounds
        .iter()
        .map(|jobs| kept(jobs, interval_jobs))
        .collect();
    let median = median_of(&rounds.concat()).unwrap();
    Tail::of_kept(&kept, median, lost, 7).unwrap()
}

fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    1.0 - random.random::<f64>()
}

/// Independent jobs: 100 us and an exponential part of 10 us in the mean.
fn exponential(random: &mut Xoshiro256PlusPlus, count: usize) -> Vec<i64> {
    (0..count)
        .map(|_| (100_000.0 - 10_000.0 * uniform(random).ln()) as i64)
        .collect()
}

/// Of many cells that meet every assumption nearly all get a curve, and nearly all bands hold the truth.
#[test]
fn the_largest_jobs_are_enough_for_a_curve() {
    let (cells, jobs) = (repetitions(60), 100_000);
    let (mut given, mut held) = (0.0, 0.0);
    for seed in 0..cells {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rounds: Vec<Vec<i64>> = (0..2).map(|_| exponential(&mut random, jobs)).collect();
        let tail = study(&rounds, 1_000, 0);
        assert_eq!(tail.jobs, 200_000);
        let kept = tail.kept.unwrap();
        assert!((1_500..2_000).contains(&kept), "{kept}");
        let Some(last) = tail.curve.last() else {
            continue;
        };
        given += 1.0;
        assert!((last.probability * 2e6 - 1.0).abs() < 1e-9, "{last:?}");
        let truth = 100_000.0 + 10_000.0 * 2e6_f64.ln();
        held += f64::from(u8::from((last.low_ns..=last.high_ns).contains(&truth)));
    }
    // The tests refuse a few in a hundred by chance each.
    let least = (0.9 - margin(0.1)) * cells as f64;
    assert!(given >= least, "{given} of {cells}");
    let least = (0.95 - margin(0.1)) * given;
    assert!(held >= least, "{held} of {given}");
}

/// Above the largest value that was left out nothing is missing: the law is the one that all jobs give.
#[test]
fn where_all_jobs_choose_a_threshold_among_those_kept_the_law_is_the_same() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let jobs = exponential(&mut random, 9_000);
    let activations: Vec<u32> = (0..9_000).collect();
    let round = TailRound {
        activations: &activations,
        values_ns: &jobs,
        releases_ns: &[],
    };
    let raw = Tail::of(&[round], 7).unwrap().peaks.unwrap();
    let kept = study(&[jobs], 45, 0).peaks.unwrap();
    assert!(raw.exceedances <= 900);
    assert!(kept.exceedances <= raw.exceedances.max(900));
    assert!((kept.shape - raw.shape).abs() < 0.15, "{kept:?} {raw:?}");
    if kept.threshold_ns == raw.threshold_ns {
        assert_eq!((kept.shape, kept.scale_ns), (raw.shape, raw.scale_ns));
    }
}

#[test]
fn a_round_with_a_higher_level_sets_the_threshold_of_all() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    let quiet = exponential(&mut random, 50_000);
    let loud: Vec<i64> = exponential(&mut random, 50_000)
        .iter()
        .map(|value| value * 2)
        .collect();
    let tail = study(&[quiet.clone(), loud.clone()], 500, 0);
    let threshold = tail.peaks.map_or(f64::INFINITY, |peaks| peaks.threshold_ns);
    let mut sorted = loud;
    sorted.sort_unstable();
    assert!(threshold >= sorted[sorted.len() - KEPT] as f64);
    let differ = |r: &Refusal| matches!(r, Refusal::RoundsDiffer { .. });
    assert!(tail.refusals.iter().any(differ), "{:?}", tail.refusals);
    assert!(tail.curve.is_empty());
}

#[test]
fn a_spike_far_rarer_than_a_job_in_a_thousand_is_found_among_the_largest() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut jobs = exponential(&mut random, 1_000_000);
    for at in (700..jobs.len()).step_by(4_500) {
        jobs[at] += 900_000;
    }
    let tail = study(&[jobs], 5_000, 0);
    let spikes = tail.spikes.unwrap();
    assert!((spikes.period_jobs - 4_500.0).abs() < 1.0, "{spikes:?}");
    assert!(spikes.in_phase >= 220, "{spikes:?}");
    assert!(tail.refusals.contains(&Refusal::Periodic));
    assert!(tail.curve.is_empty());
}

#[test]
fn what_was_lost_may_be_the_longest() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(6);
    let jobs = [exponential(&mut random, 50_000)];
    assert!(!study(&jobs, 500, 0).curve.is_empty());
    let tail = study(&jobs, 500, 3);
    assert_eq!(tail.refusals, [Refusal::Lost { lost: 3 }]);
    assert!(tail.curve.is_empty() && tail.peaks.is_some());
}

#[test]
fn without_enough_intervals_nothing_says_that_jobs_are_independent() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let tail = study(&[exponential(&mut random, 50_000)], 2_500, 0);
    assert!(
        matches!(tail.refusals[..], [Refusal::FewBlocks { blocks: 20, .. }]),
        "{:?}",
        tail.refusals
    );
}

#[test]
fn drift_and_regimes_show_in_the_intervals() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut jobs = exponential(&mut random, 100_000);
    for value in &mut jobs[50_000..] {
        *value += 30_000;
    }
    let drifting = study(&[jobs.clone()], 500, 0);
    let drift = |r: &Refusal| matches!(r, Refusal::Drift { .. });
    assert!(
        drifting.refusals.iter().any(drift),
        "{:?}",
        drifting.refusals
    );
    for (at, value) in jobs.iter_mut().enumerate() {
        // 20 intervals fast, 20 slow.
        *value += if at / 10_000 % 2 == 1 { 900_000 } else { 0 };
    }
    let tail = study(&[jobs], 500, 0);
    let states = tail.states.unwrap();
    assert!((states.slow.share - 0.5).abs() < 0.05, "{states:?}");
    assert!(
        (states.slow.dwell_jobs - 10_000.0).abs() < 1_500.0,
        "{states:?}"
    );
    assert!(tail.refusals.contains(&Refusal::OwnStates));
}

#[test]
fn of_nothing_nothing_is_said() {
    assert_eq!(Tail::of_kept(&[], 0, 0, 1), None);
    let few = study(&[vec![5; 10]], 5, 0);
    assert!(matches!(
        few.refusals[..],
        [Refusal::FewJobs { jobs: 10, .. }]
    ));
    let constant = study(&[vec![5_000; 4_000]], 40, 0);
    assert!(constant.curve.is_empty() && constant.spikes.is_none());
    let text = serde_json::to_string(&constant).unwrap();
    assert_eq!(serde_json::from_str::<Tail>(&text).unwrap(), constant);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// For any record, no input panics, no number is NaN, and there is a curve or a reason.
    #[test]
    fn anything_goes(
        seed in any::<u64>(),
        kind in 0..5,
        count in 1_i64..4_000,
        interval in 1_usize..300,
        span in any::<u32>(),
        left_out in prop::option::of(any::<i64>()),
    ) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let jobs: Vec<i64> = (0..count)
            .map(|job| match kind {
                0 => random.random::<i64>(),
                1 => random.random_range(-3..3),
                2 => if job % 2 == 0 { i64::MIN } else { i64::MAX },
                3 => job * 1_000,
                _ => (1e5 * uniform(&mut random).powf(-0.3)) as i64,
            })
            .collect();
        let mut round = kept(&jobs, interval);
        round.span = span;
        round.left_out_ns = left_out.or(round.left_out_ns);
        let rounds = [round.clone(), round];
        let tail = Tail::of_kept(&rounds, jobs[0], 0, seed).unwrap();
        prop_assert_eq!(&Some(tail.clone()), &Tail::of_kept(&rounds, jobs[0], 0, seed));
        prop_assert_eq!(tail.curve.is_empty(), !tail.refusals.is_empty());
        let text = serde_json::to_string(&tail).unwrap();
        prop_assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
