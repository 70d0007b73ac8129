//! Real-time groups of the cpu controller, cgroup v1: a separate group around the cell.

use host::rtgroup::{self, RtGroup};
use model::{Enforcer, Requirement};
use record::{Budget, Condition};

use super::holder::{Held, Holder, Names, Spot, and_fifo, not_whole, on_every_cpu, writable};

const WHAT: &str = "rt-cgroup (cgroup v1 with RT_GROUP_SCHED)";

pub(super) struct RtCgroup;

impl Holder for RtCgroup {
    fn enforcer(&self) -> Enforcer {
        Enforcer::RtCgroup
    }

    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement> {
        and_fifo(groups(held), spot.priority)
    }

    fn condition(&self, spot: &Spot) -> Condition {
        Condition::new(
            "rt-cgroup",
            format!(
                "SCHED_FIFO {} in a group of its own, directly below the root, pinned to cpu {}",
                spot.priority, spot.cpu
            ),
        )
    }

    fn in_contest(&self) -> &'static str {
        "a real-time group for each cell, inside one around both: the two budgets of least bandwidth together with which \
         both cells meet all deadlines by what this kernel supplies (as `timecell admit` reckons: tick, a tenth for \
         interrupts, the attacker's group first)"
    }

    fn free_us(&self) -> u64 {
        rtgroup::largest_free_runtime().unwrap_or(0)
    }

    fn together(
        &self,
        all: &[Budget],
        cpus: &[u32],
        _: &[u32],
        smaller: &str,
    ) -> Result<(), Requirement> {
        on_every_cpu(WHAT, all, cpus, self.free_us(), smaller)
    }

    fn hold(
        &self,
        held: &Budget,
        _: u32,
        names: &Names<'_>,
    ) -> Result<Option<Box<dyn Held>>, String> {
        let (budget, period) = (held.budget_ns / 1_000, held.period_ns / 1_000);
        let group = RtGroup::create(names.rt_group, budget, period);
        let group = group.map_err(|error| error.to_string())?;
        Ok(Some(Box::new(group)))
    }
}

impl Held for RtGroup {
    /// A group takes a thread of a real-time class only with a budget.
    fn join(&self, pid: i32) -> Result<(), String> {
        self.add(pid).map_err(|error| error.to_string())
    }

    fn join_thread(&self, thread: i32) -> Result<(), String> {
        self.add_thread(thread).map_err(|error| error.to_string())
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        self.remove().map_err(|error| error.to_string())
    }
}

/// Whether there are groups with budgets, with enough budget free.
fn groups(held: &Budget) -> Requirement {
    let what = WHAT;
    let free = rtgroup::detect().and_then(|_| rtgroup::largest_free_runtime());
    let free_us = match free {
        Ok(free_us) => free_us,
        Err(error) => {
            return Requirement::unmet(
                what,
                error.to_string(),
                "use a kernel with CONFIG_RT_GROUP_SCHED and its cpu controller on cgroup v1 (timecell doctor shows both)",
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
            "take budget from other groups, or request less (--reservation, or [[workload.reservation]])",
        );
    }
    if let Some(unmet) = not_whole(WHAT, held) {
        return unmet;
    }
    let top = rtgroup::detect().map_err(|error| error.to_string());
    if let Err(why) = top.and_then(|top| writable(&top)) {
        return Requirement::unmet(what, why, "run the same command with sudo");
    }
    Requirement::met(what, "found, with enough of the budget free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_cannot_say_is_no_budget_of_one() {
        let of = |budget_ns, period_ns| {
            let held = Budget {
                enforcer: Enforcer::RtCgroup,
                budget_ns,
                period_ns,
            };
            not_whole(WHAT, &held)
        };
        assert_eq!(of(1_000, 10_000_000), None);
        for (budget_ns, period_ns) in [(500, 10_000_000), (1_500, 10_000_000), (1_000, 1_000_500)] {
            let unmet = of(budget_ns, period_ns).unwrap();
            assert!(
                !unmet.met && unmet.reason.contains("whole us"),
                "{}",
                unmet.reason
            );
        }
        let needs = groups(&Budget {
            enforcer: Enforcer::RtCgroup,
            budget_ns: 500,
            period_ns: 10_000_000,
        });
        assert!(!needs.met, "{}", needs.reason);
    }
}
