//! The periodic resource model.

use serde::Serialize;

use super::{ReservationError, check};
use crate::{Ns, Supply};

/// The periodic resource model: a budget Q somewhere in every period P.
///
/// In the worst case the budget of one period comes at once, that of the next as late as possible: 2(P - Q) without
/// supply, then Q in every P. The supply-bound function is exact (Shin and Lee, "Periodic resource model for
/// compositional real-time guarantees", RTSS 2003, equation 3), and so is its inverse.
///
/// ```
/// use timecell_analysis::{Supply, reservation::Periodic};
///
/// let reservation = Periodic::new(3, 5)?;
/// assert_eq!(reservation.sbf(7), 3);
/// assert_eq!(reservation.inverse(4), Some(10));
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Periodic {
    budget: Ns,
    period: Ns,
}

impl Periodic {
    /// A reservation of `budget` ns every `period` ns, `1 <= budget <= period <= MAX_NS`.
    ///
    /// # Errors
    /// Names the time that is out of range.
    ///
    /// ```
    /// use timecell_analysis::reservation::Periodic;
    ///
    /// assert!(Periodic::new(7_500_000, 11_000_000).is_ok());
    /// assert!(Periodic::new(12_000_000, 11_000_000).is_err());
    /// ```
    pub const fn new(budget: Ns, period: Ns) -> Result<Periodic, ReservationError> {
        match check(budget, "period", period) {
            Ok(()) => Ok(Periodic { budget, period }),
            Err(error) => Err(error),
        }
    }

    /// Q, ns.
    ///
    /// ```
    /// let reservation = timecell_analysis::reservation::Periodic::new(3, 5)?;
    /// assert_eq!((reservation.budget(), reservation.period()), (3, 5));
    /// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
    /// ```
    pub const fn budget(&self) -> Ns {
        self.budget
    }

    /// P, ns.
    pub const fn period(&self) -> Ns {
        self.period
    }

    const fn gap(&self) -> Ns {
        self.period - self.budget
    }
}

impl Supply for Periodic {
    fn sbf(&self, t: Ns) -> Ns {
        match t.checked_sub(self.gap()) {
            None => 0,
            Some(late) => {
                late / self.period * self.budget + (late % self.period).saturating_sub(self.gap())
            }
        }
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        if work == 0 {
            return Some(0);
        }
        let gaps = work.div_ceil(self.budget).checked_add(1)?;
        gaps.checked_mul(self.gap())?.checked_add(work)
    }

    fn rate(&self) -> (Ns, Ns) {
        (self.budget, self.period)
    }

    fn cycle(&self) -> Option<Ns> {
        // A whole cpu repeats at once, however long its period is.
        Some(if self.budget == self.period {
            1
        } else {
            self.period
        })
    }

    fn delay(&self) -> Option<Ns> {
        Some(2 * self.gap())
    }
}
