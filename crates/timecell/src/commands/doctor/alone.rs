//! Changing the machine while nobody measures it and nobody is granted anything.

use bench::left_isolated;
use supervise::ledger::{Holder, Ledger, Locked};

use crate::exit::CommandError;

/// Keeps measurements from beginning and missions from being admitted while the answer lives.
///
/// # Errors
/// When somebody measures, or was killed over it and has left interrupts elsewhere; if `missions` says so, when somebody was granted
/// something, as a mission; or the ledger cannot be used.
pub(super) fn with(missions: bool) -> Result<Locked, CommandError> {
    let ledger = Ledger::default();
    let locked = ledger.lock()?;
    for entry in ledger.entries()? {
        let why = match entry.holder {
            Holder::Bench { .. } => {
                "measures, and would measure the change too; wait until it has ended"
            }
            _ if !missions => continue,
            Holder::Mission { .. } => {
                "runs, and was admitted to the machine as it is now; end it first"
            }
            Holder::Held { .. } => {
                "is there, and was admitted to the machine as it is now; give it back with `timecell release` first"
            }
        };
        let who = entry.who();
        return Err(CommandError::InUse { who, why });
    }
    // What it has moved would count as the old state of the machine, and `clean` would write over the new one.
    if let Some(place) = left_isolated() {
        let who = format!("a killed `timecell bench` ({})", place.display());
        let why = "has left interrupts and tasks moved off its cpus; put them back with `timecell clean` first";
        return Err(CommandError::InUse { who, why });
    }
    Ok(locked)
}
