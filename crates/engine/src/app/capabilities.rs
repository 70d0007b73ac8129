//! The capabilities of a process that becomes a cell's program.

use caps::{CapSet, Capability, CapsHashSet};
use rustix::thread::UnshareFlags;

use crate::error::{Doing, Result};
use crate::mounts::unshare;

/// Those that [`hide_groups`] takes, and gives up.
pub(super) const TO_HIDE_GROUPS: [&str; 2] = ["CAP_SETPCAP", "CAP_SYS_ADMIN"];

const DOING: fn() -> &'static str = || "cannot give up capabilities";

fn set_of(names: &[String]) -> CapsHashSet {
    (names.iter())
        .filter_map(|name| name.parse::<Capability>().ok())
        .collect()
}

/// Takes those not granted from the ones that a program of root would get.
///
/// # Errors
///
/// Without `CAP_SETPCAP`.
pub(crate) fn bound(granted: &[String]) -> Result<()> {
    let granted = set_of(granted);
    for capability in caps::read(None, CapSet::Bounding).doing(DOING)? {
        if !granted.contains(&capability) {
            caps::drop(None, CapSet::Bounding, capability).doing(DOING)?;
        }
    }
    Ok(())
}

/// Gives up those not granted; a program of another user than root keeps `granted`, too.
///
/// # Errors
///
/// If one is granted that the process does not have.
pub(crate) fn keep(granted: &[String], is_root: bool) -> Result<()> {
    let granted = set_of(granted);
    caps::set(None, CapSet::Effective, &granted).doing(DOING)?;
    caps::set(None, CapSet::Permitted, &granted).doing(DOING)?;
    if !is_root {
        // Users other than root keep only ambient capabilities over exec.
        caps::set(None, CapSet::Inheritable, &granted).doing(DOING)?;
        caps::set(None, CapSet::Ambient, &granted).doing(DOING)?;
    }
    Ok(())
}

/// Shows the process's cgroups as the top ones to it and its children, which hides the host's names. It is in them only after the container
/// was made, and the runtime library has no step so late.
///
/// # Errors
///
/// Without [`TO_HIDE_GROUPS`].
pub(super) fn hide_groups(granted: &[String]) -> Result<()> {
    unshare(UnshareFlags::NEWCGROUP).doing(|| "cannot make a cgroup namespace")?;
    bound(granted)?;
    keep(granted, rustix::process::geteuid().is_root())
}
