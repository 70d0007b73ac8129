//! Arms that took turns on the same cpu: is one slower than another, by turns that lay beside each other in time?
//!
//! Whole rounds of one thing after another average over all that the machine does for seconds: a neighbour on the sibling
//! thread, heat, a clock that steps down. Turns of some milliseconds meet the same machine, so the ratio of two
//! neighbouring turns is free of it, and a round has hundreds of such pairs. A lap is one turn of each arm; the k-th turns
//! of two arms in a round belong to the same lap.
//!
//! Turns of a round share the draw of its cells' creation (pages, caches, addresses) and are correlated with their
//! neighbours. Rounds are neither, if cells are recreated in each. Intervals are therefore those of the rounds' means: the
//! method of batch means (Law and Carson, "A sequential procedure for determining the length of a steady-state simulation",
//! Operations Research 27(5), 1979) with rounds as batches. It needs no model of the correlation within.

mod looks;
mod pilot;
mod planted;
mod states;

pub use looks::confidence_of_each_look;
pub use pilot::{Foreseen, Planned, foreseen_half_width};
pub use planted::PLANTED_FACTOR;
pub use states::{States, WithinStates};

use crate::compare::{CompareError, Comparison, Ratio, Side};
use crate::{DEFAULT_CONFIDENCE, Sorted, median_of, needed_count};

/// One turn of one arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The arm of the turn: an index, the same in all rounds.
    pub arm: usize,
    /// Its jobs' values in nanoseconds, in the order recorded, without those that are dropped to let it settle.
    pub values_ns: Vec<i64>,
}

/// Compares two arms by their turns (outer index: round; within it turns in the order of time).
///
/// The ratio of medians is the geometric mean over rounds of the geometric mean over laps of (median of the other's turn /
/// median of the baseline's). Laps in which one of the two has no jobs are left out, and so are rounds without another lap. The ratio of 99th percentiles is the geometric
/// mean over rounds of those of all jobs of a round; rounds in which a stall left too few jobs to bound it are left out, as long as three
/// remain. Both intervals are Student's for the mean of the rounds' logarithms.
///
/// Several baselines are equals, each with cells of its own: a round's ratio is the geometric mean of those to each of them that it can be
/// compared with. Of the baseline's part in the interval's square, n of them leave an n-th.
///
/// # Errors
/// When no round has a lap with jobs of both, or the median of a turn is not positive.
pub fn compare_turns(
    rounds: &[Vec<Turn>],
    baselines: &[usize],
    other: usize,
    confidence: f64,
) -> Result<Comparison, CompareError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(CompareError::Confidence);
    }
    let (mut medians, mut p99) = (Vec::new(), Vec::new());
    for (round, turns) in rounds.iter().enumerate() {
        let log = round_log(turns, baselines, other).map_err(|(side, median_ns)| {
            CompareError::NonPositiveMedian {
                side,
                round,
                median_ns,
            }
        })?;
        if let Some(log) = log {
            medians.push(log);
            let of_each = (baselines.iter()).filter_map(|&one| p99_log(turns, [one, other]));
            p99.push(mean_of_some(of_each.collect()));
        }
    }
    let (ratio_of_p99, rounds_of_p99) = Ratio::of_some_logs(&p99, 0.0, confidence);
    Ok(Comparison {
        ratio_of_medians: Ratio::of_logs(&medians, 0.0, confidence)
            .ok_or(CompareError::NoRounds)?,
        ratio_of_p99,
        rounds: u32::try_from(medians.len()).unwrap_or(u32::MAX),
        rounds_of_p99,
    })
}

/// An arm's turns in a round.
fn turns_of(turns: &[Turn], arm: usize) -> impl Iterator<Item = &Turn> {
    turns.iter().filter(move |turn| turn.arm == arm)
}

