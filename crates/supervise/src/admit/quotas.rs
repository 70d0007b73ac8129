//! Cells held to quotas of EVL: out of band, before all threads of Linux. All groups of a cpu are refilled at the same instant, so that a
//! group above takes its budget once in each period of those below, and never back to back with one that it had saved: the interference
//! of deferrable servers is one budget of each server above, and all budgets come as long as they are no more than the period together.

use analysis::Ns;
use analysis::linux::Held;
use model::Enforcer;
use model::mission::CellClass;
use record::supply::MeasuredSupply;
use text::units::exact;

use super::cpu::{Bound, Candidate, Unfit, reserved};
use super::{Facts, ample};

fn is_quota(cell: &Candidate<'_>) -> bool {
    cell.asked.enforcer == Enforcer::EvlQuota && cell.budget.is_some()
}

/// Whether the quotas of one cpu are no more than all of it, and the cells' deadlines hold with them.
pub(super) fn check(
    cells: &[Candidate<'_>],
    facts: &Facts,
    measured: &[MeasuredSupply],
    bounds: &mut [Option<Bound>],
    above: &mut Vec<Held>,
) -> Result<(), Unfit> {
    let mut own: Vec<(usize, Held)> = (cells.iter().enumerate())
        .filter(|(_, cell)| is_quota(cell))
        .filter_map(|(at, cell)| {
            cell.budget
                .map(|(budget, period)| (at, Held::exactly(budget, period)))
        })
        .collect();
    own.sort_by_key(|&(at, _)| std::cmp::Reverse(cells[at].asked.band.map(|band| band.highest)));
    let mut behind: Ns = 0;
    let mut groups: Vec<Held> = Vec::new();
    for (at, held) in own {
        let cell = &cells[at];
        let taken = behind.saturating_add(held.budget);
        if taken > held.period {
            return Err(Unfit {
                of: at,
                why: format!(
                    "the quotas on its cpu, its own and those of higher priority, are {} of every {}",
                    exact(taken),
                    exact(held.period)
                ),
                witness: None,
            });
        }
        let ample = || ample::bound(cell, held, &groups, facts);
        let supplied = || reserved(at, cell, held, behind, facts, measured);
        // As for groups of Linux: an assumption that the file states is used first.
        let bound = match cell.asked.is_assumed {
            false => ample().map_or_else(supplied, Ok)?,
            true => supplied().or_else(|unfit| ample().ok_or(unfit))?,
        };
        bounds[at] = Some(bound);
        behind = taken;
        groups.push(held);
        above.push(held);
    }
    Ok(())
}

/// Whether no other real-time cell is on a cpu with one that runs out of band, unless both are held by the same mechanism.
pub(super) fn alone(cells: &[Candidate<'_>]) -> Result<(), Unfit> {
    let is_held =
        |cell: &Candidate<'_>| cell.asked.enforcer.is_out_of_band() && cell.budget.is_some();
    let Some(held) = cells.iter().rposition(is_held) else {
        return Ok(());
    };
    let by = cells[held].asked.enforcer;
    let is_like_it = |cell: &Candidate<'_>| is_held(cell) && cell.asked.enforcer == by;
    let is_real_time =
        |cell: &Candidate<'_>| !cell.asked.is_supervisor && cell.asked.class != CellClass::Other;
    let other = |cell: &Candidate<'_>| is_real_time(cell) && !is_like_it(cell);
    let Some(other) = cells.iter().rposition(other) else {
        return Ok(());
    };
    Err(Unfit {
        // The first one was already granted its place.
        of: held.max(other),
        why: format!(
            "{} runs out of band, before all threads of Linux, and is not analysed beside {}, which `{}` holds on the same cpu: give \
             them different cpus",
            cells[held].asked.called(),
            cells[other].asked.called(),
            cells[other].asked.enforcer.name(),
        ),
        witness: None,
    })
}
