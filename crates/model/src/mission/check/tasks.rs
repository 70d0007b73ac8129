//! Checks of a cell's tasks.

use crate::Enforcer;
use crate::file::Faults;
use crate::mission::{Cell, CellClass, Mission, Place};

/// The tasks of a cell: impossible ones, and ones that do not fit its class.
pub(super) fn check(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    class(mission, cell, place, faults);
    only_tasks(mission, cell, place, faults);
    let deadlines = runs_by_deadline(mission, cell);
    for (number, task) in cell.tasks.iter().enumerate() {
        let at = place.task(number);
        let timing = &task.timing;
        let said = faults.says(&at.key("deadline"));
        let due = if said { "deadline" } else { "period" };
        if timing.wcet > timing.deadline {
            let what = format!(
                "the wcet of task `{}` is {}, longer than its deadline of {}",
                timing.name, timing.wcet, timing.deadline
            );
            let fix = "the wcet must be at most the deadline: otherwise a job misses it even alone";
            faults.report(&at, &["wcet", due], what, fix);
        }
        if let Some(fault) = timing.high_fault() {
            faults.report(&at, &["wcet_hi", "wcet", due], fault.what, fault.fix);
        }
        if deadlines && timing.deadline > timing.period {
            let what = format!(
                "the deadline of task `{}` of {} exceeds its period of {}, which SCHED_DEADLINE does not support",
                timing.name, timing.deadline, timing.period
            );
            let fix = "it must be at most the period, or choose a class other than `deadline`";
            faults.report(&at, &["deadline", "period"], what, fix);
        }
        if faults.says(&at.key("wcet_hi")) {
            high(mission, cell, &at, "wcet_hi", faults);
        }
    }
}

/// Whether the threads of the cell are certain to be SCHED_DEADLINE threads.
pub(in super::super) fn runs_by_deadline(mission: &Mission, cell: &Cell) -> bool {
    match cell.class {
        Some(class) => class == CellClass::Deadline,
        None => mission.enforcer == Some(Enforcer::Deadline),
    }
}

/// A time of high mode has a meaning only in a mission that has one, for a cell that runs in it.
pub(super) fn high(mission: &Mission, cell: &Cell, at: &Place, key: &str, faults: &mut Faults<'_>) {
    if mission.modes.is_none() && !faults.says(&Place::top().key("modes")) {
        let what = format!("`{key}` has no meaning in a mission of one mode");
        faults.report(at, &[key], what, "add [modes], or remove the line");
    }
    if !cell.is_high() {
        let what = format!(
            "`{key}` has no meaning in a cell of criticality `lo`, which is shed in high mode"
        );
        let fix = "set criticality = \"hi\", or remove the line";
        faults.report(at, &[key], what, fix);
    }
}

/// Whether a cell with `only_tasks` can have a budget that its tasks cannot use up.
fn only_tasks(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    if !cell.only_tasks {
        return;
    }
    let what = match (cell.class, mission.enforcer) {
        (Some(CellClass::Deadline), _) => {
            "`only_tasks` has no effect in class `deadline`, where other threads do not use up the budget"
                .to_owned()
        }
        (Some(CellClass::Other), _) => {
            "`only_tasks` has no effect in class `other`, whose tasks are not analysed".to_owned()
        }
        (_, Some(enforcer)) if !enforcer.has_ample_budgets() => format!(
            "`only_tasks` has no effect under enforcer `{}`, which has no ample budgets",
            enforcer.name()
        ),
        _ if cell.tasks.is_empty() => format!(
            "`only_tasks` says that cell `{}` runs nothing but its tasks, and it has none",
            cell.name
        ),
        _ => return,
    };
    let fix = match cell.tasks.is_empty() && cell.is_real_time() {
        true => "add [[cell.task]], or remove it",
        false => "remove it",
    };
    faults.report(place, &["only_tasks", "class", "task"], what, fix);
}

/// The needs of an enforcer that holds threads out of band.
fn out_of_band(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    let Some(enforcer) = mission
        .enforcer
        .filter(|enforcer| enforcer.is_out_of_band())
    else {
        return;
    };
    if !faults.is_clear(&Place::top().key("enforcer")) {
        return;
    }
    let name = enforcer.name();
    if !cell.rights.evl && faults.is_whole(&place.key("rights")) {
        let what = format!(
            "the enforcer `{name}` holds threads of EVL only, which cell `{}` cannot have",
            cell.name
        );
        let fix = "set evl = true in its `rights`, class = \"other\", or another `enforcer`";
        faults.report(place, &["rights", "class"], what, fix);
    }
    if cell.reservation.is_none() && faults.is_clear(&place.key("reservation")) {
        let what = format!(
            "cell `{}` names no reservation, and none is computed for the enforcer `{name}`",
            cell.name
        );
        let fix = match enforcer {
            Enforcer::EvlQuota => "add `reservation`, a whole percent of every second",
            _ => "add `reservation`, from which the windows of its cpu are computed",
        };
        faults.report(place, &["reservation", "task"], what, fix);
    }
}

/// The needs of a class, and the settings that it cannot have.
fn class(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    if !faults.is_clear(&place.key("class")) {
        return;
    }
    if let (Some(enforcer), Some(class)) = (mission.enforcer, cell.class)
        && faults.is_clear(&Place::top().key("enforcer"))
        && !enforcer.holds(class)
    {
        let what = format!(
            "the enforcer `{}` does not hold threads of class `{}`",
            enforcer.name(),
            class.name()
        );
        let other = match class {
            CellClass::Deadline => "fifo",
            _ => "deadline",
        };
        let fix = format!("set class = \"{other}\", or another `enforcer`");
        faults.report(place, &["class"], what, fix);
    }
    if cell.is_real_time() {
        let says = |key: &str| faults.says(&place.key(key));
        if !says("task") && !says("reservation") {
            let what = format!(
                "cell `{}` does not declare how much cpu time it needs",
                cell.name
            );
            let fix =
                "add [[cell.task]] or `reservation`, or set class = \"other\" for best effort";
            faults.report(place, &["class", "task", "reservation"], what, fix);
        }
        out_of_band(mission, cell, place, faults);
        return;
    }
    for key in ["task", "reservation", "priorities"] {
        if faults.says(&place.key(key)) {
            faults.report(
                place,
                &[key],
                format!("class `other` guarantees nothing, but `{key}` asks for a guarantee"),
                "remove it, or set class = \"fifo\" or \"deadline\"",
            );
        }
    }
}
