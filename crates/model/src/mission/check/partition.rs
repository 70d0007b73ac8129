//! Checks of cells that are partitions of the machine.

use super::rights;
use crate::file::Faults;
use crate::mission::{Cell, Mission, Partition, Place};

/// Whether a cell has a partition exactly if it is one, and asks for nothing that only processes of Linux have.
pub(super) fn check(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    let Some(partition) = &cell.partition else {
        if cell.engine.is_partition() && faults.is_clear(&place.key("partition")) {
            let what = format!("cell `{}` has no [cell.partition]", cell.name);
            let fix = "say which `cpus` and `memory` it gets";
            faults.report(place, &["engine"], what, fix);
        }
        return;
    };
    if !cell.engine.is_partition() {
        let what = format!("a cell of engine `{}` is no partition", cell.engine);
        let fix = "set `engine = \"jailhouse\"`, or remove this";
        return faults.report(place, &["partition"], what, fix);
    }
    if mission.jailhouse.is_none() && faults.is_clear(&Place::top().key("jailhouse")) {
        let what = "the mission does not say for which system its partitions are";
        let fix = "add [jailhouse] with `system`, the board's system configuration";
        faults.report(place, &["engine"], what, fix);
    }
    if cell.name.len() > Partition::NAME_BYTES || cell.name.bytes().all(|b| b.is_ascii_digit()) {
        let what = format!("Jailhouse takes no cell called `{}`", cell.name);
        let fix = "name it by at most 31 characters, not all of them digits";
        faults.report(place, &["name"], what, fix);
    }
    if cell.is_real_time() {
        let what = "a partition has its cpus for itself, and no class of Linux";
        let fix = "set `class = \"other\"`, which is that of the process that keeps it";
        faults.report(place, &["class"], what, fix);
    }
    for (at, key) in rights::of_processes(cell, place) {
        let what = format!("`{key}` is for processes of Linux, and a partition has none");
        faults.report(&at, &[key], what, "remove it");
    }
    let at = place.key("partition");
    for cpu in &partition.cpus {
        let of_mission = mission.cpus.contains(cpu) || mission.supervisor.cpus.contains(cpu);
        let other = mission.cells.iter().find(|other| {
            let partition = other.partition.as_ref().filter(|_| other.name != cell.name);
            other.cpus.contains(cpu) || partition.is_some_and(|its| its.cpus.contains(cpu))
        });
        let whose = match other {
            Some(other) => format!("cell `{}`'s", other.name),
            None if of_mission => "the mission's".to_owned(),
            None => continue,
        };
        let what = format!("cpu {cpu} leaves Linux with this partition, and is {whose}");
        faults.report(&at, &["cpus"], what, "give each its own");
    }
    if let Some(heartbeat) = partition.heartbeat.filter(|at| !at.is_multiple_of(8)) {
        let what = format!("the heartbeat at {heartbeat:#x} is no number of 64 bits");
        faults.report(&at, &["heartbeat"], what, "give a multiple of 8");
    }
    let beats = |other: &&Cell| {
        let its = other.partition.as_ref().and_then(|its| its.heartbeat);
        other.name != cell.name && its.is_some() && its == partition.heartbeat
    };
    if let Some(other) = mission.cells.iter().find(beats) {
        let what = format!(
            "the heartbeat is cell `{}`'s, too, whose beats would hide the silence of this one",
            other.name
        );
        faults.report(&at, &["heartbeat"], what, "give each its own");
    }
}
