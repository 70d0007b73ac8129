//! Turns on simulated machines: how often the interval encloses the true ratio, and how wide it is.

use crate::simulated::{FACTOR, Layout, MACHINES, Machine, simulate};

/// 200 repetitions of an exact 95 % interval have a standard deviation of 1.5 %.
#[test]
fn turns_cover_on_every_machine() {
    for machine in MACHINES {
        let layout = Layout {
            states: false,
            ..Layout::default()
        };
        let mut scores = simulate(machine, 1.02, 200, &layout);
        for (what, score) in [("medians", &mut scores.turns), ("p99", &mut scores.p99)] {
            let coverage = score.coverage();
            assert!(
                (0.91..=0.99).contains(&coverage),
                "{machine:?} {what}: {coverage}"
            );
        }
        assert!(scores.turns.median_half() < 0.03, "{machine:?}");
    }
}

#[test]
fn within_a_state_the_ratio_is_known_far_better_than_over_all_jobs() {
    let mut scores = simulate(Machine::States(FACTOR), 1.02, 100, &Layout::default());
    assert_eq!(scores.found, 100);
    for score in [&mut scores.fast, &mut scores.slow] {
        assert!(
            (0.89..=1.0).contains(&score.coverage()),
            "{}",
            score.coverage()
        );
        assert!(score.median_half() < 0.002, "{}", score.median_half());
    }
    for score in [&mut scores.share, &mut scores.difference] {
        assert!(
            (0.88..=1.0).contains(&score.coverage()),
            "{}",
            score.coverage()
        );
        assert!(score.median_half() < 0.04, "{}", score.median_half());
    }
    assert!(scores.turns.median_half() > 2.0 * scores.fast.median_half());
}

/// The baseline and its repetition together: three quarters of the variance, whatever each creation of a cell adds to its level. 150
/// repetitions of an exact 95 % interval have a standard deviation of 1.8 %.
#[test]
fn a_pooled_baseline_keeps_coverage_and_narrows_the_interval() {
    for creation in [0.0, 0.01] {
        let layout = Layout {
            creation,
            ..Layout::default()
        };
        let mut scores = simulate(Machine::States(1.25), 1.02, 150, &layout);
        for (what, one, pooled) in [
            ("all", &mut scores.turns, &mut scores.pooled.turns),
            ("fast", &mut scores.fast, &mut scores.pooled.fast),
            ("slow", &mut scores.slow, &mut scores.pooled.slow),
        ] {
            let coverage = pooled.coverage();
            assert!(
                (0.90..=0.99).contains(&coverage),
                "{creation} {what}: {coverage}"
            );
            let part = pooled.median_half() / one.median_half();
            assert!((0.80..=0.93).contains(&part), "{creation} {what}: {part}");
        }
    }
}

/// An arm that is slower is no state of the machine, and neither is drift, a burst now and then, or a late wake-up.
#[test]
fn one_state_is_not_taken_for_two() {
    for (machine, ratio) in [
        (Machine::Quiet, 1.0),
        (Machine::Quiet, 1.5),
        (Machine::Drift, 1.5),
        (Machine::WakeUps, 1.5),
    ] {
        assert_eq!(
            simulate(machine, ratio, 20, &Layout::default()).found,
            0,
            "{machine:?} {ratio}"
        );
    }
}
