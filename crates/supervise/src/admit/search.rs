use analysis::inside::{Policy, holds};
use analysis::{Ns, Task};
use model::mission::Enforcer;
use record::supply::{Budget, MeasuredSupply};

use super::Facts;
use super::supplied::{Supplied, held};

/// Budgets are whole multiples of this, ns.
pub(super) const GRID_NS: Ns = 100_000;
/// Periods are whole multiples of this, ns.
const PERIOD_STEP_NS: Ns = 1_000_000;
/// Periods that are tried, at most.
const PERIODS: Ns = 128;

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
}

/// The budget of least bandwidth that lets all deadlines hold, and its period, by what this kernel supplies. Of equal ones
/// that of the longest period, which is enforced most exactly.
///
/// For each period, the least budget on a grid of 100 us by bisection: a larger budget supplies no less, by the model; and
/// of what was measured every budget is tried as it is.
pub(super) fn least(
    work: &Work,
    enforcer: Enforcer,
    share: (Ns, Ns),
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Option<Budget> {
    let longest = work
        .tasks
        .iter()
        .map(|task| 2 * task.deadline.min(task.period))
        .min()?;
    let most = (longest / PERIOD_STEP_NS).max(1);
    let step = most.div_ceil(PERIODS);
    let mut best: Option<Budget> = None;
    let better = |new: &Budget, old: &Option<Budget>| match old {
        None => true,
        Some(old) => {
            let [new_share, old_share] = [
                u128::from(new.budget_ns) * u128::from(old.period_ns),
                u128::from(old.budget_ns) * u128::from(new.period_ns),
            ];
            new_share < old_share || (new_share == old_share && new.period_ns > old.period_ns)
        }
    };
    for period in (1..=most).step_by(usize::try_from(step).ok()?) {
        let period_ns = period * PERIOD_STEP_NS;
        let cap = period_ns / share.1.max(1) * share.0
            + period_ns % share.1.max(1) * share.0 / share.1.max(1);
        let of = |grains: Ns| held(enforcer, grains * GRID_NS, period_ns);
        let fits = |grains: Ns| of(grains).is_some_and(|budget| work.holds(&budget, 0, facts, &[]));
        let (mut low, mut high) = (0, cap / GRID_NS);
        if high == 0 || !fits(high) {
            continue;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        if let Some(found) = of(high).filter(|found| better(found, &best)) {
            best = Some(found);
        }
    }
    for supply in measured {
        let same = enforcer.analysed() == Some(supply.held.enforcer);
        if same && work.holds(&supply.held, 0, facts, measured) && better(&supply.held, &best) {
            best = Some(supply.held);
        }
    }
    best
}

/// The least budget of this period with which all deadlines hold though it comes up to `behind` ns late; `None`: not even the
/// whole period.
pub(super) fn least_budget(
    work: &Work,
    enforcer: Enforcer,
    period_ns: Ns,
    behind: Ns,
    facts: &Facts,
) -> Option<Ns> {
    let fits = |grains: Ns| {
        held(enforcer, (grains * GRID_NS).min(period_ns), period_ns)
            .is_some_and(|budget| work.holds(&budget, behind, facts, &[]))
    };
    let (mut low, mut high) = (0, period_ns.div_ceil(GRID_NS));
    if !fits(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some((high * GRID_NS).min(period_ns))
}
