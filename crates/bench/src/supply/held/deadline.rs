//! SCHED_DEADLINE: the class itself is the budget.

use host::sched::{self, Class};
use model::{Enforcer, Requirement};
use probe::SpinClass;
use record::series::Condition;
use record::supply::Budget;

use super::Holder;
use crate::series::condition;
use crate::supply::Setting;

pub(super) struct Deadline;

impl Holder for Deadline {
    fn enforcer(&self) -> Enforcer {
        Enforcer::Deadline
    }

    fn needs(&self, held: &Budget, setting: &Setting) -> Vec<Requirement> {
        vec![deadline(held, &setting.allowed)]
    }

    fn condition(&self, setting: &Setting) -> Condition {
        condition(
            "deadline",
            format!(
                "SCHED_DEADLINE, deadline at the end of the period, on cpus {}: the kernel takes no such thread that \
                 is pinned",
                host::cpus::format_list(&setting.allowed)
            ),
        )
    }

    fn class(&self, held: &Budget, _: &Setting) -> SpinClass {
        SpinClass::Deadline {
            budget_ns: held.budget_ns,
            period_ns: held.period_ns,
        }
    }

    fn cpus(&self, setting: &Setting) -> Vec<u32> {
        setting.allowed.clone()
    }

    fn unshared(&self) -> Option<&'static str> {
        Some("each of its threads has a runtime of its own, which two tasks cannot share")
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
