//! Usable cpus and classes of this process.

use host::sched::{self, SchedError};
use model::Requirement;

use crate::place;

/// Cpus that this process may use.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    sched::get_affinity(0)
        .or_else(|_| host::cpus::online().map_err(|e| e.to_string()))
        .unwrap_or_default()
}

/// Whether this process may have SCHED_FIFO with this priority.
pub(crate) fn fifo_requirement(priority: u8) -> Requirement {
    let what = format!("SCHED_FIFO {priority}");
    let wanted = sched::Class::Fifo { priority };
    // A short-lived thread tries it.
    let tried = std::thread::spawn(move || sched::set_class(0, &wanted)).join();
    let fix = if place::uid() == 0 {
        "give this process CAP_SYS_NICE and its cpu cgroup a real-time budget (timecell doctor shows both)"
    } else {
        "run the same command with sudo, or write `* - rtprio 99` to /etc/security/limits.d/timecell.conf and log in again"
    };
    match tried {
        Ok(Ok(())) => Requirement::met(what, "granted to this process"),
        Ok(Err(SchedError::NoPrivilege { why, .. })) => Requirement::unmet(what, why, fix),
        Ok(Err(other)) => Requirement::unmet(what, other.to_string(), fix),
        Err(_) => Requirement::unmet(what, "the thread that tried it died", fix),
    }
}
