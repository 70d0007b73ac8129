//! The supply of a budget where the kernel accounts for time only at its tick.

use serde::Serialize;

use crate::reservation::{BoundedDelay, Periodic, ReservationError};
use crate::{Ns, Task};

/// Rates that are no simple fraction are in parts of this, rounded down.
const BILLION: u128 = 1_000_000_000;

/// The longest tick that is believed: 1 s.
const LONGEST_TICK: Ns = 1_000_000_000;

/// Of ten parts of its budget, those that a cell is trusted to receive before anybody has measured.
const TRUSTED: (Ns, Ns) = (9, 10);

/// The supply of Linux where it looks at budgets only in the scheduler's tick, every 1/HZ: rt-cgroups always, and
/// SCHED_DEADLINE unless the scheduler's feature HRTICK_DL is on (it is off by default).
///
/// A thread that has used up its budget Q runs on until the next tick, up to τ too long. The excess counts
/// against later budgets, so that the long-run rate is kept, but it is kept by longer gaps: the textbook's bound on the
/// supply (the periodic resource model, [`Periodic`]) does not hold.
///
/// Let r be the runtime that the kernel has charged to an rt-cgroup and not yet forgiven (`rt_time`), u its run since
/// the last tick, R = r + u. From kernel/sched/rt.c, for a group that always has work and nothing before it on its cpu:
///
/// - Every P, r falls by min(r, Q), and a throttled group runs again if r < Q then (`do_sched_rt_period_timer`).
/// - In a tick, u is charged, and the group is throttled if r > Q (`update_curr_rt`). Before it r <= Q held, so that
///   r <= Q + τ holds after it.
/// - Throttled at r, the group waits for k = floor(r / Q) <= K = 1 + floor(τ / Q) refills, and starts with R = r - kQ <= τ.
///   It had run for at least r - τ since the refill before. So no gap is longer than **K (P - Q) + τ**.
/// - From one such start to the next it runs for kQ + R' - R in k periods, where R and R' are the debts at the two. No
///   budget is lost, and the differences cancel: the rate is **α = Q / P**. With the gap that begins the window,
///   α w - S(w) <= α (kP - (r - τ)) + (r - kQ) <= (1 - α) Q + τ for all windows, thus
///   **Δ = ((1 - α) Q + τ) / α = P - Q + τ P / Q**.
/// - This takes a group that does not run across a refill, as Q + τ <= P makes sure of. Else it may be refilled m times
///   while it runs, by less than Q each time as u is not charged yet, then throttled for k periods. In these m + k
///   periods it ran for mP + kQ + R' - u, with u <= min(τ, mP) and k >= max(1, floor(u / Q)), so that the same Δ holds with
///   the least (mP + kQ - u) / ((m + k) P), if that is below Q / P.
///
/// SCHED_DEADLINE charges in the same ticks, and a thread that overdrew its budget by o is given n = floor(o / Q) + 1
/// budgets at its deadline, with a deadline n periods later (`replenish_dl_entity`): no budget is ever lost, α = Q / P. A
/// gap lasts n (P - Q) + o at most, n being at most ceil(τ / Q), and α w - S(w) <= (1 - α) (nQ - o + o') + o with the
/// overdrafts o of this budget and o' of the next, which is (1 - α) Q + τ for Q >= τ and (1 - α) (Q + τ) + τ below.
///
/// **Not** in `alone`: the kernel bills interrupts to the running thread, and so does a hypervisor its pauses. The
/// program itself receives less than its budget by a share that only measuring tells. And it is the bound of a cell
/// that has its cpu to itself, or whose budget comes before all others on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TickSupply {
    /// The longest gap in the supply, ns, of a cell that has nothing before it on its cpu.
    pub longest_gap: Ns,
    /// Rate and delay of a cell that has nothing before it on its cpu, as far as the kernel's own account goes.
    pub alone: BoundedDelay,
    /// The supply that may be relied on before anybody has measured: nine tenths of that rate, for interrupts and the host, and
    /// P - Q more of delay, for others on the cpu that leave the cell its budget only late in each period. It lies below
    /// the textbook's supply.
    pub cautious: BoundedDelay,
}

