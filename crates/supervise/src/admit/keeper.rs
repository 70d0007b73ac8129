//! What the thread costs that holds cells to their budgets with the freezer: it runs above all cells of its cpu, and every cell of
//! it costs the others there a little in each period.

use analysis::Ns;
use analysis::linux::{Held, Reaction};
use model::Enforcer;

use super::Facts;
use super::cpu::Candidate;

/// What it takes of a cpu to hold a cell with this enforcer, ns in each of its periods, beside what the cell itself gets.
pub(super) fn cost(enforcer: Enforcer) -> Ns {
    match enforcer {
        Enforcer::Freezer => Reaction::COST,
        _ => 0,
    }
}

/// What the thread takes of a cpu for the cells there that the freezer holds, one share for each. It gives the cpu back at once, so
/// that it stands with the supervisors, which the tick does not prolong either.
pub(super) fn above(cells: &[Candidate<'_>]) -> Vec<Held> {
    (cells.iter())
        .filter(|cell| cell.asked.enforcer == Enforcer::Freezer)
        .filter_map(|cell| cell.budget)
        .map(|(_, period)| Held::exactly(Reaction::COST.min(period), period))
        .collect()
}

/// What guarantees rest on where the freezer holds cells, of this mission or beside it.
pub(super) fn note(candidates: &[Candidate<'_>], facts: &Facts) -> Option<String> {
    let is_held = |cell: &Candidate<'_>| cell.asked.enforcer == Enforcer::Freezer;
    let of = match facts.measured_reaction {
        Some(_) => "the most that was measured on this machine",
        None => "as 99 of 100 kept to where that was measured, on another machine",
    };
    candidates.iter().any(is_held).then(|| {
        format!(
            "a cell that the freezer holds is taken to run on for up to {:.2} ms once its budget is used up, {of}; what less urgent cells of its \
             cpu are granted rests on that",
            facts.reaction().overrun as f64 / 1e6
        )
    })
}
