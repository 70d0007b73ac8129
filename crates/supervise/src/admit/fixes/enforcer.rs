//! Another mechanism that holds cells to their budgets: of a cell by its class, or of the mission; or none.

use model::mission::{Cell, CellClass, Enforcer};

use super::Edit;
use super::search::Search;

/// Mechanisms that enforce a budget.
pub(super) fn enforced(search: &Search<'_>) -> Option<Vec<Edit>> {
    let auto = search.mission.enforcer.map(|_| Edit::Enforcer(None));
    let by_class = |class: CellClass| {
        search.by_cell(|cell, edits, open| {
            let first = auto.clone().filter(|auto| !edits.contains(auto));
            let own = first
                .into_iter()
                .chain(of_class(cell, class))
                .collect::<Vec<_>>();
            search.helps(edits, &own, open).then_some(own)
        })
    };
    [CellClass::Deadline, CellClass::Fifo]
        .into_iter()
        .find_map(by_class)
        .or_else(|| {
            [Enforcer::RtCgroup, Enforcer::Deadline]
                .into_iter()
                .find_map(|enforcer| everywhere(search, enforcer))
        })
}

/// Cpus alone.
pub(super) fn none(search: &Search<'_>) -> Option<Vec<Edit>> {
    everywhere(search, Enforcer::CpusetOnly)
}

/// One class for a cell.
fn of_class(cell: &Cell, class: CellClass) -> Vec<Edit> {
    let mut edits = vec![Edit::Class(cell.name.clone(), class)];
    if cell.priorities.is_some() && class == CellClass::Deadline {
        edits.push(Edit::NoPriorities(cell.name.clone()));
    }
    edits
}

/// One mechanism for all cells, in the class that it needs.
fn everywhere(search: &Search<'_>, enforcer: Enforcer) -> Option<Vec<Edit>> {
    if search.mission.enforcer == Some(enforcer) || search.facts.has(enforcer).is_err() {
        return None;
    }
    let class = match enforcer {
        Enforcer::Deadline => CellClass::Deadline,
        Enforcer::RtCgroup | Enforcer::CpusetOnly => CellClass::Fifo,
    };
    let mut edits = vec![Edit::Enforcer(Some(enforcer))];
    for cell in search
        .mission
        .cells
        .iter()
        .filter(|cell| cell.is_real_time())
    {
        if cell.class.is_some_and(|own| !enforcer.holds(own)) {
            edits.extend(of_class(cell, class));
        }
    }
    (search.faults_after(&edits) == 0).then_some(edits)
}
