//! Where the curve of a supply bends.

use analysis::{Ns, Supply};

use super::MOST_POINTS;
use crate::judge::CellSupply;

/// The corners of the supply: the end of each pause and of each stretch of supply.
pub(super) fn corners(supply: &CellSupply, until: Ns) -> Vec<(Ns, Ns)> {
    let mut corners = vec![(0, 0)];
    let (budget, _) = supply.rate();
    let mut done: Ns = 0;
    while !matches!(supply, CellSupply::Whole) && corners.len() < MOST_POINTS {
        let Some(begins) = done.checked_add(1).and_then(|work| supply.inverse(work)) else {
            break;
        };
        if begins > until {
            break;
        }
        corners.push((begins - 1, done));
        let Some((ends, stretch)) = stretch(supply, begins, done + 1, budget) else {
            break;
        };
        corners.push((ends, stretch));
        done = stretch;
    }
    corners.push((until, supply.sbf(until)));
    corners.retain(|&(t, _)| t <= until);
    corners.sort_unstable();
    corners.dedup();
    corners
}

/// The end of the stretch at full rate from `work` at `t`, at most the end of the budget: the instant, and the work by
/// then.
fn stretch(supply: &CellSupply, t: Ns, work: Ns, budget: Ns) -> Option<(Ns, Ns)> {
    let most = work.div_ceil(budget.max(1)).checked_mul(budget)?;
    let goes_on = |to: Ns| supply.inverse(to).is_some_and(|at| at - t == to - work);
    let (mut low, mut high) = (work, most.checked_add(1)?);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if goes_on(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((t + (low - work), low))
}
