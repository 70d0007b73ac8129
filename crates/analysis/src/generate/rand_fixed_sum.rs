//! Utilisations with a fixed sum and bounds on each.

use super::Random;

/// The most tasks of a RandFixedSum: its table has a cell for each pair of them.
pub const MAX_TASKS: usize = 2_000;

/// Stands for "all of the probability"; far enough from the ends of the range that n products neither vanish nor
/// overflow for the sizes allowed.
const WHOLE: f64 = 1e300;

/// Numbers in [0, 1] that sum to `total`, uniform over all such vectors (RandFixedSum), in random order.
///
/// Stafford's algorithm (2006) as Emberson, Stafford & Davis, "Techniques for the synthesis of multiprocessor
/// tasksets" (WATERS 2010) use it. The sum is met up to floating-point rounding, n 2^-50 at most. `None` if no such
/// vector exists (`total` outside 0 to `tasks`, or no number) or there are more than [`MAX_TASKS`].
///
/// ```
/// use timecell_analysis::generate::{Random, rand_fixed_sum};
///
/// let numbers = rand_fixed_sum(5, 4.5, &mut Random::new(1)).unwrap();
/// assert!((numbers.iter().sum::<f64>() - 4.5).abs() < 1e-12);
/// assert!(numbers.iter().all(|number| (0.0..=1.0).contains(number)));
/// assert_eq!(rand_fixed_sum(5, 5.5, &mut Random::new(1)), None);
/// ```
pub fn rand_fixed_sum(tasks: usize, total: f64, random: &mut Random) -> Option<Vec<f64>> {
    let draws = tasks.saturating_sub(1).min(MAX_TASKS);
    let turns: Vec<f64> = (0..draws).map(|_| random.unit()).collect();
    let sizes: Vec<f64> = (0..draws).map(|_| random.unit()).collect();
    let mut numbers = rand_fixed_sum_of(tasks, total, &turns, &sizes)?;
    random.shuffle(&mut numbers);
    Some(numbers)
}

/// [`rand_fixed_sum`] with every number in [`low`, `high`] instead of [0, 1], as Emberson, Stafford & Davis (WATERS
/// 2010) scale it.
///
/// `None` as there, or if the bounds are no interval.
///
/// ```
/// use timecell_analysis::generate::{Random, rand_fixed_sum_within};
///
/// let numbers = rand_fixed_sum_within(4, 1.0, 0.1, 0.5, &mut Random::new(1)).unwrap();
/// assert!(numbers.iter().all(|number| (0.1..=0.5).contains(number)));
/// ```
pub fn rand_fixed_sum_within(
    tasks: usize,
    total: f64,
    low: f64,
    high: f64,
    random: &mut Random,
) -> Option<Vec<f64>> {
    let width = high - low;
    if !(width.is_finite() && width > 0.0 && total.is_finite()) {
        return None;
    }
    // A total at the very end may leave the range by a rounding.
    let scaled = (total - low * tasks as f64) / width;
    let most = tasks as f64;
    let slack = most * 1e-12;
    if scaled < -slack || scaled > most + slack {
        return None;
    }
    let numbers = rand_fixed_sum(tasks, scaled.clamp(0.0, most), random)?;
    Some(
        numbers
            .into_iter()
            .map(|number| (low + width * number).clamp(low, high))
            .collect(),
    )
}

/// [`rand_fixed_sum`] with the caller's draws from [0, 1), one less than tasks of each kind, and before the shuffle.
///
/// `turns` choose the simplex and `sizes` the point in it, in the order of Emberson's implementation (Emberson, Stafford
/// & Davis, WATERS 2010).
///
/// ```
/// use timecell_analysis::generate::rand_fixed_sum_of;
///
/// let numbers = rand_fixed_sum_of(3, 1.5, &[0.3, 0.7], &[0.25, 0.81]).unwrap();
/// for (number, expected) in numbers.iter().zip([0.75, 0.27375, 0.47625]) {
///     assert!((number - expected).abs() < 1e-12);
/// }
/// ```
pub fn rand_fixed_sum_of(
    tasks: usize,
    total: f64,
    turns: &[f64],
    sizes: &[f64],
) -> Option<Vec<f64>> {
    let n = tasks;
    let possible = (0.0..=n as f64).contains(&total);
    if n == 0 || n > MAX_TASKS || !possible || turns.len() < n - 1 || sizes.len() < n - 1 {
        return None;
    }
    let k = (total as usize).min(n - 1);
    let chances = chances(n, total, k);
    let (mut left, mut j, mut sum, mut product) = (total, k, 0.0, 1.0);
    let mut numbers = Vec::with_capacity(n);
    for (i, (&turn, &size)) in (1..n).rev().zip(turns.iter().zip(sizes)) {
        // A column beyond the row has nothing to stay for.
        let up = turn < chances[i - 1].get(j).copied().unwrap_or(1.0);
        let part = libm::pow(size, 1.0 / i as f64);
        sum += (1.0 - part) * product * left / (i + 1) as f64;
        product *= part;
        let one = f64::from(u8::from(up));
        numbers.push((sum + product * one).clamp(0.0, 1.0));
        left -= one;
        j = j.saturating_sub(usize::from(up));
    }
    numbers.push((sum + product * left).clamp(0.0, 1.0));
    Some(numbers)
}