/// The logarithm of a round's ratio: the mean over baselines of the mean over laps. `None` without a lap in which the other and one of
/// them have jobs.
fn round_log(
    turns: &[Turn],
    baselines: &[usize],
    other: usize,
) -> Result<Option<f64>, (Side, i64)> {
    let mut of_each = Vec::new();
    for &baseline in baselines {
        of_each.extend(mean_of_some(lap_logs(turns, [baseline, other])?));
    }
    Ok(mean_of_some(of_each))
}

/// For each lap in which both arms have jobs, the logarithm of the other's median over the baseline's.
///
/// Errors: the side with a median that is not positive, and that.
fn lap_logs(turns: &[Turn], arms: [usize; 2]) -> Result<Vec<f64>, (Side, i64)> {
    let mut logs = Vec::new();
    for pair in turns_of(turns, arms[0]).zip(turns_of(turns, arms[1])) {
        let medians = [pair.0, pair.1].map(|turn| median_of(&turn.values_ns));
        if let [Some(baseline), Some(other)] = medians {
            logs.push(log(Side::Other, other)? - log(Side::Baseline, baseline)?);
        }
    }
    Ok(logs)
}

fn log(side: Side, median_ns: i64) -> Result<f64, (Side, i64)> {
    if median_ns > 0 {
        Ok((median_ns as f64).ln())
    } else {
        Err((side, median_ns))
    }
}

/// The logarithm of the ratio of 99th percentiles of a round; `None` where one has too few jobs to bound it or is not
/// positive.
fn p99_log(turns: &[Turn], arms: [usize; 2]) -> Option<f64> {
    let needed = needed_count(0.99, DEFAULT_CONFIDENCE)?;
    let logs = arms.map(|arm| {
        let values = turns_of(turns, arm).flat_map(|turn| &turn.values_ns);
        let values = Sorted::new(values.copied().collect());
        let p99 = values
            .nearest_rank(0.99)
            .filter(|_| values.len() as u64 >= needed)?;
        (p99 > 0).then(|| (p99 as f64).ln())
    });
    Some(logs[1]? - logs[0]?)
}

