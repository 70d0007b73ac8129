//! What the thread costs that holds cells to their budgets with the freezer: it runs above all cells of its cpu, and every cell of
//! it costs the others there a little in each period.

use analysis::linux::{Held, Reaction};
use model::Enforcer;

use super::cpu::Candidate;

/// What the thread takes of a cpu for the cells there that the freezer holds, one share for each. It gives the cpu back at once, so
/// that it stands with the supervisors, which the tick does not prolong either.
pub(super) fn above(cells: &[Candidate<'_>]) -> Vec<Held> {
    (cells.iter())
        .filter(|cell| cell.asked.enforcer == Enforcer::Freezer)
        .filter_map(|cell| cell.budget)
        .map(|(_, period)| Held::exactly(Reaction::COST.min(period), period))
        .collect()
}
