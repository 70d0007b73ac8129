//! Checks of reservations.

use super::tasks::{high, runs_by_deadline};
use crate::Enforcer;
use crate::file::Faults;
use crate::mission::bounds::fixed;
use crate::mission::{Cell, Mission, Place};
use crate::taskset::Reservation;

/// A reservation that no cpu or no kernel could keep.
pub(super) fn check(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    let Some(reservation) = &cell.reservation else {
        return;
    };
    let at = place.key("reservation");
    let cpus = cell.cpu_count();
    let clear = faults.is_clear(&place.key("cpus"));
    if cpus > 1 && clear && faults.says(&at.key("deadline")) {
        faults.report(
            &at,
            &["deadline"],
            "a reservation on several cpus cannot have a deadline",
            "remove it: the budget is supplied by the end of each period",
        );
    }
    if clear {
        range(reservation, cpus, &at, "budget", faults);
        if let Some(beyond) = beyond(mission, cell, reservation, cpus) {
            let (key, what, fix) = beyond;
            faults.report(&at, &[key, "budget", "period"], what, fix);
        }
    }
    let Some(budget) = cell.budget_high else {
        return;
    };
    high(mission, cell, &at, "budget_hi", faults);
    if budget < reservation.budget {
        let what = format!(
            "`budget_hi` is {budget}, less than the budget of {}",
            reservation.budget
        );
        let fix = "`budget_hi` must be at least the budget";
        faults.report(&at, &["budget_hi", "budget"], what, fix);
    } else if clear {
        let reservation = Reservation {
            budget,
            ..*reservation
        };
        range(&reservation, cpus, &at, "budget_hi", faults);
    }
}

/// Budget, deadline and period against each other; `key` is the budget's.
fn range(reservation: &Reservation, cpus: u32, at: &Place, key: &str, faults: &mut Faults<'_>) {
    let within = Reservation {
        deadline: reservation.deadline.min(reservation.period),
        ..*reservation
    };
    if key == "budget"
        && reservation.deadline > reservation.period
        && let Some(fault) = reservation.fault_on(cpus)
        && fault.key == "deadline"
    {
        faults.report(at, &["deadline", "period"], fault.what, fault.fix);
    }
    let due = if faults.says(&at.key("deadline")) {
        "deadline"
    } else {
        "period"
    };
    if let Some(fault) = within.fault_on(cpus) {
        faults.report(at, &[key, due, "period"], fault.what, fault.fix);
    }
}

/// The bound that a reservation exceeds with every enforcer that could hold it.
fn beyond(
    mission: &Mission,
    cell: &Cell,
    reservation: &Reservation,
    cpus: u32,
) -> Option<(&'static str, String, String)> {
    let mut first = None;
    for enforcer in candidates(mission, cell) {
        let beyond = fixed(enforcer, reservation, cpus)?;
        first.get_or_insert(beyond);
    }
    first
}

/// The enforcers that may hold a cell: that of the mission, else those that its class allows; none without a budget.
pub(in super::super) fn candidates(mission: &Mission, cell: &Cell) -> Vec<Enforcer> {
    match mission.enforcer {
        Some(Enforcer::CpusetOnly) => Vec::new(),
        Some(enforcer) => vec![enforcer],
        None if runs_by_deadline(mission, cell) => vec![Enforcer::Deadline],
        None if cell.class.is_some() => vec![Enforcer::RtCgroup],
        None => vec![Enforcer::RtCgroup, Enforcer::Deadline],
    }
}