fn mean_of_some(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| mean(&values))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn turn(arm: usize, values_ns: &[i64]) -> Turn {
        Turn {
            arm,
            values_ns: values_ns.to_vec(),
        }
    }

    #[test]
    fn laps_are_paired_in_whatever_order_their_turns_came() {
        // The machine is twice as slow in the second lap, and the other arm 10 % slower than the baseline in both.
        let round = || {
            vec![
                turn(0, &[1000, 1000, 9000]),
                turn(1, &[1100, 1100]),
                turn(1, &[2200]),
                turn(0, &[2000, 2000]),
            ]
        };
        let rounds = [round(), round(), round()];
        let ratio = compare_turns(&rounds, &[0], 1, 0.95)
            .unwrap()
            .ratio_of_medians;
        assert!((ratio.value - 1.1).abs() < 1e-12, "{ratio:?}");
        assert!(ratio.high.unwrap() - ratio.low.unwrap() < 1e-9, "{ratio:?}");
        assert_eq!(ratio.verdict, Verdict::Larger);
    }

    #[test]
    fn a_lap_without_jobs_is_left_out_and_so_is_a_round_without_laps() {
        let full = vec![turn(0, &[10]), turn(1, &[]), turn(0, &[10]), turn(1, &[20])];
        let lacking = vec![turn(0, &[10]), turn(1, &[])];
        let rounds = [full, lacking, vec![turn(1, &[10])]];
        let comparison = compare_turns(&rounds, &[0], 1, 0.95).unwrap();
        let ratio = comparison.ratio_of_medians;
        assert!((ratio.value - 2.0).abs() < 1e-12);
        assert_eq!((ratio.low, ratio.verdict), (None, Verdict::Undecided));
        assert_eq!(comparison.rounds, 1);
        let nothing = Err(CompareError::NoRounds);
        assert_eq!(compare_turns(&rounds[1..], &[0], 1, 0.95), nothing);
        assert_eq!(compare_turns(&[], &[0], 1, 0.95), nothing);
        assert_eq!(
            compare_turns(&rounds, &[0], 1, 1.0),
            Err(CompareError::Confidence)
        );
    }

    #[test]
    fn a_median_that_is_not_positive_has_no_ratio() {
        let rounds = [vec![turn(0, &[10]), turn(1, &[-4])]];
        assert_eq!(
            compare_turns(&rounds, &[0], 1, 0.95),
            Err(CompareError::NonPositiveMedian {
                side: Side::Other,
                round: 0,
                median_ns: -4
            })
        );
    }

    #[test]
    fn p99_is_that_of_all_jobs_of_a_round_and_needs_enough_of_them() {
        let round = |jobs: i64, factor: i64| {
            (0..jobs)
                .flat_map(|job| [turn(0, &[1000 + job]), turn(1, &[(1000 + job) * factor])])
                .collect::<Vec<_>>()
        };
        let p99 = |jobs| {
            compare_turns(&[round(jobs, 3), round(jobs, 3)], &[0], 1, 0.95)
                .unwrap()
                .ratio_of_p99
        };
        assert!((p99(299).unwrap().value - 3.0).abs() < 1e-9);
        assert_eq!(p99(298), None);
    }

    #[test]
    fn a_stalled_round_does_not_take_p99_from_the_others() {
        let round = |jobs: i64| {
            (0..jobs)
                .flat_map(|job| [turn(0, &[1000 + job]), turn(1, &[(1000 + job) * 3])])
                .collect::<Vec<_>>()
        };
        let of = |jobs: &[i64]| {
            let rounds: Vec<Vec<Turn>> = jobs.iter().map(|&jobs| round(jobs)).collect();
            compare_turns(&rounds, &[0], 1, 0.95).unwrap()
        };
        let comparison = of(&[400, 200, 400, 400]);
        assert!((comparison.ratio_of_p99.unwrap().value - 3.0).abs() < 1e-9);
        assert_eq!((comparison.rounds, comparison.rounds_of_p99), (4, 3));
        let comparison = of(&[400, 200, 400]);
        assert_eq!(
            (comparison.ratio_of_p99, comparison.rounds_of_p99),
            (None, 0)
        );
        let comparison = of(&[400, 400]);
        assert_eq!(
            (comparison.ratio_of_p99.is_some(), comparison.rounds_of_p99),
            (true, 2)
        );
    }

    #[test]
    fn equal_baselines_are_averaged_within_each_round() {
        // Of the second baseline's cells of the first round all jobs take twice as long, and it has none in the second.
        let first: Vec<Turn> = (0..400)
            .flat_map(|_| [turn(0, &[1000]), turn(2, &[2000]), turn(1, &[4000])])
            .collect();
        let second: Vec<Turn> = (0..400)
            .flat_map(|_| [turn(0, &[1000]), turn(2, &[]), turn(1, &[4000])])
            .collect();
        let rounds = [first, second];
        let comparison = compare_turns(&rounds, &[0, 2], 1, 0.95).unwrap();
        // (sqrt(4 * 2) * 4)^(1/2)
        let expected = (8_f64.sqrt() * 4.0).sqrt();
        for ratio in [
            comparison.ratio_of_medians,
            comparison.ratio_of_p99.unwrap(),
        ] {
            assert!((ratio.value - expected).abs() < 1e-9, "{ratio:?}");
        }
        assert_eq!(comparison.rounds, 2);
        let one = compare_turns(&rounds, &[2], 1, 0.95).unwrap();
        assert!((one.ratio_of_medians.value - 2.0).abs() < 1e-9);
        assert_eq!(one.rounds, 1);
        assert_eq!(
            compare_turns(&rounds, &[], 1, 0.95),
            Err(CompareError::NoRounds)
        );
    }
}