impl TickSupply {
    /// Of an rt-cgroup (cgroup v1, CONFIG_RT_GROUP_SCHED) with `budget` ns every `period` ns, under a tick of `tick` ns
    /// (10^9 / HZ), at most 1 s.
    ///
    /// # Errors
    /// Names the time that is out of range, or the delay that is.
    ///
    /// ```
    /// use timecell_analysis::{Supply, linux::TickSupply};
    ///
    /// let ms = 1_000_000;
    /// let supply = TickSupply::rt_cgroup(3 * ms, 10 * ms, 4 * ms)?;
    /// assert_eq!(supply.longest_gap, 18 * ms); // the textbook says 14
    /// assert_eq!(supply.alone.sbf(20_333_334), 0); // a delay of 7 ms + 4 ms * 10 / 3
    /// assert_eq!(supply.cautious.rate(), (27 * ms, 100 * ms));
    /// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
    /// ```
    pub fn rt_cgroup(budget: Ns, period: Ns, tick: Ns) -> Result<TickSupply, ReservationError> {
        let model = check(budget, period, tick)?;
        if budget == period {
            // The kernel looks at no budget that is all of the period.
            return TickSupply::of(&model, 0, (1, 1), 0);
        }
        let rate = rt_rate(budget, period, tick);
        let refills = 1 + tick / budget;
        let lag = |whole: u128, share: u128| {
            (whole - share) * u128::from(budget) + u128::from(tick) * whole
        };
        TickSupply::of(&model, gap(refills, &model, tick), rate, delay(rate, lag))
    }

    /// Of a SCHED_DEADLINE thread with `budget` ns (its runtime) every `period` ns, which is its deadline too, under a
    /// tick of `tick` ns (10^9 / HZ), at most 1 s; 0 where HRTICK_DL is on.
    ///
    /// # Errors
    /// As [`TickSupply::rt_cgroup`].
    ///
    /// ```
    /// use timecell_analysis::linux::TickSupply;
    ///
    /// let ms = 1_000_000;
    /// let [by_tick, exact] = [4 * ms, 0].map(|tick| TickSupply::deadline(ms, 10 * ms, tick).unwrap());
    /// assert_eq!((by_tick.longest_gap, exact.longest_gap), (40 * ms, 9 * ms));
    /// ```
    pub fn deadline(budget: Ns, period: Ns, tick: Ns) -> Result<TickSupply, ReservationError> {
        let model = check(budget, period, tick)?;
        let budgets = tick.div_ceil(budget).max(1);
        let overdrawn = if budget < tick { tick } else { 0 };
        let lag = |whole: u128, share: u128| {
            (whole - share) * u128::from(budget + overdrawn) + u128::from(tick) * whole
        };
        let rate = (budget, period);
        TickSupply::of(&model, gap(budgets, &model, tick), rate, delay(rate, lag))
    }

    fn of(
        model: &Periodic,
        longest_gap: Ns,
        rate: (Ns, Ns),
        delay: Ns,
    ) -> Result<TickSupply, ReservationError> {
        let (supplied, per) = rate;
        let alone = BoundedDelay::new(supplied, per, delay)?;
        let late = delay.saturating_add(model.period() - model.budget());
        let (kept, of) = TRUSTED;
        let cautious = match (supplied.checked_mul(kept), per.checked_mul(of)) {
            (Some(supplied), Some(per)) => BoundedDelay::new(supplied, per, late)?,
            // Times of months: a rate that is rounded down does as well.
            _ => BoundedDelay::new(supplied / of * kept, per, late)?,
        };
        Ok(TickSupply {
            longest_gap,
            alone,
            cautious,
        })
    }
}

