//! What a virtual machine says of itself once its jobs are done.

use std::path::Path;

use host::virt::NOT_REPRESENTATIVE;
use model::Duration;
use record::trial::{CellRecord, HelperRecord, MachineRecord};

/// The release has to get into the machine, which may be emulated, before it comes, ns.
pub(super) const LEAD_NS: i64 = 500_000_000;

/// The next power of ten of a microsecond above a time.
fn decade(ns: i64) -> Duration {
    let mut above: i64 = 1_000;
    while above <= ns.saturating_abs() && above < i64::MAX / 10 {
        above *= 10;
    }
    Duration::from_ns(above)
}

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
            // The same for many cells; the record has the times.
            cell.notes.push(format!(
                "the clock of its guest is known to within {}, and drifted by less than {} during the jobs",
                decade(machine.clock_error_ns),
                decade(machine.clock_drift_ns)
            ));
            if !machine.helpers.is_empty() {
                let helpers = HelperRecord::together(&machine.helpers);
                (cell.notes).push(format!("QEMU's other threads: {helpers}"));
            }
            cell.machine = Some(machine);
        }
        // Nobody could see that its times are those of an emulated machine.
        Err(why) => {
            let why = format!("its machine told nothing of itself: {why}");
            cell.failure.get_or_insert(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_note_are_powers_of_ten() {
        let said = |ns| decade(ns).to_string();
        assert_eq!(said(0), "1us");
        assert_eq!(said(1_225_000), "10ms");
        assert_eq!(said(-296_555_000), "1s");
        assert_eq!(said(10_000), "100us");
        assert!(decade(i64::MIN).ns() > 0);
    }
}
