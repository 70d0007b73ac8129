//! Fix by other cpus: any, or one more for the mission.

use super::super::Outcome;
use super::Edit;
use super::search::Search;

pub(super) fn find(search: &Search<'_>) -> Option<Vec<Edit>> {
    elsewhere(search).or_else(|| wider(search))
}

/// Cells with `cpus` of their own on others, named where one is enough.
fn elsewhere(search: &Search<'_>) -> Option<Vec<Edit>> {
    search.by_cell(|cell, edits, open| {
        if cell.cpus.is_empty() {
            return None;
        }
        let anywhere = vec![Edit::Cpus(cell.name.clone(), Vec::new())];
        if !search.helps(edits, &anywhere, open) {
            return None;
        }
        let all: Vec<Edit> = edits.iter().chain(&anywhere).cloned().collect();
        let placed = search.after(&all)?;
        let named = placed.cells.iter().find_map(|outcome| match outcome {
            Outcome::Granted(grant) if grant.cell == cell.name => {
                Some(vec![Edit::Cpus(cell.name.clone(), grant.cpus.clone())])
            }
            _ => None,
        });
        (named.filter(|named| search.helps(edits, named, open))).or(Some(anywhere))
    })
}

/// More cpus for the mission, and cells left free to be placed on them.
fn wider(search: &Search<'_>) -> Option<Vec<Edit>> {
    let own = &search.mission.cpus;
    if own.is_empty() {
        return None;
    }
    let mut cpus = own.clone();
    let others = search.facts.cpus.iter().filter(|cpu| !own.contains(cpu));
    for cpu in others {
        cpus.push(*cpu);
        let mut edits = vec![Edit::MissionCpus(cpus.clone())];
        if search.faults_after(&edits) == 0 {
            return Some(edits);
        }
        let kept = search.mission.cells.iter();
        let kept = kept.filter(|cell| cell.is_real_time() && !cell.cpus.is_empty());
        edits.extend(kept.map(|cell| Edit::Cpus(cell.name.clone(), Vec::new())));
        if edits.len() > 1 && search.faults_after(&edits) == 0 {
            return Some(edits);
        }
    }
    None
}
