//! The explicit-deadline periodic model.

use serde::Serialize;

use super::{ReservationError, check};
use crate::{Ns, Supply};

/// The explicit-deadline periodic model: a budget Q within the first D of every period P.
///
/// The wait before the first supply is P + D - 2Q instead of 2(P - Q), as for a reservation under EDF with a deadline
/// before its period, and for a group that is refilled together with others and served in a fixed order.
/// The supply-bound function and its inverse are exact (Easwaran, Anand and Lee, "Compositional analysis framework
/// using EDP resource models", RTSS 2007). D = P is [`Periodic`](super::Periodic).
///
/// ```
/// use timecell_analysis::{Supply, reservation::ExplicitDeadline};
///
/// let reservation = ExplicitDeadline::new(2, 11, 5)?;
/// assert_eq!((reservation.sbf(12), reservation.sbf(13)), (0, 1));
/// assert_eq!(reservation.inverse(3), Some(24));
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ExplicitDeadline {
    budget: Ns,
    period: Ns,
    deadline: Ns,
}

impl ExplicitDeadline {
    /// A reservation of `budget` ns in the first `deadline` ns of every `period` ns,
    /// `1 <= budget <= deadline <= period <= MAX_NS`.
    ///
    /// # Errors
    /// Names the time that is out of range.
    ///
    /// ```
    /// use timecell_analysis::reservation::ExplicitDeadline;
    ///
    /// assert!(ExplicitDeadline::new(3, 10, 5).is_ok());
    /// assert!(ExplicitDeadline::new(3, 10, 11).is_err());
    /// ```
    pub const fn new(
        budget: Ns,
        period: Ns,
        deadline: Ns,
    ) -> Result<ExplicitDeadline, ReservationError> {
        if let Err(error) = check(budget, "period", period) {
            return Err(error);
        }
        if let Err(error) = check(budget, "deadline", deadline) {
            return Err(error);
        }
        if deadline > period {
            return Err(ReservationError::DeadlineBeyondPeriod { deadline, period });
        }
        Ok(ExplicitDeadline {
            budget,
            period,
            deadline,
        })
    }

    /// Q, ns.
    ///
    /// ```
    /// let reservation = timecell_analysis::reservation::ExplicitDeadline::new(2, 11, 5)?;
    /// assert_eq!((reservation.budget(), reservation.period(), reservation.deadline()), (2, 11, 5));
    /// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
    /// ```
    pub const fn budget(&self) -> Ns {
        self.budget
    }

    /// P, ns.
    pub const fn period(&self) -> Ns {
        self.period
    }

    /// D, ns.
    pub const fn deadline(&self) -> Ns {
        self.deadline
    }
}

impl Supply for ExplicitDeadline {
    fn sbf(&self, t: Ns) -> Ns {
        match t.checked_sub(self.deadline - self.budget) {
            None => 0,
            Some(late) => {
                late / self.period * self.budget
                    + (late % self.period).saturating_sub(self.period - self.budget)
            }
        }
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        if work == 0 {
            return Some(0);
        }
        work.div_ceil(self.budget)
            .checked_mul(self.period - self.budget)?
            .checked_add(self.deadline - self.budget)?
            .checked_add(work)
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
        Some((self.deadline - self.budget) + (self.period - self.budget))
    }
}
