//! Whether the values of a mission are consistent, as far as this can be checked without a machine. Each file checks one
//! concern; all of them check the whole mission, even after faults found by others.

mod health;
mod image;
mod machine;
mod names;
pub(super) mod on_machine;
mod order;
mod partition;
mod priorities;
mod reservation;
mod rights;
mod shed;
mod swaps;
mod tasks;
mod top;

use super::{Cell, Mission, Place};
use crate::file::Faults;

/// Reports every fault of the mission.
pub(super) fn mission(mission: &Mission, faults: &mut Faults<'_>) {
    top::check(mission, faults);
    names::check(mission, faults);
    order::check(mission, faults);
    for (index, cell) in mission.cells.iter().enumerate() {
        let place = Place::cell(index);
        if !faults.is_clear(&place) {
            continue;
        }
        image::check(cell, &place, faults);
        machine::check(mission, cell, &place, faults);
        partition::check(mission, cell, &place, faults);
        tasks::check(mission, cell, &place, faults);
        reservation::check(mission, cell, &place, faults);
        rights::check(cell, &place, faults);
        health::check(mission, cell, &place, faults);
        shed::of_cell(cell, &place, faults);
        restart(cell, &place.key("restart"), faults);
    }
    priorities::check(mission, faults);
    priorities::out_of_band(mission, faults);
    shed::check(mission, faults);
}

fn restart(cell: &Cell, at: &Place, faults: &mut Faults<'_>) {
    let (least, most) = (cell.restart.backoff_min, cell.restart.backoff_max);
    if least > most {
        let keys = if faults.says(&at.key("backoff_min")) {
            ["backoff_min", "backoff_max"]
        } else {
            ["backoff_max", "backoff_min"]
        };
        let what = format!("the shortest wait of {least} exceeds the longest of {most}");
        faults.report(
            at,
            &keys,
            what,
            "`backoff_min` must be at most `backoff_max`",
        );
    }
}
