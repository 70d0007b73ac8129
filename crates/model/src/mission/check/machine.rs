//! Checks of cells that are virtual machines.

use super::{rights, tasks::runs_by_deadline};
use crate::file::Faults;
use crate::mission::{Cell, Mission, Place};

/// Whether a cell has a machine only if it is one, and asks for nothing that its guest would not get.
pub(super) fn check(mission: &Mission, cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    if !cell.engine.is_machine() {
        if faults.says(&place.key("machine")) {
            let what = format!("a cell of engine `{}` is no virtual machine", cell.engine);
            let fix = "set `engine = \"qemu\"`, or remove this";
            faults.report(place, &["machine"], what, fix);
        }
        return;
    }
    for (at, key) in rights::of_processes(cell, place) {
        let what = format!("`{key}` does not reach the guest of a virtual machine");
        let fix = "remove it; the guest runs only its program, with all rights there";
        faults.report(&at, &[key], what, fix);
    }
    let helpers = &cell.machine.helpers.cpus;
    let outside = helpers.iter().find(|cpu| !cell.cpus.contains(cpu));
    if let Some(cpu) = outside.filter(|_| !cell.cpus.is_empty()) {
        let what = format!("cpu {cpu} of the machine's `helpers` is not the cell's");
        let fix = "name some of the cell's `cpus`, or add it to them";
        faults.report(&place.key("machine"), &["helpers"], what, fix);
    }
    let (tasks, vcpus) = (cell.tasks.len(), cell.machine.vcpus);
    if tasks == 0 && runs_by_deadline(mission, cell) {
        let what = "under SCHED_DEADLINE each virtual cpu has a reservation of its own";
        let fix = "add a [[cell.task]] for each: its budget as `wcet`, and its period";
        faults.report(place, &["reservation", "class"], what, fix);
    } else if let Some(vcpus) = vcpus.filter(|vcpus| (*vcpus as usize) < tasks) {
        let at = place.key("machine");
        faults.report(&at, &["vcpus"], too_few(tasks, vcpus), MORE);
    }
}

/// The fix of [`too_few`].
pub(super) const MORE: &str = "give it more `vcpus`, or remove tasks";

/// That there are more tasks than virtual cpus.
pub(super) fn too_few(tasks: usize, vcpus: u32) -> String {
    format!("{tasks} tasks are {tasks} virtual cpus, and the machine has {vcpus}")
}