/// Row i - 2, column j - 1: how likely the step from i - 1 to i numbers takes the upper half (Stafford's table t).
fn chances(n: usize, total: f64, k: usize) -> Vec<Vec<f64>> {
    let below: Vec<f64> = (0..n).map(|j| total - (k as f64 - j as f64)).collect();
    let above: Vec<f64> = (0..n).map(|j| (k + n) as f64 - j as f64 - total).collect();
    let mut weights = vec![WHOLE];
    let mut table = Vec::with_capacity(n.saturating_sub(1));
    for i in 2..=n {
        let mut next = Vec::with_capacity(i);
        let mut row = Vec::with_capacity(i);
        for j in 1..=i {
            let (rise, fall) = (below[j - 1], above[n - i + j - 1]);
            let stay = weights.get(j - 1).copied().unwrap_or(0.0) * (rise / i as f64);
            let come = if j >= 2 {
                weights[j - 2] * (fall / i as f64)
            } else {
                0.0
            };
            let weight = stay + come;
            // Of the two quotients the one that loses less to rounding.
            let whole = weight + f64::MIN_POSITIVE;
            row.push(if fall > rise {
                come / whole
            } else {
                1.0 - stay / whole
            });
            next.push(weight);
        }
        table.push(row);
        weights = next;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_number_has_the_same_mean_and_reaches_the_ends() {
        let mut random = Random::new(2);
        let mut sums = [0.0; 3];
        let (mut least, mut most) = (1.0f64, 0.0f64);
        for _ in 0..4_000 {
            let numbers = rand_fixed_sum(3, 1.5, &mut random).unwrap();
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum += number / 4_000.0;
                least = least.min(number);
                most = most.max(number);
            }
        }
        // Standard error below 0.3 / sqrt(4000) = 0.005.
        assert!(
            sums.iter().all(|mean| (mean - 0.5).abs() < 0.025),
            "{sums:?}"
        );
        assert!(least < 0.01 && most > 0.99, "{least} {most}");
    }

    #[test]
    fn it_is_uniform_where_the_law_is_known() {
        // Two numbers with sum 0.6: the first is uniform in 0 to 0.6.
        let mut random = Random::new(9);
        let mut counts = [0; 6];
        for _ in 0..6_000 {
            let numbers = rand_fixed_sum(2, 0.6, &mut random).unwrap();
            counts[((numbers[0] * 10.0) as usize).min(5)] += 1;
        }
        assert!(
            counts.iter().all(|&count| (850..1150).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn what_cannot_be_is_none() {
        let mut random = Random::new(1);
        assert_eq!(rand_fixed_sum(0, 0.0, &mut random), None);
        assert_eq!(rand_fixed_sum(MAX_TASKS + 1, 1.0, &mut random), None);
        for total in [-0.1, 3.1, f64::NAN, f64::INFINITY] {
            assert_eq!(rand_fixed_sum(3, total, &mut random), None);
        }
        assert_eq!(rand_fixed_sum_of(3, 1.0, &[0.5], &[0.5, 0.5]), None);
        assert_eq!(rand_fixed_sum_within(3, 1.0, 0.5, 0.5, &mut random), None);
        assert_eq!(rand_fixed_sum_within(3, 1.0, 0.5, 1.0, &mut random), None);
    }

    #[test]
    fn great_sets_neither_vanish_nor_overflow() {
        for total in [0.5, 300.0, 999.5] {
            let numbers = rand_fixed_sum(1_000, total, &mut Random::new(4)).unwrap();
            let sum: f64 = numbers.iter().sum();
            assert!((sum - total).abs() < 1e-6, "{sum} instead of {total}");
        }
    }

    proptest! {
        #[test]
        fn the_sum_is_met_within_bounds(n in 1usize..20, part in 0.0f64..=1.0, seed in 0u64..) {
            let total = part * n as f64;
            let numbers = rand_fixed_sum(n, total, &mut Random::new(seed)).unwrap();
            prop_assert!((numbers.iter().sum::<f64>() - total).abs() <= n as f64 / (1u64 << 50) as f64);
            prop_assert!(numbers.iter().all(|number| (0.0..=1.0).contains(number)));
        }
    }
}
