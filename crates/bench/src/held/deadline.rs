//! SCHED_DEADLINE: the class itself is the budget.

use std::time::Duration;

use host::root::Root;
use host::sched::bandwidth::{Asker, GIVEN_BACK, bandwidth_limit_us, set_class_when_free};
use host::sched::{self, Class, SchedError};
use model::{Enforcer, Requirement};
use probe::SpinClass;
use record::{Budget, Condition};

use super::holder::{Holder, Spot};

pub(super) struct Deadline;

impl Holder for Deadline {
    fn enforcer(&self) -> Enforcer {
        Enforcer::Deadline
    }

    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement> {
        vec![granted(&[*held], &spot.allowed)]
    }

    fn condition(&self, spot: &Spot) -> Condition {
        Condition::new(
            "deadline",
            format!(
                "SCHED_DEADLINE, deadline at the end of the period, on cpus {}: the kernel takes no such thread that \
                 is pinned",
                host::cpus::format_list(&spot.allowed)
            ),
        )
    }

    fn in_contest(&self) -> &'static str {
        "a SCHED_DEADLINE thread for each task, its runtime a ninth more than it declares (as `timecell admit` gives), \
         bound to the same cpu by a root domain of its own where cpusets allow that"
    }

    /// It holds none as a whole.
    fn free_us(&self) -> u64 {
        0
    }

    fn is_throttled(&self) -> bool {
        false
    }

    fn together(
        &self,
        all: &[Budget],
        _: &[u32],
        allowed: &[u32],
        _: &str,
    ) -> Result<(), Requirement> {
        // `needs` has tried one alone.
        if all.len() < 2 {
            return Ok(());
        }
        let granted = granted(all, allowed);
        if granted.met { Ok(()) } else { Err(granted) }
    }

    fn class(&self, held: &Budget, _: &Spot) -> SpinClass {
        SpinClass::Deadline {
            budget_ns: held.budget_ns,
            period_ns: held.period_ns,
        }
    }

    fn cpus(&self, spot: &Spot) -> Vec<u32> {
        spot.allowed.clone()
    }

    fn unshared(&self) -> Option<&'static str> {
        Some("each thread has its own runtime, which two tasks cannot share")
    }
}

/// Whether the kernel grants this process threads of these budgets at the same time.
fn granted(all: &[Budget], allowed: &[u32]) -> Requirement {
    let classes = all.iter().map(|held| Class::Deadline {
        runtime_ns: held.budget_ns,
        deadline_ns: held.period_ns,
        period_ns: held.period_ns,
    });
    let classes: Vec<Class> = classes.collect();
    let names: Vec<String> = classes
        .iter()
        .map(|class| format!("SCHED_{class}"))
        .collect();
    let what = names.join(" and ");
    match tried(&classes, allowed) {
        Some(Ok(())) => Requirement::met(what, "granted to this process"),
        Some(Err(error)) => Requirement::unmet(
            what,
            error.to_string(),
            "run the same command with sudo, outside exclusive cpusets, with enough bandwidth free (see timecell doctor)",
        ),
        None => Requirement::unmet(what, "the thread that tried it died", "try again"),
    }
}

/// Each class tried by a thread of its own, which keeps it until all have theirs or one is refused; `None`: a thread ended before it
/// reported. Their share is free again afterwards.
fn tried(classes: &[Class], allowed: &[u32]) -> Option<Result<(), SchedError>> {
    // Do not wait for more than the limit.
    let limit_us = bandwidth_limit_us(&Root::live(), allowed.len());
    let patience = match limit_us.is_none_or(|limit| together_us(classes) <= limit) {
        true => GIVEN_BACK,
        false => Duration::ZERO,
    };
    let mut staying = Vec::new();
    let mut result = Some(Ok(()));
    for class in classes {
        let (class, allowed) = (class.clone(), allowed.to_vec());
        // The kernel still counts the threads of a trial that has just ended for a while.
        let asked = Asker::new(move || {
            sched::set_affinity(0, &allowed)?;
            set_class_when_free(0, &class, patience)
        });
        let (asker, asked) = asked.unzip();
        staying.extend(asker);
        result = asked;
        if !matches!(result, Some(Ok(()))) {
            break;
        }
    }
    result
}

/// Of every second, us, rounded down.
fn together_us(classes: &[Class]) -> u64 {
    let each = classes.iter().map(|class| match *class {
        Class::Deadline {
            runtime_ns,
            period_ns,
            ..
        } => {
            let us = u128::from(runtime_ns) * 1_000_000 / u128::from(period_ns.max(1));
            u64::try_from(us).unwrap_or(u64::MAX)
        }
        _ => 0,
    });
    each.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(budget_ns: u64) -> Budget {
        Budget {
            enforcer: Enforcer::Deadline,
            budget_ns,
            period_ns: 1_000_000_000,
        }
    }

    #[test]
    fn budgets_count_together_and_what_was_tried_is_free_again() {
        let allowed = crate::here::allowed_cpus();
        let most = held(600_000_000);
        if !granted(&[most], &allowed).met {
            // Report it if this process may have no such thread.
            return;
        }
        for _ in 0..2 * allowed.len() {
            assert!(granted(&[most], &allowed).met);
        }
        let too_many = vec![most; 2 * allowed.len()];
        assert!(!granted(&too_many, &allowed).met);
        assert!(granted(&[most], &allowed).met);
    }
}
