//! Finds the least budget for a cell.

use analysis::inside::{Policy, holds};
use analysis::linux::{Held, least_reservation, less_bandwidth, postponement};
use analysis::{Ns, Task};
use model::Enforcer;
use record::supply::{Budget, MeasuredSupply};

use super::ample::{self, OfCell, Searched};
use super::asked::Asked;
use super::supplied::{Supplied, held, model};
use super::{Facts, keeper, servers};

/// The tasks of a cell as the analysis takes them, the most urgent first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) tasks: Vec<Task>,
    pub(super) policy: Policy,
}

impl Work {
    /// The longest deadline, ns.
    pub(super) fn longest(&self) -> Ns {
        self.tasks
            .iter()
            .map(|task| task.deadline)
            .max()
            .unwrap_or(0)
    }

    /// Whether its deadlines hold with this budget, of a cell whose budget comes up to `behind` ns late.
    pub(super) fn holds(
        &self,
        budget: &Budget,
        behind: Ns,
        facts: &Facts,
        measured: &[MeasuredSupply],
    ) -> bool {
        Supplied::of(budget, behind, self.longest(), facts, measured)
            .is_ok_and(|(supply, _)| holds(&self.tasks, self.policy, &supply) == Ok(true))
    }

    /// The same by the model of the kernel's tick alone, which allows for any lateness of the budget.
    fn holds_by_model(&self, budget: &Budget, facts: &Facts) -> bool {
        model(budget, facts)
            .is_ok_and(|supply| holds(&self.tasks, self.policy, &supply) == Ok(true))
    }
}

/// The budget of least bandwidth with which all deadlines of the cell hold: by its supply, or because it is ample.
pub(super) fn of_cell(
    cell: &Asked,
    share: (Ns, Ns),
    exact: &[Held],
    searched: Searched<'_>,
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Option<Budget> {
    let (work, enforcer) = (&cell.work, cell.enforcer);
    let exact = servers::before(enforcer, exact);
    searched.budget(cell.at, || OfCell {
        by_supply: least(work, enforcer, share, exact, facts, measured),
        ample: ample::of_each_period(cell, share, exact, facts),
        shortest: work.tasks.iter().map(|task| task.period).min().unwrap_or(0),
        is_assumed: cell.is_assumed,
    })
}

/// The budget of least bandwidth that lets all deadlines hold, and its period, by this kernel's supply: of the grid
/// by the model, and every measured budget as it is; behind the supervisors `exact`, which may be on its cpus.
fn least(
    work: &Work,
    enforcer: Enforcer,
    share: (Ns, Ns),
    exact: &[Held],
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Option<Budget> {
    let overdraw = facts.overdraw_ns(enforcer);
    // The cost of holding it is paid in each period, above it, so that short periods are not for nothing.
    let cost = keeper::cost(enforcer);
    let above = |period: Ns| -> Vec<Held> {
        let own = (cost > 0).then(|| Held::exactly(cost, period));
        exact.iter().copied().chain(own).collect()
    };
    let behind = |budget: Ns, period: Ns| {
        let own = Held {
            budget,
            period,
            overdraw,
        };
        postponement(own, &above(period)).ok()
    };
    // The largest budget that fits in its period behind them: larger ones are tested with this much, so that deadlines
    // that hold with a budget hold with every larger one, as the search requires.
    let most = |period: Ns| {
        let taken = |held: &Held| (period + held.period).div_ceil(held.period) * held.budget;
        match above(period).as_slice() {
            [] => Some(period),
            all => period.checked_sub(overdraw + all.iter().map(taken).sum::<Ns>()),
        }
    };
    let by_model = least_reservation(&work.tasks, share, |with_cost_ns, period_ns| {
        let budget_ns = with_cost_ns.saturating_sub(cost);
        let Some(budget_ns) = most(period_ns).map(|most| budget_ns.min(most)) else {
            return false;
        };
        held(enforcer, budget_ns, period_ns)
            .filter(|_| budget_ns > 0)
            .zip(behind(budget_ns, period_ns))
            .is_some_and(|(budget, _)| work.holds_by_model(&budget, facts))
    });
    let mut best = by_model.and_then(|(with_cost_ns, period_ns)| {
        let budget_ns = with_cost_ns.saturating_sub(cost).min(most(period_ns)?);
        held(enforcer, budget_ns, period_ns)
    });
    let pair = |budget: &Budget| (budget.budget_ns.saturating_add(cost), budget.period_ns);
    for supply in measured {
        let same = enforcer == supply.held.enforcer;
        let better = best.is_none_or(|best| less_bandwidth(pair(&supply.held), pair(&best)));
        let holds = behind(supply.held.budget_ns, supply.held.period_ns)
            .is_some_and(|behind| work.holds(&supply.held, behind, facts, measured));
        if same && better && holds {
            best = Some(supply.held);
        }
    }
    best
}
