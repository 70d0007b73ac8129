//! What each enforcer needs of the machine.

use host::rtgroup;
use host::sched::{self, Class};
use model::Enforcer;
use model::Requirement;
use record::supply::Budget;

use super::{Setting, Subject};
use crate::plan::fifo_requirement;

/// What a subject needs of the machine.
pub(super) struct Needs(pub Vec<Requirement>);

/// Holds a subject against the machine.
pub(super) fn needs(subject: &Subject, setting: &Setting) -> Needs {
    let Some(held) = subject.held else {
        return Needs(vec![fifo_requirement(setting.priority)]);
    };
    Needs(match held.enforcer {
        Enforcer::RtCgroup => {
            let mut needs = vec![groups(&held)];
            if needs[0].met {
                needs.push(fifo_requirement(setting.priority));
            }
            needs
        }
        Enforcer::Deadline => vec![deadline(&held, &setting.allowed)],
        other => vec![Requirement::unmet(
            other.name(),
            "timecell cannot measure this enforcer",
            "name rt-cgroup or deadline",
        )],
    })
}

/// Groups with budgets, and so much of it that is free.
pub(crate) fn groups(held: &Budget) -> Requirement {
    let what = "rt-cgroup (cgroup v1 with RT_GROUP_SCHED)";
    let free = rtgroup::detect().and_then(|_| rtgroup::largest_free_runtime());
    let free_us = match free {
        Ok(free_us) => free_us,
        Err(error) => {
            return Requirement::unmet(
                what,
                error.to_string(),
                "a kernel with CONFIG_RT_GROUP_SCHED and its cpu controller on cgroup v1 (timecell doctor shows both)",
            );
        }
    };
    let asked = u128::from(held.budget_ns) * 1_000_000 / u128::from(held.period_ns.max(1));
    if u128::from(free_us) < asked {
        return Requirement::unmet(
            what,
            format!(
                "{free_us} us of real-time budget in every second are free, {asked} us are needed"
            ),
            "take budget from other groups, or ask for less with --reservation",
        );
    }
    if let Err(why) = writable() {
        return Requirement::unmet(what, why, "run the same command with sudo");
    }
    Requirement::met(what, "found, with enough of the budget free")
}

/// Whether groups can be made here.
fn writable() -> Result<(), String> {
    let top = rtgroup::detect().map_err(|error| error.to_string())?;
    let path = std::ffi::CString::new(std::os::unix::ffi::OsStrExt::as_bytes(top.as_os_str()))
        .map_err(|error| error.to_string())?;
    // SAFETY: a valid C string; nothing is changed.
    match unsafe { libc::access(path.as_ptr(), libc::W_OK) } {
        0 => Ok(()),
        _ => Err(format!(
            "{}: {}",
            top.display(),
            std::io::Error::last_os_error()
        )),
    }
}

/// The class, tried by a thread that ends with it.
pub(crate) fn deadline(held: &Budget, allowed: &[u32]) -> Requirement {
    let class = Class::Deadline {
        runtime_ns: held.budget_ns,
        deadline_ns: held.period_ns,
        period_ns: held.period_ns,
    };
    let what = format!("SCHED_{class}");
    let allowed = allowed.to_vec();
    let tried = std::thread::spawn(move || {
        sched::set_affinity(0, &allowed)?;
        sched::set_class(0, &class)
    });
    match tried.join() {
        Ok(Ok(())) => Requirement::met(what, "granted to this process"),
        Ok(Err(error)) => Requirement::unmet(
            what,
            error.to_string(),
            "run the same command with sudo, outside of exclusive cpusets, and with bandwidth free (timecell doctor)",
        ),
        Err(_) => Requirement::unmet(what, "the thread that tried it ended", "try again"),
    }
}
