//! Exclusive access for changing the machine: nobody measures it, and nobody is granted anything on it.

use bench::left_isolated;
use supervise::ledger::{Holder, Ledger, Locked};

use crate::exit::CommandError;

/// Keeps measurements from starting and missions from being admitted until the result is dropped.
///
/// # Errors
/// If a measurement runs, or was killed and left interrupts moved; with `missions`, if anything is granted on the machine; or if the
/// ledger cannot be used.
pub(super) fn with(missions: bool) -> Result<Locked, CommandError> {
    let ledger = Ledger::default();
    let locked = ledger.lock()?;
    for entry in ledger.entries()? {
        let why = match entry.holder {
            Holder::Bench { .. } => {
                "is measuring, and would measure the change too; wait until it has ended"
            }
            _ if !missions => continue,
            Holder::Mission { .. } => {
                "runs, and was admitted on the machine as it is now; end it first"
            }
            Holder::Held { .. } => {
                "is held, and was admitted on the machine as it is now; run `timecell release` first"
            }
        };
        let who = entry.who();
        return Err(CommandError::InUse { who, why });
    }
    // Its changes would be recorded as the machine's old state, and `clean` would overwrite the new one.
    if let Some(place) = left_isolated() {
        let who = format!("a killed `timecell bench` ({})", place.display());
        let why = "left interrupts and tasks moved off its cpus; run `timecell clean` first to put them back";
        return Err(CommandError::InUse { who, why });
    }
    Ok(locked)
}
