//! Checks of the order in which cells are started.

use crate::file::Faults;
use crate::file::nearest;
use crate::mission::order::cycles;
use crate::mission::{Mission, Place};

/// Maximum number of cycles that are reported one by one.
const CYCLES: usize = 32;

/// Which cell waits for which: names of no cell, and cells that wait for each other.
pub(super) fn check(mission: &Mission, faults: &mut Faults<'_>) {
    let names: Vec<&str> = mission
        .cells
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    for (index, cell) in mission.cells.iter().enumerate() {
        let place = Place::cell(index);
        for (key, wanted) in [("after", &cell.after), ("needs", &cell.needs)] {
            for (at, name) in wanted.iter().enumerate() {
                if !names.contains(&name.as_str()) {
                    unknown(
                        faults,
                        &names,
                        &place.key(key).item(at),
                        name,
                        &format!("`{key}` of cell `{}`", cell.name),
                    );
                }
            }
        }
        for (at, name) in cell.needs.iter().enumerate() {
            let place = place.key("needs").item(at);
            let Some(needed) = mission.position(name).map(|at| &mission.cells[at]) else {
                continue;
            };
            if cell.is_high() && !needed.is_high() {
                faults.report_at(
                    &place,
                    format!(
                        "cell `{}` of criticality `hi` needs `{name}`, which may be shed",
                        cell.name
                    ),
                    format!(
                        "set the criticality of `{name}` to `hi` too, or wait for it with `after`"
                    ),
                );
            }
        }
    }
    let found = cycles(mission.waits(), CYCLES + 1);
    for cycle in found.iter().take(CYCLES) {
        let [first, ..] = cycle.as_slice() else {
            continue;
        };
        let next = cycle.get(1).unwrap_or(first);
        let name = |at: &usize| mission.cells[*at].name.as_str();
        let (what, fix) = if let [only] = cycle.as_slice() {
            (
                format!("cell `{}` waits for itself", name(only)),
                "remove its name from its `after` and `needs`",
            )
        } else {
            let mut path: Vec<&str> = cycle.iter().map(name).collect();
            path.push(name(first));
            (
                format!("the cells {} wait for each other", path.join(" -> ")),
                "remove one of them from `after` or `needs` of the one before it",
            )
        };
        faults.report_at(&where_said(mission, *first, name(next)), what, fix);
    }
    if found.len() > CYCLES {
        faults.report(
            &Place::top(),
            &["cell"],
            format!("there are more than {CYCLES} cycles of cells that wait for each other"),
            "fix these first",
        );
    }
}

/// The place where the cell says that it waits for the other.
fn where_said(mission: &Mission, index: usize, other: &str) -> Place {
    let cell = &mission.cells[index];
    let place = Place::cell(index);
    for (key, names) in [("after", &cell.after), ("needs", &cell.needs)] {
        if let Some(at) = names.iter().position(|name| name == other) {
            return place.key(key).item(at);
        }
    }
    place
}

/// A name that should be that of a cell and is not.
pub(super) fn unknown(
    faults: &mut Faults<'_>,
    names: &[&str],
    place: &Place,
    name: &str,
    who: &str,
) {
    // A cell without a legible name may be the one that is meant.
    let legible = (0..names.len()).all(|index| !names[index].is_empty());
    if !legible {
        return;
    }
    let fix = match nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.len() <= 16 => format!("the cells are {}", names.join(", ")),
        None => "name a cell of the file".to_owned(),
    };
    let what = format!("{who} names `{name}`, which is not a cell");
    faults.report_at(place, what, fix);
}
