//! Fix by another budget: more in the same period, a searched one where the file gives one, or another period where none
//! is found.

use analysis::Ns;
use model::mission::Cell;

use super::super::asked::ns;
use super::Edit;
use super::search::{Search, nearest};

pub(super) fn find(search: &Search<'_>) -> Option<Vec<Edit>> {
    search.by_cell(|cell, edits, open| of_cell(search, cell, edits, open))
}

/// For one cell, after these edits, which leave this much refused.
pub(super) fn of_cell(
    search: &Search<'_>,
    cell: &Cell,
    edits: &[Edit],
    open: usize,
) -> Option<Vec<Edit>> {
    let helps = |more: &[Edit]| search.helps(edits, more, open);
    if let Some(own) = cell.reservation {
        let (budget, period) = (ns(own.budget), ns(own.period));
        if let Some(more) = larger(cell, budget, period, &helps) {
            return Some(more);
        }
        let sought = vec![Edit::Reservation(cell.name.clone(), None)];
        if !cell.tasks.is_empty() && helps(&sought) {
            return Some(sought);
        }
    }
    let shortest = (cell.tasks.iter())
        .map(|task| ns(task.timing.deadline))
        .min()?;
    [1, 2, 4, 8]
        .into_iter()
        .find_map(|part| larger(cell, 0, (shortest / part / 1_000) * 1_000, &helps))
}

/// A budget of this period that is larger and helps.
fn larger(
    cell: &Cell,
    budget: Ns,
    period: Ns,
    helps: &impl Fn(&[Edit]) -> bool,
) -> Option<Vec<Edit>> {
    let all = period.saturating_mul(Ns::from(cell.cpu_count()));
    let edit = |budget| vec![Edit::Reservation(cell.name.clone(), Some((budget, period)))];
    let ladder = (1..=19).map(|twentieth| (all / 20_000) * twentieth * 1_000);
    let found = nearest(budget, ladder.filter(|more| *more > budget), |budget| {
        helps(&edit(budget))
    })?;
    Some(edit(found))
}
