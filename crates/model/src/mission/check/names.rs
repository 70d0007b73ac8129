//! Checks of names.

use std::collections::HashMap;

use crate::file::Faults;
use crate::mission::{Mission, Place};

/// Reserved: the supervisor appears with this name among the cells in tables and in the mission's cgroups.
const SUPERVISOR: &str = "supervisor";

/// Duplicate names, and names that are reserved.
pub(super) fn check(mission: &Mission, faults: &mut Faults<'_>) {
    let mut cells = HashMap::new();
    for (index, cell) in mission.cells.iter().enumerate() {
        let place = Place::cell(index);
        if let Some(first) = first(&mut cells, &cell.name, place.clone()) {
            let what = format!("there are two cells named `{}`", cell.name);
            twice(faults, &place, &first, "name", what);
        }
        if cell.name == SUPERVISOR {
            let what = format!("the name `{SUPERVISOR}` is reserved for the mission's supervisor");
            let fix = "give the cell another name".to_owned();
            faults.report(&place, &["name"], what, fix);
        }
        let (mut tasks, mut threads) = (HashMap::new(), HashMap::new());
        for (number, task) in cell.tasks.iter().enumerate() {
            let at = place.task(number);
            if let Some(first) = first(&mut tasks, task.name(), at.clone()) {
                let what = format!(
                    "there are two tasks named `{}` in cell `{}`",
                    task.name(),
                    cell.name
                );
                twice(faults, &at, &first, "name", what);
            }
            if let Some(thread) = &task.thread
                && let Some(first) = first(&mut threads, thread, at.clone())
            {
                let what = format!(
                    "two tasks of cell `{}` have the thread `{thread}`",
                    cell.name
                );
                twice(faults, &at, &first, "thread", what);
            }
        }
    }
}

/// Where the name occurred first, if it is not new. Missing names are reported elsewhere.
fn first<'n>(seen: &mut HashMap<&'n str, Place>, name: &'n str, place: Place) -> Option<Place> {
    if name.is_empty() {
        return None;
    }
    match seen.get(name) {
        Some(first) => Some(first.clone()),
        None => {
            seen.insert(name, place);
            None
        }
    }
}

fn twice(faults: &mut Faults<'_>, second: &Place, first: &Place, key: &str, what: String) {
    let line = faults.line(&first.key(key));
    let fix = format!("the first is on line {line}; give each a different {key}");
    faults.report(second, &[key], what, fix);
}
