//! Cells of Jailhouse that outlive their mission: nobody watches them any more, and their cpus are not Linux's.

use jailhouse::register::Register;

use super::Left;
use crate::ledger::{self, Ledger, LedgerError};

/// Ends the cells of missions of which nothing runs any more, by the ledger.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is ended then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    let register = Register::default();
    let owners = register.owners().unwrap_or_default();
    if owners.is_empty() || !ledger::is_root() {
        return Ok(Vec::new());
    }
    // A supervisor enters itself before it begins any.
    let locked = ledger.lock()?;
    let entries = locked.entries_everywhere()?;
    let over = (owners.into_iter()).filter(|owner| !ledger::anything_runs(&entries, owner));
    Ok(over
        .map(|owner| {
            let ended = register.end_all(&owner).map_err(|error| error.to_string());
            Left::removed(&format!("partitions of mission {owner}"), ended)
        })
        .collect())
}
