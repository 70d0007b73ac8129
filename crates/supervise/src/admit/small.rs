//! Budgets that the kernel's real-time groups enforce only roughly.

use analysis::Ns;
use model::Enforcer;
use text::units::exact;

use super::cpu::Candidate;

/// Below this a program that was granted 1 us every 10 us was seen to get up to 17 % of its cpu instead of 10, ns: the kernel counts use in its
/// tick and where it switches.
const SMALL_NS: Ns = 100_000;

/// A note that a cell with so small a budget gets more than it.
pub(super) fn note(own: &[Candidate<'_>]) -> Option<String> {
    let small = own.iter().find(|cell| {
        let budget = cell.budget.map(|(budget, _)| budget);
        cell.asked.enforcer == Enforcer::RtCgroup && budget.is_some_and(|ns| ns < SMALL_NS)
    })?;
    let (budget, period) = small.budget?;
    Some(format!(
        "{} has a budget of {} every {}, too small for real-time groups to count exactly: programs have got up to \
         1.7 times as much; choose a longer budget and period in the same ratio",
        small.asked.called(),
        exact(budget),
        exact(period)
    ))
}
