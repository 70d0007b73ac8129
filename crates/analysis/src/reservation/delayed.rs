//! A supply that comes late.

use crate::{Ns, Supply};

/// Another supply, every part of which comes up to `by` ns later: sbf(t) = sbf'(t - by).
///
/// The supply of a reservation behind others on its cpu that only ever postpone its budget within the period and never
/// take of it: each chunk of supply ends at most `by` later than it would alone, so any window of t ns holds at least as much as
/// a window of t - by ns holds alone.
///
/// ```
/// use timecell_analysis::{Supply, reservation::{Delayed, Periodic}};
///
/// let alone = Periodic::new(3, 10)?;
/// let behind = Delayed { supply: alone, by: 2 };
/// assert_eq!((alone.sbf(17), behind.sbf(17), behind.sbf(19)), (3, 1, 3));
/// assert_eq!(behind.inverse(3), Some(alone.inverse(3).unwrap() + 2));
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delayed<S> {
    /// The supply without the delay.
    pub supply: S,
    /// The delay, ns.
    pub by: Ns,
}

impl<S: Supply> Supply for Delayed<S> {
    fn sbf(&self, t: Ns) -> Ns {
        self.supply.sbf(t.saturating_sub(self.by))
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        if work == 0 {
            return Some(0);
        }
        self.supply.inverse(work)?.checked_add(self.by)
    }

    fn rate(&self) -> (Ns, Ns) {
        self.supply.rate()
    }

    fn cycle(&self) -> Option<Ns> {
        self.supply.cycle()
    }

    fn delay(&self) -> Option<Ns> {
        self.supply.delay()?.checked_add(self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reservation::Periodic;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_delayed_supply_is_a_supply(budget in 1u64..12, more in 0u64..12, by in 0u64..30) {
            let supply = Periodic::new(budget, budget + more).unwrap();
            let delayed = Delayed { supply, by };
            prop_assert_eq!((delayed.sbf(0), delayed.inverse(0)), (0, Some(0)));
            for t in 0..150 {
                prop_assert!(delayed.sbf(t + 1) - delayed.sbf(t) <= 1);
                prop_assert!(delayed.sbf(t) <= supply.sbf(t));
            }
            for work in 1..40 {
                let t = delayed.inverse(work).unwrap();
                prop_assert!(delayed.sbf(t) >= work && delayed.sbf(t - 1) < work);
            }
            let (supplied, per) = delayed.rate();
            if let Some(delay) = delayed.delay() {
                for t in 0..150u64 {
                    prop_assert!(delayed.sbf(t) * per >= supplied * t.saturating_sub(delay));
                }
            }
        }
    }
}
