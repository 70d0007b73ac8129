//! The mechanisms that hold cells to budgets, as far as the guaranteed supply of a budget depends on them.

use super::{
    DeadlineParams, FreezerSupply, Held, Reaction, TickSupply, postponement, threads_hold,
};
use crate::Ns;
use crate::inside::{Policy, holds};
use crate::reservation::{BoundedDelay, ReservationError};
use crate::{Task, linux::least_reservation};

/// The means that hold a cell to a budget, and their precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// A real-time group of cgroup v1, under a tick of this length, ns.
    RtCgroup(Ns),
    /// SCHED_DEADLINE, under a tick of this length, ns; 0 if a timer ends its runtimes.
    Deadline(Ns),
    /// A server of SCHED_DEADLINE for each group of cgroup v2 (`cpu.rt.max`), under a tick of this length, ns: HRTICK_DL starts
    /// its timer for threads of that class only.
    Hcbs(Ns),
    /// The clock and the freezer.
    Freezer(Reaction),
}

impl Means {
    /// The supply that is certain of `budget` ns every `period` ns before anybody has measured it on this machine, wherever in each
    /// period the budget comes.
    ///
    /// # Errors
    /// Names the time that is out of range, or says that nothing is certain.
    ///
    /// ```
    /// use timecell_analysis::linux::{Means, Reaction};
    /// use timecell_analysis::Supply;
    ///
    /// let ms = 1_000_000;
    /// let exact = Means::Freezer(Reaction { late: 0, overrun: 0, noticed: true });
    /// // The textbook's 2(P - Q), twice what may pass until use is noticed, and what rounding takes.
    /// let delay = exact.certain(3 * ms, 10 * ms)?.delay().unwrap() - 14 * ms;
    /// assert!((2 * Reaction::FIRST_USE..2 * Reaction::FIRST_USE + 10).contains(&delay));
    /// assert!(Means::RtCgroup(4 * ms).certain(3 * ms, 10 * ms)?.delay() > Some(14 * ms));
    /// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
    /// ```
    pub fn certain(&self, budget: Ns, period: Ns) -> Result<BoundedDelay, ReservationError> {
        match *self {
            Means::RtCgroup(tick) => TickSupply::rt_cgroup(budget, period, tick),
            Means::Deadline(tick) | Means::Hcbs(tick) => TickSupply::deadline(budget, period, tick),
            Means::Freezer(reaction) => {
                return FreezerSupply::new(budget, period, reaction).map(|supply| supply.behind);
            }
        }
        .map(|supply| supply.cautious)
    }

    /// Cpu time that it costs in each period of a cell, before all cells, ns.
    pub const fn cost(&self) -> Ns {
        match self {
            Means::Freezer(_) => Reaction::COST,
            Means::RtCgroup(_) | Means::Deadline(_) | Means::Hcbs(_) => 0,
        }
    }

    /// A cell that it holds, as those below it feel it.
    pub const fn held(&self, budget: Ns, period: Ns) -> Held {
        let overdraw = match self {
            Means::RtCgroup(tick) | Means::Deadline(tick) | Means::Hcbs(tick) => *tick,
            Means::Freezer(reaction) => reaction.overrun,
        };
        Held {
            budget,
            period,
            overdraw,
        }
    }

    /// Whether the budget of a cell comes within each of its periods behind the cells `above` it, and the costs of holding all cells of
    /// the cpu, of which those `below` it are the others: their keeper comes before all cells. Servers of SCHED_DEADLINE know no
    /// above and below, and come by earliest deadline first ([`threads_hold`]).
    ///
    /// ```
    /// use timecell_analysis::linux::{Means, Reaction};
    ///
    /// let ms = 1_000_000;
    /// let freezer = Means::Freezer(Reaction { late: 0, overrun: 0, noticed: true });
    /// assert!(freezer.comes((9 * ms, 10 * ms), &[], &[]));
    /// // A look at the other one takes a quarter of a millisecond, up to twelve times in 10 ms.
    /// assert!(!freezer.comes((9 * ms, 10 * ms), &[], &[(ms / 20, ms)]));
    /// // A server of 10 ms with half of the cpu goes before one of 20 ms with the other half.
    /// assert!(Means::Hcbs(0).comes((5 * ms, 10 * ms), &[(10 * ms, 20 * ms)], &[]));
    /// ```
    pub fn comes(&self, own: (Ns, Ns), above: &[(Ns, Ns)], below: &[(Ns, Ns)]) -> bool {
        if let Means::Hcbs(tick) = self {
            let all = above.iter().chain(below).chain([&own]);
            let servers: Vec<DeadlineParams> = all
                .map(|&(budget, period)| DeadlineParams::new(budget, period))
                .collect();
            return threads_hold(&servers, *tick).verdict.is_schedulable();
        }
        let before = above
            .iter()
            .map(|&(budget, period)| self.held(budget, period));
        self.comes_behind(own, before, above.iter().chain(below).copied())
    }

