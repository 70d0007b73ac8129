//! The least budget for one demand by one instant.

use crate::Ns;

/// The least budget Q in ns with which the periodic model of Q every `period` ns supplies at least `work` ns in any
/// `t` ns; `None` if even a whole cpu does not (`work` > `t`), or if the period is 0.
///
/// A closed form, exact. Work that takes n chunks of the budget is done in time if Q >= work/n and
/// (n + 1)(P - Q) <= t - work, so the least budget is the least of max(⌈work/n⌉, P - ⌊(t - work)/(n+1)⌋) over n.
/// The first falls with n and the second rises, and they cross where P n² + (P - t) n = work: the n there and the one
/// before are all that need be tried. This is the supply of Shin and Lee (RTSS 2003, equation 3) solved for Q.
///
/// ```
/// use timecell_analysis::{Supply, least_budget::needed_budget, reservation::Periodic};
///
/// assert_eq!(needed_budget(5, 10, 4), Some(3));
/// assert!(Periodic::new(3, 5)?.sbf(10) >= 4);
/// assert!(Periodic::new(2, 5)?.sbf(10) < 4);
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn needed_budget(period: Ns, t: Ns, work: Ns) -> Option<Ns> {
    if work > t || period == 0 {
        return None;
    }
    if work == 0 {
        return Some(1);
    }
    // With more than t of period only the first chunk counts, and nothing below overflows.
    let chunks = if period < NARROW && t < NARROW {
        crossing_narrow(period, t, work)
    } else {
        crossing_wide(period, t, work)
    };
    let budget = |chunks: Ns| {
        work.div_ceil(chunks)
            .max(period.saturating_sub((t - work) / (chunks + 1)))
    };
    let after = budget(chunks);
    Some(if chunks > 1 {
        after.min(budget(chunks - 1))
    } else {
        after
    })
}

/// Below this, about 1 s, squares and fourfold products fit in 64 bits.
const NARROW: Ns = 1 << 30;

/// The least n >= 1 with P n (n + 1) >= t n + work.
fn crossing_narrow(period: u64, t: u64, work: u64) -> u64 {
    let root = (t.abs_diff(period).pow(2) + 4 * period * work).isqrt();
    let twice = if t >= period {
        root + (t - period)
    } else {
        root - (period - t)
    };
    let mut chunks = (twice / (2 * period)).max(1);
    // The root was rounded down, and so was the quotient.
    while period * chunks * (chunks + 1) < t * chunks + work {
        chunks += 1;
    }
    chunks
}

/// The same for times up to 2^64; t n and P n² stay below 2^126 because n is at most about t/P + √(work/P) + 1.
fn crossing_wide(period: u64, t: u64, work: u64) -> u64 {
    let (period, t, work) = (u128::from(period), u128::from(t), u128::from(work));
    let enough = |chunks: u128| {
        // P(n + 1) - t >= work/n, without the square.
        match (period * (chunks + 1)).checked_sub(t) {
            None => false,
            Some(room) => room >= work.div_ceil(chunks),
        }
    };
    // It holds at n = t/P + work/P + 2 at the latest; the root is not worth its price here.
    let (mut short, mut long) = (0, t / period + work / period + 2);
    while long - short > 1 {
        let middle = short.midpoint(long);
        if enough(middle) {
            long = middle;
        } else {
            short = middle;
        }
    }
    // At most 2^65; the largest n that matters is the number of ns of work.
    u64::try_from(long)
        .unwrap_or(u64::MAX - 1)
        .min(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reservation::Periodic;
    use crate::{MAX_NS, Supply};

    fn supplies(budget: Ns, period: Ns, t: Ns) -> Ns {
        Periodic::new(budget, period).unwrap().sbf(t)
    }

    #[test]
    fn exhaustively_least() {
        for period in 1..=12 {
            for t in 0..=70 {
                for work in 0..=t + 1 {
                    let least = (1..=period).find(|&budget| supplies(budget, period, t) >= work);
                    assert_eq!(needed_budget(period, t, work), least, "{period} {t} {work}");
                    if work > 0 && work <= t {
                        assert_eq!(
                            crossing_narrow(period, t, work),
                            crossing_wide(period, t, work)
                        );
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn suffices_and_one_less_does_not(
            period in 1..=MAX_NS, t in 1..=MAX_NS, work in 0..=MAX_NS,
            period_shift in 0..60u32, shift in 0..60u32, work_shift in 0..60u32,
        ) {
            let period = (period >> period_shift).max(1);
            let t = (t >> shift).max(1);
            let work = 1 + (work >> work_shift) % t;
            let least = needed_budget(period, t, work).unwrap();
            prop_assert!(supplies(least, period, t) >= work);
            prop_assert!(least == 1 || supplies(least - 1, period, t) < work);
        }

        #[test]
        fn nothing_panics(period in any::<u64>(), t in any::<u64>(), work in any::<u64>()) {
            needed_budget(period, t, work);
        }
    }
}
