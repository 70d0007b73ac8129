//! Checks of priorities, within a cell and among cells that share a cpu.

use super::tasks::runs_by_deadline;
use super::top::list;
use crate::file::Faults;
use crate::mission::{Band, Cell, Mission, Place};

/// The priorities within every cell, and among cells that may share a cpu.
pub(super) fn check(mission: &Mission, faults: &mut Faults<'_>) {
    let mut bands: Vec<(usize, Band)> = Vec::new();
    for (index, cell) in mission.cells.iter().enumerate() {
        let place = Place::cell(index);
        if !faults.is_clear(&place) || !faults.is_clear(&place.key("class")) {
            continue;
        }
        if runs_by_deadline(mission, cell) {
            of_deadline(cell, &place, faults);
        } else if cell.is_real_time() {
            of_cell(cell, &place, faults);
            let is_read = faults.is_whole(&place.key("priorities"));
            let band = (cell.priorities).filter(|band| is_read && band.lowest <= band.highest);
            bands.extend(band.map(|band| (index, band)));
        }
    }
    for (number, (index, band)) in bands.iter().enumerate() {
        if faults.are_many() {
            break;
        }
        for (before, other) in &bands[..number] {
            if band.overlaps(*other) {
                let cells = (&mission.cells[*before], &mission.cells[*index]);
                collision((*before, *other), (*index, *band), cells, faults);
            }
        }
    }
}

/// Threads out of band run before all of Linux, so nothing is guaranteed to a cell in band that shares a cpu with one that may have them.
pub(super) fn out_of_band(mission: &Mission, faults: &mut Faults<'_>) {
    let all = || mission.cells.iter().enumerate();
    for (index, cell) in all().filter(|(_, cell)| cell.rights.evl) {
        let others = all().filter(|(_, other)| !other.rights.evl && other.is_real_time());
        for (beside, other) in others {
            let places = (Place::cell(beside), Place::cell(index));
            if faults.are_many() || !have_clear_cpus(&places, faults) {
                return;
            }
            if let Some(whereabouts) = whereabouts(other, cell) {
                let at = places.1.key("rights").key("evl");
                let what = format!(
                    "cells `{}` and `{}` {whereabouts}, and the latter's threads out of band run before all of Linux",
                    other.name, cell.name
                );
                let fix = "give each `cpus` of its own, or the first class = \"other\"";
                faults.report_at(&at, what, fix);
                break;
            }
        }
    }
}

/// Nothing is wrong with the cpus of two cells.
fn have_clear_cpus(places: &(Place, Place), faults: &Faults<'_>) -> bool {
    faults.is_clear(&places.0.key("cpus")) && faults.is_clear(&places.1.key("cpus"))
}

/// How two cells meet, a clause; `None`: they share no cpu.
fn whereabouts(first: &Cell, second: &Cell) -> Option<String> {
    if first.cpus.is_empty() || second.cpus.is_empty() {
        return Some("may be placed on the same cpu".to_owned());
    }
    let shared: Vec<u32> = (first.cpus.iter().copied())
        .filter(|cpu| second.cpus.contains(cpu))
        .collect();
    (!shared.is_empty()).then(|| format!("share cpu {}", list(&shared)))
}

/// SCHED_DEADLINE has no priorities.
fn of_deadline(cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    let what = "SCHED_DEADLINE threads have no priority";
    let fix = "remove it, or set class = \"fifo\" and an enforcer other than `deadline`";
    if cell.priorities.is_some() {
        faults.report(place, &["priorities"], what, fix);
    }
    for (number, task) in cell.tasks.iter().enumerate() {
        if task.timing.priority.is_some() {
            faults.report(&place.task(number), &["priority"], what, fix);
        }
    }
}

/// The priorities of a cell's tasks among themselves and within their band.
fn of_cell(cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    if let Some(band) = cell.priorities.filter(|band| band.lowest > band.highest) {
        faults.report(
            &place.key("priorities"),
            &["lowest", "highest"],
            format!(
                "the lowest priority of {} is above the highest of {}",
                band.lowest, band.highest
            ),
            "swap them",
        );
    }
    let given = cell.tasks.iter().any(|task| task.timing.priority.is_some());
    let mut seen = std::collections::HashMap::new();
    for (number, task) in cell.tasks.iter().enumerate() {
        let at = place.task(number);
        let name = task.name();
        let Some(priority) = task.timing.priority else {
            if given && faults.is_clear(&at) {
                faults.report(
                    &at,
                    &["priority"],
                    format!(
                        "task `{name}` has no priority, but others of cell `{}` do",
                        cell.name
                    ),
                    "give every task of the cell one, or none to order them by deadline",
                );
            }
            continue;
        };
        if let Some(first) = seen.insert(priority, name) {
            faults.report(
                &at,
                &["priority"],
                format!("tasks `{first}` and `{name}` both have priority {priority}"),
                "the order among equals is not analysed; give each a different priority",
            );
        }
    }
}

/// Two bands that overlap, unless the cells cannot share a cpu.
fn collision(
    (before, other): (usize, Band),
    (index, band): (usize, Band),
    (first, second): (&Cell, &Cell),
    faults: &mut Faults<'_>,
) {
    let places = (Place::cell(before), Place::cell(index));
    if !have_clear_cpus(&places, faults) {
        return;
    }
    let Some(whereabouts) = whereabouts(first, second) else {
        return;
    };
    let said = places.1.key("priorities");
    let line = faults.line(&places.0);
    faults.report_at(
        &said,
        format!(
            "cells `{}` (line {line}, priorities {other}) and `{}` (priorities {band}) {whereabouts} and their priorities overlap",
            first.name, second.name
        ),
        "give each cell different priorities, or different cpus",
    );
}