    /// Whether the budget of a cell comes within each of its periods behind those `before` it and the costs of holding it and the `others` of its
    /// cpu.
    fn comes_behind(
        &self,
        own: (Ns, Ns),
        before: impl Iterator<Item = Held>,
        others: impl Iterator<Item = (Ns, Ns)>,
    ) -> bool {
        if let Means::Hcbs(_) = self {
            // A thread held by nothing comes after a server, at any priority.
            return own.0 <= own.1;
        }
        let costs = self.costs(others.chain([own]));
        let all: Vec<Held> = before.chain(costs).collect();
        postponement(self.held(own.0, own.1), &all).is_ok()
    }

    /// The costs of holding these, as cells that come after the keeper feel them.
    pub fn costs(&self, of: impl Iterator<Item = (Ns, Ns)>) -> Vec<Held> {
        let cost = self.cost();
        of.filter(|_| cost > 0)
            .map(|(_, period)| Held::exactly(cost.min(period), period))
            .collect()
    }

    /// Whether tasks of fixed priorities, the most urgent first, are certain to meet their deadlines inside `budget` ns every
    /// `period` ns.
    pub fn keeps(&self, tasks: &[Task], budget: Ns, period: Ns) -> bool {
        self.certain(budget, period)
            .is_ok_and(|supply| holds(tasks, Policy::FixedPriority, &supply) == Ok(true))
    }

    /// The least (budget, period), ns, that is certain to do for such tasks in a cell alone on its cpu but for those `before` it there and held by
    /// nobody (which are after it, where a server of SCHED_DEADLINE holds it), of no more than the `share` (part, whole) of the cpu, the cost of
    /// holding it included; `None`: none is.
    ///
    /// ```
    /// use timecell_analysis::{Task, linux::{Means, Reaction}};
    ///
    /// let ms = 1_000_000;
    /// let tasks = [Task::new(5 * ms, 50 * ms)];
    /// let (budget, period) = Means::Freezer(Reaction::MEASURED).least(&tasks, (95, 100), &[]).unwrap();
    /// assert!(Means::Freezer(Reaction::MEASURED).keeps(&tasks, budget, period));
    /// assert!(budget * 50 > 5 * period);
    /// assert_eq!(Means::RtCgroup(4 * ms).least(&[Task::new(49 * ms, 50 * ms)], (95, 100), &[]), None);
    /// ```
    pub fn least(&self, tasks: &[Task], share: (Ns, Ns), before: &[Held]) -> Option<(Ns, Ns)> {
        let cost = self.cost();
        let comes = |budget: Ns, period: Ns| {
            let nobody = std::iter::empty();
            self.comes_behind((budget, period), before.iter().copied(), nobody)
        };
        // A set that holds with a budget holds with every larger one, as the search wants it: one that does not come in time is asked
        // as the largest that does.
        let granted = |with_cost: Ns, period: Ns| {
            let asked = with_cost.saturating_sub(cost);
            (asked > 0).then(|| match comes(asked, period) {
                true => Some(asked),
                false => last(asked, |budget| comes(budget, period)),
            })?
        };
        let (with_cost, period) = least_reservation(tasks, share, |with_cost, period| {
            granted(with_cost, period).is_some_and(|budget| self.keeps(tasks, budget, period))
        })?;
        Some((granted(with_cost, period)?, period))
    }
}

