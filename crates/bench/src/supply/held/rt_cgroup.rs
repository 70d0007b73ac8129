//! Real-time groups of the cpu controller, cgroup v1: a group of its own around the cell.

use host::rtgroup::{self, RtGroup};
use model::{Enforcer, Requirement};
use record::series::Condition;
use record::supply::Budget;

use super::{Held, Holder, writable};
use crate::plan::fifo_requirement;
use crate::series::condition;
use crate::supply::Setting;
use crate::supply::trial::group_name;

pub(super) struct RtCgroup;

impl Holder for RtCgroup {
    fn enforcer(&self) -> Enforcer {
        Enforcer::RtCgroup
    }

    fn needs(&self, held: &Budget, setting: &Setting) -> Vec<Requirement> {
        let mut needs = vec![groups(held)];
        if needs[0].met {
            needs.push(fifo_requirement(setting.priority));
        }
        needs
    }

    fn condition(&self, setting: &Setting) -> Condition {
        condition(
            "rt-cgroup",
            format!(
                "SCHED_FIFO {} in a group of its own, directly below the root, pinned to cpu {}",
                setting.priority, setting.cpu
            ),
        )
    }

    fn hold(&self, held: &Budget, _: u32, _: &str) -> Result<Option<Box<dyn Held>>, String> {
        let (budget, period) = (held.budget_ns / 1_000, held.period_ns / 1_000);
        let group = RtGroup::create(&group_name(), budget, period);
        let group = group.map_err(|error| error.to_string())?;
        Ok(Some(Box::new(group)))
    }
}

impl Held for RtGroup {
    /// A group takes a thread of a real-time class only with a budget.
    fn join(&self, pid: i32) -> Result<(), String> {
        self.add(pid).map_err(|error| error.to_string())
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        self.remove().map_err(|error| error.to_string())
    }
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
    let top = rtgroup::detect().map_err(|error| error.to_string());
    if let Err(why) = top.and_then(|top| writable(&top)) {
        return Requirement::unmet(what, why, "run the same command with sudo");
    }
    Requirement::met(what, "found, with enough of the budget free")
}
