//! Fix by another enforcer: of a cell by its class, or of the mission; or by none.

use model::Enforcer;
use model::mission::{Cell, CellClass};

use super::search::Search;
use super::{Edit, budget};

/// Mechanisms that enforce a budget.
pub(super) fn enforced(search: &Search<'_>) -> Option<Vec<Edit>> {
    [CellClass::Deadline, CellClass::Fifo]
        .into_iter()
        .find_map(|class| by_class(search, class, true))
        .or_else(|| {
            let with_budgets = Enforcer::OF_CHOICE.iter().filter(|each| each.has_budgets());
            with_budgets
                .copied()
                .find_map(|enforcer| everywhere(search, enforcer))
        })
}

/// Cpus alone: for as few cells as suffice where their class means so, else for all.
pub(super) fn none(search: &Search<'_>) -> Option<Vec<Edit>> {
    by_class(search, CellClass::Fifo, false)
        .filter(|edits| search.loses_budget(edits))
        .or_else(|| everywhere(search, Enforcer::CpusetOnly))
}

/// This class for as many cells as need it, with the enforcer that the kernel then has; only where they are `held` to a budget, or
/// were to none before.
fn by_class(search: &Search<'_>, class: CellClass, held: bool) -> Option<Vec<Edit>> {
    let auto = search.mission.enforcer.map(|_| Edit::Enforcer(None));
    let whole: Vec<Edit> = auto.into_iter().chain(anywhere(search, class)).collect();
    search.by_cell(|cell, edits, open| {
        let first = whole.iter().filter(|edit| !edits.contains(edit)).cloned();
        let own: Vec<Edit> = first.chain(of_class(search, cell, class)).collect();
        let all: Vec<Edit> = edits.iter().chain(&own).cloned().collect();
        if !(held && search.loses_budget(&all)) && search.helps(edits, &own, open) {
            return Some(own);
        }
        // Beside those of another class its budget may have become too small.
        (!edits.is_empty())
            .then(|| budget::of_cell(search, cell, edits, open))
            .flatten()
    })
}

/// Whether threads of this class run on any cpu, so that `cpus` cannot be kept.
fn roams(search: &Search<'_>, class: CellClass) -> bool {
    class == CellClass::Deadline && search.facts.deadline_on_one_cpu.is_err()
}

/// The mission's `cpus` left out where a class cannot keep to them.
fn anywhere(search: &Search<'_>, class: CellClass) -> Option<Edit> {
    let named = !search.mission.cpus.is_empty();
    (named && roams(search, class)).then(|| Edit::MissionCpus(Vec::new()))
}

/// One class for a cell.
fn of_class(search: &Search<'_>, cell: &Cell, class: CellClass) -> Vec<Edit> {
    let own = (cell.class.filter(|own| own.analysed() == class)).unwrap_or(class);
    let mut edits = vec![Edit::Class(cell.name.clone(), own)];
    if cell.priorities.is_some() && class == CellClass::Deadline {
        edits.push(Edit::NoPriorities(cell.name.clone()));
    }
    if !cell.cpus.is_empty() && roams(search, class) {
        edits.push(Edit::Cpus(cell.name.clone(), Vec::new()));
    }
    edits
}

/// One mechanism for all cells, in the class that it needs, where that suffices.
fn everywhere(search: &Search<'_>, enforcer: Enforcer) -> Option<Vec<Edit>> {
    of_all(search, enforcer).filter(|edits| search.faults_after(edits) == 0)
}

/// One mechanism for all cells, in the class that it needs; `None`: they have it, or this kernel has not.
pub(super) fn of_all(search: &Search<'_>, enforcer: Enforcer) -> Option<Vec<Edit>> {
    if search.mission.enforcer == Some(enforcer) || search.facts.has(enforcer).is_err() {
        return None;
    }
    let class = enforcer.usual_class();
    let mut edits = vec![Edit::Enforcer(Some(enforcer))];
    edits.extend(anywhere(search, class));
    let cells = search.mission.cells.iter();
    for cell in cells.filter(|cell| cell.is_real_time()) {
        edits.extend(of_class(search, cell, class));
    }
    Some(edits)
}