/// The most, ns, that the kernel charges to an rt-cgroup with `budget` ns every `period` ns in any half-open window of
/// `window` ns, however its threads sleep and wake, under a tick of `tick` ns.
///
/// With r as in [`TickSupply`]: the charge is the rise of r and the part that refills take from it. r is Q + τ at most, each of at
/// most ceil(w / P) refills takes Q at most, and a charge reaches back by a tick at most.
///
/// A group around it with the same share of its own period is charged the same, and is overdrawn by it: then the kernel stops
/// all that is inside, even with budget left.
///
/// ```
/// let ms = 1_000_000;
/// assert_eq!(timecell_analysis::linux::rt_most_charged(5 * ms, 10 * ms, 4 * ms, 1_000 * ms), 509 * ms);
/// ```
pub fn rt_most_charged(budget: Ns, period: Ns, tick: Ns, window: Ns) -> Ns {
    let refills = window.div_ceil(period.max(1));
    let by_budget = (budget.saturating_mul(refills))
        .saturating_add(budget)
        .saturating_add(tick);
    by_budget.min(window.saturating_add(tick))
}

/// The most, ns, that the jobs of a task run in any window of `window` ns, when each is done within `response` of its arrival.
///
/// The window that sees most begins with a job that runs as late as it may, and all later ones come and run as early as they may
/// (Bertogna and Cirinei, 2007, with the response time in the place of the deadline). Where jobs of one task may overlap, every job that
/// can run in the window counts in full.
///
/// ```
/// use timecell_analysis::{Task, linux::most_run};
/// // Done at 9 of 10 at the latest, after 4: 4 at once, 4 from 1 after its end on, and 1 of the next 4.
/// assert_eq!(most_run(&Task::new(4, 10), 9, 16), 9);
/// ```
pub fn most_run(task: &Task, response: Ns, window: Ns) -> Ns {
    if window == 0 {
        return 0;
    }
    let period = task.period.max(1);
    let most = if response > period {
        let jobs = window.saturating_add(response).div_ceil(period);
        jobs.saturating_mul(task.wcet)
    } else {
        let span = window.saturating_add(response.saturating_sub(task.wcet));
        let last = (span % period).min(task.wcet);
        (span / period)
            .saturating_mul(task.wcet)
            .saturating_add(last)
    };
    most.min(window)
}

fn check(budget: Ns, period: Ns, tick: Ns) -> Result<Periodic, ReservationError> {
    if tick > LONGEST_TICK {
        return Err(ReservationError::TooLong("tick", tick));
    }
    Periodic::new(budget, period)
}

/// So many periods less their budgets, and a tick.
fn gap(periods: Ns, model: &Periodic, tick: Ns) -> Ns {
    let missing = periods.saturating_mul(model.period() - model.budget());
    missing.saturating_add(tick)
}

/// The delay for a lag in ns times `per`, rounded up; out of range where it does not fit, which is refused then.
fn delay((supplied, per): (Ns, Ns), lag: impl Fn(u128, u128) -> u128) -> Ns {
    let lag = lag(per.into(), supplied.into());
    Ns::try_from(lag.div_ceil(u128::from(supplied.max(1)))).unwrap_or(Ns::MAX)
}

/// The rate of a group that always has work: Q / P, or less where it may be refilled while it runs.
fn rt_rate(budget: Ns, period: Ns, tick: Ns) -> (Ns, Ns) {
    if budget.saturating_add(tick) <= period {
        return (budget, period);
    }
    let [q, p, tau] = [budget, period, tick].map(u128::from);
    let mut least = q * BILLION / p;
    // With more refills than reach over a tick there is no more to lose.
    for m in 1..=tau.div_ceil(p) {
        let most = tau.min(m * p);
        // The least for each k has the largest u that allows it, and is least at the largest k of all: whole, or cut off.
        let k = most / q;
        let whole = (k.max(1), most);
        let before = (
            k.saturating_sub(1).max(1),
            (k * q).saturating_sub(1).min(most),
        );
        for (k, u) in [whole, before] {
            least = least.min((m * p + k * q - u) * BILLION / ((m + k) * p));
        }
    }
    (Ns::try_from(least).unwrap_or(0), BILLION as Ns)
}

#[cfg(test)]
mod tests;
