//! Utilisation compared with one, exactly, for any periods.

use std::cmp::Ordering;

use crate::{Ns, Task};

/// Compares the utilisation of a set, the sum of C/T, with 1. Exact for any number of tasks and any periods.
///
/// Above 1 no scheduler keeps all deadlines of one cpu; at most 1 is enough for EDF where D >= T (Liu and Layland,
/// JACM 1973). Times in ns.
///
/// The sum is expanded digit by digit to base 2^64, as one divides by hand, until the digits differ from those of 1,
/// or until more of them agree than two different fractions with these denominators can share. No big integers,
/// and one round of divisions for every set that is not within 2^-60 of 1. A period of 0 counts as overload.
///
/// ```
/// use timecell_analysis::{Task, utilization};
/// use std::cmp::Ordering;
///
/// let third = Task::new(1, 3);
/// assert_eq!(utilization::compare_with_one(&[third; 3]), Ordering::Equal);
/// assert_eq!(utilization::compare_with_one(&[third, third, Task::new(333_333_333, 1_000_000_000)]), Ordering::Less);
/// ```
pub fn compare_with_one(tasks: &[Task]) -> Ordering {
    compare_fractions_with_one(tasks.iter().map(|task| (task.wcet, task.period)))
}

/// The same for any fractions (numerator, denominator).
pub(crate) fn compare_fractions_with_one(
    fractions: impl Iterator<Item = (Ns, Ns)> + Clone,
) -> Ordering {
    let mut whole = 0u128;
    for (work, period) in fractions.clone() {
        if period == 0 {
            return Ordering::Greater;
        }
        whole += u128::from(work / period);
        if whole > 1 {
            return Ordering::Greater;
        }
    }
    let rests = || {
        fractions
            .clone()
            .map(|(work, period)| (work % period, period))
            .filter(|&(rest, _)| rest > 0)
    };
    if whole == 1 {
        return if rests().next().is_some() {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
    }
    // One round without allocation settles all but the sets that are within count/2^64 of 1.
    let mut digits = 0u128;
    let mut count = 0u128;
    let mut exact = true;
    for (rest, period) in rests() {
        let shifted = u128::from(rest) << 64;
        digits += shifted / u128::from(period);
        exact &= shifted.is_multiple_of(u128::from(period));
        count += 1;
    }
    let one = 1u128 << 64;
    if exact {
        return digits.cmp(&one);
    }
    if digits >= one {
        return Ordering::Greater;
    }
    if one - digits >= count {
        return Ordering::Less;
    }
    expand(rests().collect())
}

/// All further digits. `fractions` are proper and not 0.
fn expand(mut fractions: Vec<(Ns, Ns)>) -> Ordering {
    let enough = rounds_that_prove_equality(&fractions);
    // The distance of 1 above the digits so far, in units of the last digit.
    let mut gap = 1i128;
    for _ in 0..enough {
        let mut digits = 0i128;
        for (rest, period) in &mut fractions {
            let shifted = u128::from(*rest) << 64;
            let period = u128::from(*period);
            // A digit is below 2^64 because rest < period; so is the new rest.
            digits += (shifted / period) as i128;
            *rest = (shifted % period) as Ns;
        }
        fractions.retain(|&(rest, _)| rest > 0);
        gap = (gap << 64) - digits;
        // The digits still to come are worth more than 0 and less than one unit for every fraction left.
        let left = fractions.len() as i128;
        if left == 0 {
            return 0.cmp(&gap);
        }
        if gap <= 0 {
            return Ordering::Greater;
        }
        if gap >= left {
            return Ordering::Less;
        }
    }
    Ordering::Equal
}

/// If the sum differs from 1, then by at least 1 over the least common multiple of the periods: once the digits are
/// finer than that, agreement is equality.
fn rounds_that_prove_equality(fractions: &[(Ns, Ns)]) -> u64 {
    let mut periods: Vec<Ns> = fractions
        .iter()
        .map(|&(work, period)| period / gcd(work, period))
        .collect();
    periods.sort_unstable();
    periods.dedup();
    let mut lcm = Some(1u128);
    let mut bits = 0u64;
    for &period in &periods {
        bits += u64::from(64 - period.leading_zeros());
        lcm = lcm.and_then(|lcm| {
            let shared = gcd((lcm % u128::from(period)) as Ns, period);
            lcm.checked_mul(u128::from(period / shared))
        });
    }
    let bits = lcm.map_or(bits, |lcm| u64::from(128 - lcm.leading_zeros()));
    (bits + 64) / 64 + 1
}

/// Greatest common divisor; that of 0 and x is x.
pub(crate) const fn gcd(mut a: Ns, mut b: Ns) -> Ns {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Least common multiple of the periods, the hyperperiod; `None` if it does not fit or a period is 0.
pub(crate) fn hyperperiod(tasks: &[Task]) -> Option<Ns> {
    tasks.iter().try_fold(1u64, |lcm, task| {
        if task.period == 0 {
            return None;
        }
        (lcm / gcd(lcm, task.period)).checked_mul(task.period)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compare(fractions: &[(u64, u64)]) -> Ordering {
        compare_fractions_with_one(fractions.iter().copied())
    }

    #[test]
    fn the_smallest_difference_is_seen() {
        assert_eq!(compare(&[]), Ordering::Less);
        assert_eq!(compare(&[(1, 1)]), Ordering::Equal);
        assert_eq!(compare(&[(1, 1), (1, u64::MAX)]), Ordering::Greater);
        assert_eq!(compare(&[(u64::MAX - 1, u64::MAX)]), Ordering::Less);
        assert_eq!(
            compare(&[(u64::MAX - 1, u64::MAX), (1, u64::MAX)]),
            Ordering::Equal
        );
        // (p-1)/p + 1/q with q just above and just below p.
        let p = (1u64 << 60) - 1;
        assert_eq!(compare(&[(p - 1, p), (1, p + 2)]), Ordering::Less);
        assert_eq!(compare(&[(p - 1, p), (1, p - 2)]), Ordering::Greater);
        assert_eq!(compare(&[(1, 0)]), Ordering::Greater);
    }

    #[test]
    fn coprime_denominators_that_sum_to_one_are_equal() {
        // 1/2 + 1/3 + 1/7 + 1/43 + 1/1807 + ... + 1/(product) = 1 (Sylvester).
        let fractions = [
            (1, 2),
            (1, 3),
            (1, 7),
            (1, 43),
            (1, 1_807),
            (1, 3_263_443),
            (1, 3_263_442 * 3_263_443),
        ];
        assert_eq!(compare(&fractions), Ordering::Equal);
        let less = [&fractions[..6], &[(1, 3_263_442 * 3_263_443 + 1)]].concat();
        assert_eq!(compare(&less), Ordering::Less);
        let more = [&fractions[..6], &[(1, 3_263_442 * 3_263_443 - 1)]].concat();
        assert_eq!(compare(&more), Ordering::Greater);
    }

    #[test]
    fn many_large_coprime_periods_end() {
        let fractions: Vec<(u64, u64)> = (0..300)
            .map(|i| {
                let period = (1u64 << 59) + 2 * i + 1;
                (period / 300, period)
            })
            .collect();
        assert_eq!(compare(&fractions), Ordering::Less);
        // Complementary pairs: equality can only be proved by digits beyond the least common multiple.
        let mut equal = Vec::new();
        for i in 0..40u64 {
            let period = ((1u64 << 59) + 2 * i + 1) / 40 * 40;
            equal.push((period / 40 - 1, period));
            equal.push((1, period));
        }
        assert_eq!(compare(&equal), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn agrees_with_the_common_denominator(
            fractions in prop::collection::vec((1u64..60, 1u64..60), 1..6)
        ) {
            let lcm: u128 = fractions.iter().map(|f| u128::from(f.1)).product();
            let sum: u128 = fractions.iter().map(|f| lcm / u128::from(f.1) * u128::from(f.0)).sum();
            prop_assert_eq!(compare(&fractions), sum.cmp(&lcm));
        }
    }
}
