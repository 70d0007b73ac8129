//! Checks of the order of shedding.

use super::order::unknown;
use crate::file::Faults;
use crate::mission::{Cell, Mission, Place};

/// The order of shedding.
pub(super) fn check(mission: &Mission, faults: &mut Faults<'_>) {
    let names: Vec<&str> = mission
        .cells
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    for (index, name) in mission.shed.iter().enumerate() {
        let place = Place::top().key("shed").item(index);
        match mission.position(name) {
            None => unknown(faults, &names, &place, name, "`shed`"),
            Some(at) if mission.cells[at].is_high() => faults.report_at(
                &place,
                format!("cell `{name}` of criticality `hi` is never shed"),
                "remove it, or set its criticality to `lo`",
            ),
            Some(_) => {}
        }
    }
}

/// The cell's own settings for shedding.
pub(super) fn of_cell(cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    if cell.is_high() && faults.says(&place.key("when_shed")) {
        faults.report(
            place,
            &["when_shed", "criticality"],
            "a cell of criticality `hi` is never shed",
            "remove the line, or set criticality = \"lo\"",
        );
    }
}
