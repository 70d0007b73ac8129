//! What a virtual machine says of itself once its jobs are done.

use std::path::Path;

use host::virt::NOT_REPRESENTATIVE;
use record::trial::{CellRecord, MachineRecord};

/// The release has to get into the machine, which may be emulated, before it comes, ns.
pub(super) const LEAD_NS: i64 = 500_000_000;

/// Puts the record of the machine, which its process has written beside the samples, into that of its cell.
/// `first` is the entry of the machine whose file it is.
pub(super) fn tell(
    planned: Option<&engine::Machine>,
    shared: &Path,
    first: &str,
    cell: &mut CellRecord,
) {
    if !cell.engine.is_machine() {
        return;
    }
    let path = shared.join(format!("{first}.machine"));
    let text = std::fs::read(&path).map_err(|error| error.to_string());
    let read =
        text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    match read {
        Ok(machine) => {
            let mut machine: MachineRecord = machine;
            machine.why_not_kvm = planned.and_then(|planned| planned.why_not_kvm.clone());
            if !machine.kvm {
                let why = machine.why_not_kvm.as_deref();
                let why = why.map_or(String::new(), |why| {
                    format!("; KVM does not carry it: {why}")
                });
                cell.notes.push(format!("{NOT_REPRESENTATIVE}{why}"));
            }
            cell.notes.push(format!(
                "the clock of its guest is known to within {} us, and drifted by {} us during the jobs",
                machine.clock_error_ns.div_euclid(1_000) + 1,
                machine.clock_drift_ns / 1_000
            ));
            cell.machine = Some(machine);
        }
        // Nobody could see that its times are those of an emulated machine.
        Err(why) => {
            let why = format!("its machine told nothing of itself: {why}");
            cell.failure.get_or_insert(why);
        }
    }
}
