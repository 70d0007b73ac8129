//! Cells that are held to a budget, as those below them feel it.

use crate::Ns;

/// A cell held to a budget on some cpu, as those below it feel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Budget, ns.
    pub budget: Ns,
    /// Period, ns.
    pub period: Ns,
}

/// More is asked of the cpu in one period than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowded {
    /// What the cell and those above it may take together within `period`, ns, at least.
    pub demand: Ns,
    /// The period in which it must fit, ns.
    pub period: Ns,
}

/// By how much those `above` can postpone the budget of a cell within its period, ns: w - C for the least
///
/// w = C + sum over j above of (tau + ceil((w + P_j) / P_j) Q_j),   C = Q + tau,
///
/// with the `tick` tau, ns, in which the kernel looks at budgets: whoever has used up his runs on until the next tick, so that
/// one chunk is up to Q + tau long, and in any window of w a cell above receives at most one overdrawn budget, those of
/// the refills in the window, and the one it had saved (it is like a deferrable server of jitter P_j: Davis and Burns, RTSS
/// 2005, section 3, with tau added for the tick). While w <= P the cell is throttled before each refill as if it were
/// alone, nothing of its budget is lost, and each chunk only ends up to w - C later.
///
/// # Errors
/// [`Crowded`] when w would exceed P.
///
/// ```
/// use analysis::linux::{Held, postponement};
///
/// let ms = 1_000_000;
/// let own = Held { budget: 10 * ms, period: 100 * ms };
/// let above = Held { budget: 5 * ms, period: 50 * ms };
/// assert_eq!(postponement(own, &[above], 4 * ms), Ok(14 * ms));
/// ```
pub fn postponement(own: Held, above: &[Held], tick: Ns) -> Result<Ns, Crowded> {
    postponement_behind(own, above, &[], tick)
}

/// The same with others above it, `exact`, that give the cpu back as soon as their budgets are used up: they do not wait for the
/// tick, and take ceil((w + P_j) / P_j) Q_j alone.
///
/// # Errors
/// [`Crowded`] when w would exceed P.
///
/// ```
/// use analysis::linux::{Held, postponement_behind};
///
/// let ms = 1_000_000;
/// let own = Held { budget: 10 * ms, period: 100 * ms };
/// let exact = Held { budget: ms, period: 20 * ms };
/// assert_eq!(postponement_behind(own, &[], &[exact], 4 * ms), Ok(2 * ms));
/// ```
pub fn postponement_behind(
    own: Held,
    above: &[Held],
    exact: &[Held],
    tick: Ns,
) -> Result<Ns, Crowded> {
    if above.is_empty() && exact.is_empty() {
        return Ok(0);
    }
    let chunk = u128::from(own.budget) + u128::from(tick);
    let limit = u128::from(own.period);
    let mut window = chunk;
    loop {
        let overdrawn = above.iter().map(|held| (held, tick));
        let taken: u128 = (overdrawn.chain(exact.iter().map(|held| (held, 0))))
            .map(|(held, tick)| {
                let (budget, period) = (u128::from(held.budget), u128::from(held.period));
                u128::from(tick) + (window + period).div_ceil(period) * budget
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
        }
    }

    #[test]
    fn alone_nothing_is_postponed() {
        assert_eq!(postponement(held(9, 10), &[], 4 * MS), Ok(0));
    }

    #[test]
    fn one_above_comes_back_to_back() {
        // A window of 10 + 4: 4 for the overdraft above, and two budgets of 5 until 100 - 50 have passed.
        let own = held(10, 100);
        assert_eq!(postponement(own, &[held(5, 50)], 4 * MS), Ok(14 * MS));
        // The window of 28 is within the first refill.
        assert_eq!(postponement(own, &[held(5, 28)], 4 * MS), Ok(14 * MS));
        // 28 exceeds 27, one budget more.
        assert_eq!(postponement(own, &[held(5, 27)], 4 * MS), Ok(19 * MS));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let crowded = postponement(held(30, 100), &[held(30, 60)], 4 * MS).unwrap_err();
        assert_eq!((crowded.demand, crowded.period), (128 * MS, 100 * MS));
    }
}
