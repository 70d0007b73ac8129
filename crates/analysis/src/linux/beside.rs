//! Cells that are held to a budget, as less urgent cells see them.

use crate::Ns;

/// A cell held to a budget on some cpu, as those below it feel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Budget, ns.
    pub budget: Ns,
    /// Period, ns.
    pub period: Ns,
    /// How much longer than its budget a chunk of it can be, ns: until its enforcer looks next. Its excess is taken from
    /// later budgets.
    pub overdraw: Ns,
}

impl Held {
    /// One that gives the cpu back as soon as its budget is used up, ns.
    pub const fn exactly(budget: Ns, period: Ns) -> Held {
        Held {
            budget,
            period,
            overdraw: 0,
        }
    }
}

/// More is asked of the cpu in one period than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowded {
    /// The least cpu time that the cell and those above it may take together within `period`, ns.
    pub demand: Ns,
    /// The period in which it must fit, ns.
    pub period: Ns,
}

/// By how much those `above` can postpone the budget of a cell within its period, ns: w - C for the least
///
/// w = C + sum over j above of (O_j + ceil((w + P_j) / P_j) Q_j),   C = Q + O,
///
/// with the overdraw O of each: a cell that has used up its budget runs on until it is seen, at the next tick for instance, so that one chunk is
/// up to Q + O long, and in any window of w a cell above receives at most one overdrawn budget, those of the refills in the
/// window, and the one it had saved (it is like a deferrable server of jitter P_j: Davis and Burns, RTSS 2005, section 3, with O
/// added). While w <= P the cell is throttled before each refill as if it were alone, nothing of its budget is lost, and
/// each chunk only ends up to w - C later.
///
/// # Errors
/// [`Crowded`] when w would exceed P.
///
/// ```
/// use timecell_analysis::linux::{Held, postponement};
///
/// let ms = 1_000_000;
/// let own = Held { budget: 10 * ms, period: 100 * ms, overdraw: 4 * ms };
/// let above = Held { budget: 5 * ms, period: 50 * ms, overdraw: 4 * ms };
/// assert_eq!(postponement(own, &[above]), Ok(14 * ms));
/// assert_eq!(postponement(own, &[Held::exactly(ms, 20 * ms)]), Ok(2 * ms));
/// ```
pub fn postponement(own: Held, above: &[Held]) -> Result<Ns, Crowded> {
    if above.is_empty() {
        return Ok(0);
    }
    let chunk = u128::from(own.budget) + u128::from(own.overdraw);
    let limit = u128::from(own.period);
    let mut window = chunk;
    loop {
        let taken: u128 = (above.iter())
            .map(|held| {
                let (budget, period) = (u128::from(held.budget), u128::from(held.period));
                u128::from(held.overdraw) + (window + period).div_ceil(period) * budget
            })
            .sum();
        let next = chunk + taken;
        if next > limit {
            return Err(Crowded {
                demand: Ns::try_from(next).unwrap_or(Ns::MAX),
                period: own.period,
            });
        }
        if next == window {
            return Ok((window - chunk) as Ns);
        }
        window = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn held(budget: Ns, period: Ns) -> Held {
        Held {
            budget: budget * MS,
            period: period * MS,
            overdraw: 4 * MS,
        }
    }

    #[test]
    fn alone_nothing_is_postponed() {
        assert_eq!(postponement(held(9, 10), &[]), Ok(0));
    }

    #[test]
    fn one_above_comes_back_to_back() {
        // A window of 10 + 4: 4 for the overdraft above, and two budgets of 5 until 100 - 50 have passed.
        let own = held(10, 100);
        assert_eq!(postponement(own, &[held(5, 50)]), Ok(14 * MS));
        // The window of 28 is within the first refill.
        assert_eq!(postponement(own, &[held(5, 28)]), Ok(14 * MS));
        // 28 exceeds 27, one budget more.
        assert_eq!(postponement(own, &[held(5, 27)]), Ok(19 * MS));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let crowded = postponement(held(30, 100), &[held(30, 60)]).unwrap_err();
        assert_eq!((crowded.demand, crowded.period), (128 * MS, 100 * MS));
    }
}
