//! Fix by fewer cells: other missions end first, or cells of this one are removed, those of low criticality first.

use model::mission::Cell;

use super::Edit;
use super::search::Search;

pub(super) fn find(search: &Search<'_>) -> Option<Vec<Edit>> {
    one_mission_less(search).or_else(|| cells_left_out(search))
}

fn one_mission_less(search: &Search<'_>) -> Option<Vec<Edit>> {
    (search.facts.beside.iter())
        .map(|other| vec![Edit::End(other.who.clone())])
        .find(|edits| search.faults_after(edits) == 0)
}

fn cells_left_out(search: &Search<'_>) -> Option<Vec<Edit>> {
    let mission = &search.mission;
    let refused: Vec<&str> = (search.concerned(&[]).iter())
        .map(|cell| cell.name.as_str())
        .collect();
    let mut others: Vec<&Cell> = (mission.cells.iter())
        .filter(|cell| cell.is_real_time())
        .collect();
    // Those that may be shed before the critical ones, those that fit before those that do not.
    others.sort_by_key(|cell| (cell.is_high(), refused.contains(&cell.name.as_str())));
    let needed = |cell: &Cell, without: &[&str]| {
        let stays = |other: &&Cell| !without.contains(&other.name.as_str());
        let mut stays = mission.cells.iter().filter(stays);
        stays.any(|other| other.needs.contains(&cell.name))
    };
    let out = |names: &[&str]| -> Vec<Edit> {
        let edit = |name: &&str| Edit::LeaveOut((*name).to_owned());
        names.iter().map(edit).collect()
    };
    let one = others.iter().map(|cell| vec![cell.name.as_str()]);
    let alone = |names: &Vec<&str>| {
        let free = mission
            .cell(names[0])
            .is_some_and(|cell| !needed(cell, names));
        free && search.faults_after(&out(names)) == 0
    };
    if let Some(found) = one.take_while(|_| search.may_go_on()).find(alone) {
        return Some(out(&found));
    }
    let mut names: Vec<&str> = Vec::new();
    for cell in others {
        if !search.may_go_on() {
            return None;
        }
        if needed(cell, &names) {
            continue;
        }
        names.push(&cell.name);
        if search.faults_after(&out(&names)) == 0 {
            return Some(out(&names));
        }
    }
    None
}