/// The last of 1 to `below` - 1 that `comes`, where every smaller one does too.
fn last(below: Ns, comes: impl Fn(Ns) -> bool) -> Option<Ns> {
    let (mut low, mut high) = (0, below);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if comes(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low > 0).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    #[test]
    fn a_cell_is_late_behind_others_and_behind_what_holds_them() {
        let freezer = Means::Freezer(Reaction {
            late: 0,
            overrun: MS,
            noticed: true,
        });
        // 5 and the overrun, twice 1 and the overrun, twice the cost of each.
        assert!(freezer.comes((5 * MS, 12 * MS), &[(MS, 12 * MS)], &[]));
        assert!(!freezer.comes((5 * MS, 10 * MS - 1), &[(MS, 10 * MS - 1)], &[]));
        let group = Means::RtCgroup(4 * MS);
        assert!(group.comes((5 * MS, 9 * MS), &[], &[]));
        assert!(!group.comes((5 * MS, 12 * MS), &[(MS, 12 * MS)], &[]));
        // The keeper of a less urgent cell comes before the more urgent one, too; a group is held by the kernel.
        let long = (9 * MS, 10 * MS);
        let frequent = [(MS / 20, MS)];
        let exact = Means::Freezer(Reaction {
            late: 0,
            overrun: 0,
            noticed: true,
        });
        assert!(exact.comes(long, &[], &[]) && !exact.comes(long, &[], &frequent));
        assert!(Means::RtCgroup(0).comes(long, &[], &frequent));
    }

    #[test]
    fn servers_come_by_earliest_deadline_first_a_tick_too_long_at_most() {
        let (own, other) = ((4 * MS, 10 * MS), (9 * MS, 20 * MS));
        let exact = Means::Hcbs(0);
        assert!(exact.comes(own, &[other], &[]) && exact.comes(other, &[], &[own]));
        // By fixed priorities it would not come behind the other.
        assert!(!Means::RtCgroup(0).comes(own, &[other], &[]));
        let by_tick = Means::Hcbs(4 * MS);
        assert!(by_tick.comes(own, &[], &[]) && !by_tick.comes(own, &[other], &[]));
        assert!(by_tick.comes((MS, 10 * MS), &[(MS, 10 * MS)], &[]));
        assert!(!exact.comes((6 * MS, 10 * MS), &[other], &[]));
    }

    #[test]
    fn what_is_least_is_certain_to_do_and_a_grain_less_is_not() {
        let tasks = [Task::new(2 * MS, 40 * MS), Task::new(5 * MS, 100 * MS)];
        for means in [
            Means::Freezer(Reaction::MEASURED),
            Means::RtCgroup(4 * MS),
            Means::Deadline(0),
            Means::Hcbs(4 * MS),
        ] {
            let (budget, period) = means.least(&tasks, (95, 100), &[]).unwrap();
            assert!(means.keeps(&tasks, budget, period) && means.comes((budget, period), &[], &[]));
            assert!(!means.keeps(&tasks, budget - crate::linux::BUDGET_GRID_NS, period));
            assert!(budget * 10 > period, "{means:?}: {budget} {period}");
        }
        assert_eq!(Means::RtCgroup(4 * MS).least(&tasks, (1, 10), &[]), None);
    }

    #[test]
    fn what_is_least_comes_behind_those_that_nobody_holds() {
        let tasks = [Task::new(2 * MS, 40 * MS), Task::new(5 * MS, 100 * MS)];
        let rival = Held::exactly(3 * MS, 10 * MS);
        for means in [Means::RtCgroup(4 * MS), Means::Freezer(Reaction::MEASURED)] {
            let alone = means.least(&tasks, (95, 100), &[]).unwrap();
            let least = means.least(&tasks, (95, 100), &[rival]);
            let behind = |(budget, period)| {
                let mut all = means.costs([(budget, period)].into_iter());
                all.push(rival);
                postponement(means.held(budget, period), &all).is_ok()
            };
            assert!(least.is_none_or(behind), "{means:?}: {least:?}");
            assert!(behind(alone) || least != Some(alone), "{means:?}");
        }
        // A server is before them all.
        let server = Means::Hcbs(4 * MS);
        let alone = server.least(&tasks, (95, 100), &[]);
        assert_eq!(server.least(&tasks, (95, 100), &[rival]), alone);
        let exact = Means::RtCgroup(0);
        let (budget, period) = exact.least(&tasks, (95, 100), &[rival]).unwrap();
        assert!(exact.keeps(&tasks, budget, period));
        // A cpu of which others take all has nothing for it.
        let all = Held::exactly(10 * MS, 10 * MS);
        assert_eq!(exact.least(&tasks, (95, 100), &[all]), None);
    }
}
