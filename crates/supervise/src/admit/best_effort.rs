//! Which cpus cells get that ask for no guarantee.

use model::mission::{Cell, Mission, Place};

use super::advice::Advice;
use super::{Facts, Outcome, Refused, partition};

/// The outcome for a cell that asks for no guarantee.
pub(super) fn outcome(
    mission: &Mission,
    at: usize,
    cell: &Cell,
    facts: &Facts,
    partitions: &[Vec<u32>],
) -> Outcome {
    if let Some((cpu, who)) = taken(cell, facts) {
        return Outcome::Refused(Refused {
            cell: cell.name.clone(),
            place: Place::cell(at).key("partition"),
            why: format!("cpu {cpu} cannot leave Linux: {who} has it"),
            witness: None,
            fix: None,
            advice: vec![Advice::end(&who), Advice::of("cpus", "choose other cpus")],
        });
    }
    let wanted = beside_real_time(mission, cell, facts);
    let cpus = partition::beside(partitions, &wanted, facts);
    let kept = (facts.kept_cpus.iter()).find(|kept| wanted.contains(&kept.cpu));
    match (cpus.as_slice(), kept) {
        ([], Some(kept)) => Outcome::Refused(Refused {
            cell: cell.name.clone(),
            place: Place::cell(at),
            why: format!("cpu {} is taken: {}", kept.cpu, kept.by),
            witness: None,
            fix: None,
            advice: vec![Advice::of("cpus", "choose other cpus")],
        }),
        _ => Outcome::BestEffort {
            cell: cell.name.clone(),
            cpus,
        },
    }
}

/// A cpu of a partition that somebody else has, and who.
fn taken(cell: &Cell, facts: &Facts) -> Option<(u32, String)> {
    let cpus = cell.partition.iter().flat_map(|partition| &partition.cpus);
    cpus.copied().find_map(|cpu| {
        let other = facts.beside.iter().find(|other| other.has(cpu))?;
        Some((cpu, other.who.clone()))
    })
}

/// The cpus of a best-effort cell: its own, else those that the mission leaves to others, else all.
fn beside_real_time(mission: &Mission, cell: &Cell, facts: &Facts) -> Vec<u32> {
    if !cell.cpus.is_empty() {
        return cell.cpus.clone();
    }
    let free: Vec<u32> = (facts.cpus.iter().copied())
        .filter(|cpu| !mission.cpus.contains(cpu))
        .collect();
    match (mission.cpus.is_empty(), free.is_empty()) {
        (false, false) => free,
        _ => facts.cpus.clone(),
    }
}
