//! The cost of the freezer's enforcing thread: it runs above all cells of its cpu, and each cell that it holds costs the
//! others there a little in each period.

use analysis::Ns;
use analysis::linux::{Held, Reaction};
use model::Enforcer;
use text::units::exact;

use super::Facts;
use super::cpu::Candidate;

/// The cost of holding a cell with this enforcer: ns of cpu time in each of its periods, besides the cell's own.
pub(super) fn cost(enforcer: Enforcer) -> Ns {
    match enforcer {
        Enforcer::Freezer => Reaction::COST,
        _ => 0,
    }
}

/// The use of a cpu by the thread for the cells that the freezer holds there, one share for each. It gives the cpu back
/// at once, so it is treated like the supervisors, which the tick does not prolong either.
pub(super) fn above(cells: &[Candidate<'_>]) -> Vec<Held> {
    (cells.iter())
        .filter(|cell| cell.asked.enforcer == Enforcer::Freezer)
        .filter_map(|cell| cell.budget)
        .map(|(_, period)| Held::exactly(Reaction::COST.min(period), period))
        .collect()
}

/// The assumptions of guarantees where the freezer holds cells, of this mission or beside it.
pub(super) fn note(candidates: &[Candidate<'_>], facts: &Facts) -> Option<String> {
    let is_held = |cell: &Candidate<'_>| cell.asked.enforcer == Enforcer::Freezer;
    let of = match facts.measured_reaction {
        Some(_) => "the most measured on this machine",
        None => "as in 99 % of the cases measured on another machine",
    };
    candidates.iter().any(is_held).then(|| {
        format!(
            "a cell held by the freezer is assumed to run on for up to {} after its budget is used up, {of}; the grants \
             of less urgent cells on its cpu rely on that",
            exact(facts.reaction().overrun)
        )
    })
}
