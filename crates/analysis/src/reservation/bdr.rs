//! The bounded-delay model.

use serde::Serialize;

use super::{Periodic, ReservationError, check};
use crate::{MAX_NS, Ns, Supply};

/// The bounded-delay model: a rate α after a delay of at most Δ.
///
/// sbf(t) = max(0, α(t - Δ)), here rounded down to whole ns; the inverse is exact for that. (Mok, Feng and Chen,
/// "Resource partition for real-time systems", RTAS 2001.)
///
/// ```
/// use timecell_analysis::{Supply, reservation::BoundedDelay};
///
/// let reservation = BoundedDelay::new(1, 3, 10)?;
/// assert_eq!((reservation.sbf(10), reservation.sbf(13)), (0, 1));
/// assert_eq!(reservation.inverse(2), Some(16));
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct BoundedDelay {
    supplied: Ns,
    per: Ns,
    delay: Ns,
}

impl BoundedDelay {
    /// A reservation of the rate α = `supplied` / `per` after `delay` ns, `1 <= supplied <= per <= MAX_NS`,
    /// `delay <= MAX_NS`.
    ///
    /// # Errors
    /// Names the time that is out of range.
    ///
    /// ```
    /// use timecell_analysis::reservation::BoundedDelay;
    ///
    /// assert!(BoundedDelay::new(1, 2, 500_000).is_ok());
    /// assert!(BoundedDelay::new(2, 1, 500_000).is_err());
    /// ```
    pub const fn new(supplied: Ns, per: Ns, delay: Ns) -> Result<BoundedDelay, ReservationError> {
        if let Err(error) = check(supplied, "period", per) {
            return Err(error);
        }
        // Twice, so that the delay of every periodic reservation fits.
        if delay > 2 * MAX_NS {
            return Err(ReservationError::TooLong("delay", delay));
        }
        Ok(BoundedDelay {
            supplied,
            per,
            delay,
        })
    }

    /// The tightest bounded delay that a periodic reservation keeps: α = Q/P, Δ = 2(P - Q). A safe bound, not exact:
    /// it equals the periodic supply only at the starts of its chunks. (Shin and Lee, RTSS 2003: the linear lower bound.)
    ///
    /// ```
    /// use timecell_analysis::{Supply, reservation::{BoundedDelay, Periodic}};
    ///
    /// let periodic = Periodic::new(3, 5)?;
    /// let bounded = BoundedDelay::of(&periodic);
    /// assert_eq!((periodic.sbf(7), bounded.sbf(7)), (3, 1));
    /// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
    /// ```
    pub const fn of(periodic: &Periodic) -> BoundedDelay {
        BoundedDelay {
            supplied: periodic.budget(),
            per: periodic.period(),
            delay: 2 * (periodic.period() - periodic.budget()),
        }
    }
}

impl Supply for BoundedDelay {
    fn sbf(&self, t: Ns) -> Ns {
        let after = u128::from(t.saturating_sub(self.delay));
        // At most t, as the rate is at most 1.
        (after * u128::from(self.supplied) / u128::from(self.per)) as Ns
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        if work == 0 {
            return Some(0);
        }
        let wait = (u128::from(work) * u128::from(self.per)).div_ceil(u128::from(self.supplied));
        Ns::try_from(wait).ok()?.checked_add(self.delay)
    }

    fn rate(&self) -> (Ns, Ns) {
        (self.supplied, self.per)
    }

    fn cycle(&self) -> Option<Ns> {
        Some(self.per)
    }

    fn delay(&self) -> Option<Ns> {
        // The supply is rounded down by less than 1 ns.
        Some(self.delay + self.per.div_ceil(self.supplied))
    }
}
