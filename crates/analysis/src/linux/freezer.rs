//! The supply of a budget that is held by the clock and the freezer of cgroup v2.

use serde::Serialize;

use crate::reservation::{BoundedDelay, Periodic, ReservationError};
use crate::{MAX_NS, Ns};

/// The precision of the thread that freezes and thaws, on which the supply rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Reaction {
    /// L: by how much it looks late at most, and so thaws late, ns.
    pub late: Ns,
    /// O: for how long a group runs on at most after its budget is used up, ns: the lateness of the look, the time until the freeze takes
    /// effect and how much later than exhaustion a look is meant. It is taken from later budgets.
    pub overrun: Ns,
    /// Whether it has notice of the first use of a group that was idle, and need not look at it by the clock.
    pub noticed: bool,
}

impl Reaction {
    /// Cpu time that the thread takes to hold one group in each of its periods, ns: the most of the ten single budgets in docs/src/freezer.md of timecell,
    /// 0.50 % of 50 ms; groups that share their wake-ups cost a third of it, idle ones next to nothing. A mean over 10 s, of a machine
    /// with other work.
    pub const COST: Ns = 250_000;

    /// Use that a group without a period may have before the first notice of it, ns: `FIRST_USE_NS` of the crate `timecell-freezer`.
    pub const FIRST_USE: Ns = 20_000;

    /// The bounds that 99 of 100 looks and overruns kept beside up to eight spinning threads, on a shared virtual machine with 2 cpus
    /// (docs/src/freezer.md of timecell). Without notice. It is no bound: the latest look there came 4 ms late. A machine's own figures are measured
    /// on it.
    pub const MEASURED: Reaction = Reaction {
        late: 100_000,
        overrun: 430_000,
        noticed: false,
    };
}

/// The supply of the freezer of a budget Q every P on one cpu by the rule of the crate `timecell-freezer`: a deferrable server that carries
/// overruns over to later budgets, enforced by a thread with a [`Reaction`] of L and O.
///
/// A budget can be given in time only if L <= P - Q; else of each no more than P - L is counted on. Let q be the lesser of Q and P - L.
///
/// - **Alone**, which is to say for a group that runs whenever it is thawed. It stops at the end of a use, having overrun by o <= O,
///   and is thawed by L late after n periods, the least with nQ > o; it starts with nQ - o, and n' periods later again. The
///   debts telescope, so the rate is **α = q / P**, and at the end of such a gap α w - S(w) <= (1 - α) q + α L + O, as a budget that was
///   lessened by a debt d <= O ends by d earlier. Hence **Δ = P - q + L + O P / q**, the form of [`super::TickSupply`] with O in the place of the tick.
///   No gap is longer than K (P - Q) + L + min(O, Q), K = 1 + floor(O / Q).
/// - **Behind others**, which leave it its budget anywhere between the thaw and the end of the period. A look at the end of a
///   period cannot tell whether use shortly before it was before the end, and charges up to L of it to the
///   next budget, and up to [`Reaction::FIRST_USE`] where notice of a first use comes later: so of each budget
///   **q' = q - L - FIRST_USE** is certain, and the budget may come at the beginning of one period and the end of the next:
///   **Δ = 2 (P - q') + L + O P / q'** at the rate q' / P. With L = O = 0 that is the textbook's 2 (P - Q), but for the first use.
///
/// Without notice of first use a group that was idle is looked at once a budget by the clock, and its use since before the end of a
/// period is charged to the next one: once up to Q more is missing behind others, O + Q in the place of O.
///
/// That 2 (P - Q) + L + O at the rate Q / P does not do behind others is shown by a test: an overrun is paid back in cpu time, and to
/// wait for O of it at the rate Q / P takes O P / Q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FreezerSupply {
    /// The longest gap in the supply of a cell that has nothing before it on its cpu, ns.
    pub longest_gap: Ns,
    /// Rate and delay of such a cell.
    pub alone: BoundedDelay,
    /// Rate and delay of a cell that has its budget anywhere in each period.
    pub behind: BoundedDelay,
}

impl FreezerSupply {
    /// Of `budget` ns every `period` ns.
    ///
    /// # Errors
    /// Names the time that is out of range; the budget, if it is not more than the reaction takes of it, so that nothing is certain.
    ///
    /// ```
    /// use timecell_analysis::linux::{FreezerSupply, Reaction};
    ///
    /// let ms = 1_000_000;
    /// let exact = FreezerSupply::new(3 * ms, 10 * ms, Reaction { late: 0, overrun: 0, noticed: true })?;
    /// assert_eq!(exact.longest_gap, 7 * ms);
    /// let real = FreezerSupply::new(3 * ms, 10 * ms, Reaction { late: ms / 10, overrun: 3 * ms / 10, noticed: true })?;
    /// assert_eq!(real.longest_gap, 7_400_000);
    /// // A tenth of the budget's lateness, and an overrun that takes a ms of waiting to pay back.
    /// assert_eq!(real.alone, timecell_analysis::reservation::BoundedDelay::new(3 * ms, 10 * ms, 8_100_000)?);
    /// assert!(FreezerSupply::new(ms / 10, 10 * ms, Reaction { late: ms, overrun: ms, noticed: true }).is_err());
    /// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
    /// ```
    pub fn new(
        budget: Ns,
        period: Ns,
        reaction: Reaction,
    ) -> Result<FreezerSupply, ReservationError> {
        let (longest_gap, alone) = FreezerSupply::alone(budget, period, reaction)?;
        let Reaction {
            late,
            overrun,
            noticed,
        } = reaction;
        let certain = budget
            .min(period.saturating_sub(late))
            .saturating_sub(late)
            .saturating_sub(Reaction::FIRST_USE);
        let once = overrun + if noticed { 0 } else { budget };
        Ok(FreezerSupply {
            longest_gap,
            alone,
            behind: line(certain, period, 2 * (period - certain), late, once)?,
        })
    }

    /// The longest gap of a cell that has nothing before it on its cpu, ns, and its rate and delay: where the lateness takes the whole
    /// budget of one behind others, there still is that.
    ///
    /// # Errors
    /// As [`FreezerSupply::new`]; of the reaction, only a lateness of the whole period leaves nothing.
    pub fn alone(
        budget: Ns,
        period: Ns,
        reaction: Reaction,
    ) -> Result<(Ns, BoundedDelay), ReservationError> {
        let model = Periodic::new(budget, period)?;
        let Reaction { late, overrun, .. } = reaction;
        for (name, time) in [("lateness", late), ("overrun", overrun)] {
            if time > MAX_NS {
                return Err(ReservationError::TooLong(name, time));
            }
        }
        let whole = model.budget().min(period.saturating_sub(late));
        let gap = (period - budget).saturating_mul(1 + overrun / budget);
        let gap = gap.saturating_add(late).saturating_add(overrun.min(budget));
        Ok((gap, line(whole, period, period - whole, late, overrun)?))
    }
}

/// So much of every period, after a gap and the lateness, and once so much that is paid back.
fn line(
    share: Ns,
    period: Ns,
    gap: Ns,
    late: Ns,
    once: Ns,
) -> Result<BoundedDelay, ReservationError> {
    if share == 0 {
        return Err(ReservationError::Zero(
            "budget that is certain beside the reaction",
        ));
    }
    let paid = (u128::from(once) * u128::from(period)).div_ceil(u128::from(share));
    let paid = Ns::try_from(paid).unwrap_or(Ns::MAX);
    BoundedDelay::new(share, period, gap.saturating_add(late).saturating_add(paid))
}
