//! Reservations as models of supply: how little cpu time a cell is guaranteed to get in any interval, and how long it may
//! have to wait for a given amount. One model is one file that implements [`Supply`](crate::Supply) with an exact
//! supply-bound function and its exact inverse. Tasks inside a reservation are in [`inside`](crate::inside); servers
//! that compete for one cpu are elsewhere.
//!
//! ```
//! use timecell_analysis::{Supply, reservation::Periodic};
//!
//! // 3 every 10, anywhere in each period: up to 14 without any.
//! let supply = Periodic::new(3, 10)?;
//! assert_eq!([14, 15, 17].map(|window| supply.sbf(window)), [0, 1, 3]);
//! assert_eq!(supply.inverse(3), Some(17));
//! # Ok::<(), timecell_analysis::reservation::ReservationError>(())
//! ```

mod bdr;
mod dedicated;
mod delayed;
mod edp;
mod prm;

pub use bdr::BoundedDelay;
pub use dedicated::Dedicated;
pub use delayed::Delayed;
pub use edp::ExplicitDeadline;
pub use prm::Periodic;

use crate::{MAX_NS, Ns};

/// Why the parameters of a reservation are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReservationError {
    /// A time that must be positive is 0.
    #[error("the {0} is 0; it must be at least 1 ns")]
    Zero(&'static str),
    /// A time is larger than [`MAX_NS`].
    #[error("the {0} of {1} ns is too long; the longest time is {MAX_NS} ns (36 years)")]
    TooLong(&'static str, Ns),
    /// More is to be supplied than there is time.
    #[error("the budget of {budget} ns exceeds the {name} of {time} ns")]
    BudgetBeyond {
        /// Budget, ns.
        budget: Ns,
        /// The bound it exceeds: the period or the deadline.
        name: &'static str,
        /// How long that is, ns.
        time: Ns,
    },
    /// The deadline of the supply is later than its period.
    #[error("the deadline of {deadline} ns exceeds the period of {period} ns")]
    DeadlineBeyondPeriod {
        /// Deadline, ns.
        deadline: Ns,
        /// Period, ns.
        period: Ns,
    },
}

/// Both 1 ns to [`MAX_NS`], and the budget within the other time.
const fn check(budget: Ns, name: &'static str, time: Ns) -> Result<(), ReservationError> {
    if budget == 0 {
        return Err(ReservationError::Zero("budget"));
    }
    if time == 0 {
        return Err(ReservationError::Zero(name));
    }
    if time > MAX_NS {
        return Err(ReservationError::TooLong(name, time));
    }
    if budget > time {
        return Err(ReservationError::BudgetBeyond { budget, name, time });
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Supply;

    /// Least supply in any interval of `length` ticks, by trying every start of the interval within a period and, for
    /// each period that it touches, every choice of `budget` of the first `deadline` ticks.
    fn least_supply(budget: u32, period: u64, deadline: u64, length: u64) -> u64 {
        (0..period)
            .map(|start| {
                let end = start + length;
                (0..=end / period)
                    .map(|window| {
                        let inside: u32 = (0..deadline)
                            .filter(|tick| (start..end).contains(&(window * period + tick)))
                            .map(|tick| 1 << tick)
                            .sum();
                        (0..1u32 << deadline)
                            .filter(|choice| choice.count_ones() == budget)
                            .map(|choice| u64::from((choice & inside).count_ones()))
                            .min()
                            .unwrap()
                    })
                    .sum()
            })
            .min()
            .unwrap()
    }

    /// `inverse` is the lower adjoint of `sbf`, `sbf` keeps the promises of the trait, and splits no interval in its
    /// favour.
    fn is_supply(supply: &impl Supply, times: u64) {
        assert_eq!((supply.sbf(0), supply.inverse(0)), (0, Some(0)));
        let (supplied, per) = supply.rate();
        assert!(per > 0 && supplied <= per);
        for t in 0..times {
            let step = supply.sbf(t + 1) - supply.sbf(t);
            let after = u128::from(t.saturating_sub(supply.delay().unwrap()));
            assert!(u128::from(supply.sbf(t)) * u128::from(per) >= after * u128::from(supplied));
            assert!(step <= 1, "grows by {step} at {t}");
            for work in 0..=supply.sbf(t) + 2 {
                let wait = supply.inverse(work).unwrap();
                assert_eq!(wait <= t, work <= supply.sbf(t), "work {work}, t {t}");
            }
            for part in 0..=t {
                assert!(supply.sbf(t) >= supply.sbf(part) + supply.sbf(t - part));
            }
        }
        if let (Some(cycle), Some(first)) = (supply.cycle(), supply.inverse(1)) {
            for t in first..first + times {
                let more = supply.sbf(t + cycle) - supply.sbf(t);
                assert_eq!(
                    u128::from(more) * u128::from(per),
                    u128::from(cycle) * u128::from(supplied),
                    "repeats at {t}"
                );
            }
        }
    }

    #[test]
    fn exhaustively_equal_to_the_least_supply_of_all_schedules() {
        for period in 1..=6u64 {
            for deadline in 1..=period {
                for budget in 1..=deadline {
                    let supply = ExplicitDeadline::new(budget, period, deadline).unwrap();
                    for t in 0..=3 * period + 1 {
                        let least = least_supply(budget as u32, period, deadline, t);
                        assert_eq!(supply.sbf(t), least, "{supply:?} at {t}");
                        if deadline == period {
                            assert_eq!(Periodic::new(budget, period).unwrap().sbf(t), least);
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn all_models_are_supplies_and_galois_pairs(
            period in 1..40u64, budget in 0..40u64, deadline in 0..40u64, delay in 0..30u64,
        ) {
            let budget = 1 + budget % period;
            let deadline = budget + deadline % (period - budget + 1);
            let periodic = Periodic::new(budget, period).unwrap();
            let bounded = BoundedDelay::of(&periodic);
            is_supply(&Dedicated, 60);
            is_supply(&periodic, 100);
            is_supply(&ExplicitDeadline::new(budget, period, deadline).unwrap(), 100);
            is_supply(&BoundedDelay::new(budget, period, delay).unwrap(), 100);
            for t in 0..300 {
                prop_assert!(bounded.sbf(t) <= periodic.sbf(t), "the bound is safe at {}", t);
            }
        }

        #[test]
        fn nothing_panics_at_the_edges(
            budget in 1..=MAX_NS, spare in 0..=MAX_NS, delay in 0..=MAX_NS, t in any::<u64>(),
        ) {
            let period = budget.saturating_add(spare).min(MAX_NS);
            let deadline = budget + (period - budget) / 2;
            let supplies: [&dyn Supply; 4] = [
                &Dedicated,
                &Periodic::new(budget, period).unwrap(),
                &ExplicitDeadline::new(budget, period, deadline).unwrap(),
                &BoundedDelay::new(budget, period, delay).unwrap(),
            ];
            for supply in supplies {
                let got = supply.sbf(t);
                prop_assert!(got <= t);
                prop_assert!(supply.inverse(got).is_some_and(|wait| wait <= t));
                if let Some(wait) = supply.inverse(t) {
                    prop_assert!(supply.sbf(wait) >= t);
                    prop_assert!(t == 0 || supply.sbf(wait - 1) < t);
                }
            }
        }
    }

    #[test]
    fn what_is_no_reservation_is_named() {
        assert_eq!(Periodic::new(0, 5), Err(ReservationError::Zero("budget")));
        assert_eq!(Periodic::new(1, 0), Err(ReservationError::Zero("period")));
        assert_eq!(
            Periodic::new(1, u64::MAX),
            Err(ReservationError::TooLong("period", u64::MAX))
        );
        assert!(Periodic::new(6, 5).is_err());
        assert!(ExplicitDeadline::new(2, 5, 1).is_err());
        assert!(ExplicitDeadline::new(2, 5, 6).is_err());
        assert!(BoundedDelay::new(1, 2, u64::MAX).is_err());
    }
}
