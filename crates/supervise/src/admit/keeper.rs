//! What the thread costs that holds cells to their budgets with the freezer: it runs above all cells of its cpu, and every cell of
//! it costs the others there a little in each period.

use analysis::Ns;
use analysis::linux::Held;
use model::Enforcer;

use super::cpu::Candidate;

/// Cpu time that holding one group takes in each of its periods, ns: the most of the ten single budgets in docs/src/freezer.md,
/// 0.50 % of 50 ms; groups that share their wake-ups cost a third of it, idle ones next to nothing. A mean over 10 s, of a machine
/// with other work.
pub(super) const COST_NS: Ns = 250_000;

/// What the thread takes of a cpu for the cells there that the freezer holds, one share for each. It gives the cpu back at once, so
/// that it stands with the supervisors, which the tick does not prolong either.
pub(super) fn above(cells: &[Candidate<'_>]) -> Vec<Held> {
    (cells.iter())
        .filter(|cell| cell.asked.enforcer == Enforcer::Freezer)
        .filter_map(|cell| cell.budget)
        .map(|(_, period)| Held {
            budget: COST_NS.min(period),
            period,
        })
        .collect()
}
