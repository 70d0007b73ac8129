//! The servers of cgroup v2, `cpu.rt.max`, which only patched kernels have: a separate group around the cell, for which the top group
//! reserves the budget as long as it exists.

use std::path::PathBuf;

use freezer::hold::{self, Hold};
use host::hcbs::{self, Top};
use host::root::Root;
use host::rtgroup;
use host::sched::bandwidth::period_bounds_us;
use model::grouped;
use model::{Enforcer, Requirement};
use record::{Budget, Condition};

use super::holder::{
    Held, Holder, LEAVING, Names, Spot, and_fifo, cells_of, enter, group_name, not_whole,
    on_every_cpu, writable,
};

const WHAT: &str = "hcbs (cgroup v2 with cpu.rt.max)";
/// The least runtime that the kernel accepts, in the whole us of the file.
const LEAST_US: i64 = 2;

pub(super) struct Hcbs;

impl Holder for Hcbs {
    fn enforcer(&self) -> Enforcer {
        Enforcer::Hcbs
    }

    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement> {
        and_fifo(server(held), spot.priority)
    }

    fn condition(&self, spot: &Spot) -> Condition {
        Condition::new(
            "hcbs",
            format!(
                "SCHED_FIFO {} on cpu {} in a group of cgroup v2 of its own, directly below the top, with a budget in cpu.rt.max: the \
                 kernel runs it by a server of SCHED_DEADLINE on each cpu, before all threads of class FIFO outside of such groups",
                spot.priority, spot.cpu
            ),
        )
    }

    fn in_contest(&self) -> &'static str {
        "each cell in a group of cgroup v2 of its own with a budget in cpu.rt.max: the two budgets of least bandwidth together with which \
         both cells meet all deadlines by what this kernel supplies (as `timecell admit` reckons: tick, a tenth for interrupts, \
         both servers by earliest deadline first)"
    }

    fn free_us(&self) -> u64 {
        (Top::of_this_machine().and_then(|top| top.free_us())).unwrap_or(0)
    }

    /// `kernel.sched_rt_runtime_us` does not stop a server of SCHED_DEADLINE; it limits the sum of all reservations.
    fn is_throttled(&self) -> bool {
        false
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
        let say = |error: hcbs::HcbsError| error.to_string();
        let top = Top::of_this_machine().map_err(say)?;
        let budget = in_us(held);
        let group = Group {
            path: top.path().join(names.id),
            top,
        };
        group.reserve(Some(budget)).map_err(say)?;
        match group.make(names.id, budget) {
            Ok(()) => Ok(Some(Box::new(group))),
            Err(why) => {
                let _ = Box::new(group).end();
                Err(why)
            }
        }
    }

    fn remove_left(&self, name: &str) -> Result<(), String> {
        // Without such budgets there are no such groups, nor for users who may not create any.
        let Ok(top) = Top::of_this_machine() else {
            return Ok(());
        };
        if writable(top.path()).is_err() {
            return Ok(());
        }
        let owner = cells_of(name);
        let removed = (top.groups(&owner).iter())
            .try_for_each(|group| hold::remove(group, LEAVING).map_err(|error| error.to_string()));
        let given_back = (top.has(&owner))
            .and_then(|has| match has {
                true => top.change(&owner, |all| all.clear()),
                false => Ok(()),
            })
            .map_err(|error| error.to_string());
        removed.and(given_back)
    }
}

/// The group of a cell.
struct Group {
    top: Top,
    path: PathBuf,
}

impl Group {
    /// Makes the top group reserve this for it, or nothing, in addition to this process's other groups.
    fn reserve(&self, budget: Option<rtgroup::Budget>) -> Result<(), hcbs::HcbsError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.top.change(&cells_of(&group_name()), |all| {
            all.retain(|group, _| self.top.path().join(group).exists());
            all.remove(&*name);
            if let Some(budget) = budget {
                all.insert(name.into_owned(), budget.per_second_up_us());
            }
        })
    }

    /// Creates it with its budget, which it needs before it holds real-time threads.
    fn make(&self, id: &str, budget: rtgroup::Budget) -> Result<(), String> {
        let cgroups = host::cgroup::detect().map_err(|error| error.to_string())?;
        Hold::make(&cgroups, id).map_err(|error| error.to_string())?;
        let (root, top) = (self.top.root(), self.top.path());
        host::cgroup::hand_down(root, top, &self.path, "cpu", hcbs::MAX)
            .map_err(|error| error.to_string())?;
        hcbs::give(root, top, &self.path, budget).map_err(|error| error.to_string())
    }
}

impl Held for Group {
    fn join(&self, pid: i32) -> Result<(), String> {
        enter(&self.path, pid)
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        let removed = hold::remove(&self.path, LEAVING).map_err(|error| error.to_string());
        let given_back = self.reserve(None).map_err(|error| error.to_string());
        removed.and(given_back)
    }
}

fn in_us(held: &Budget) -> rtgroup::Budget {
    rtgroup::Budget {
        runtime_us: i64::try_from(held.budget_ns / 1_000).unwrap_or(i64::MAX),
        period_us: held.period_ns / 1_000,
    }
}

/// Whether a group can have this budget, as far as anybody but the kernel can tell: only the kernel knows all threads of SCHED_DEADLINE.
fn server(held: &Budget) -> Requirement {
    let unmet = |reason: String, fix: &str| Requirement::unmet(WHAT, reason, fix);
    let top = match Top::of_this_machine() {
        Ok(top) => top,
        Err(error) => {
            let fix = "use a kernel with the patches of the hierarchical constant bandwidth server and its cpu controller on cgroup v2, \
                        or another enforcer (timecell doctor lists them)";
            return unmet(error.to_string(), fix);
        }
    };
    if let Err(why) = writable(top.path()) {
        return unmet(why, "run the same command with sudo");
    }
    let free_us = match top.free_us() {
        Ok(free_us) => free_us,
        Err(error) => return unmet(error.to_string(), "see timecell clean"),
    };
    match cannot(held, free_us, &Root::live()) {
        Some(unmet) => unmet,
        None => Requirement::met(WHAT, format!("found at {}", top.path().display())),
    }
}

/// Why the kernel refuses this budget with so much free.
fn cannot(held: &Budget, free_us: u64, root: &Root) -> Option<Requirement> {
    let unmet = |reason: String, fix: &str| Some(Requirement::unmet(WHAT, reason, fix));
    let ask_for = "request another one (--reservation, or [[workload.reservation]])";
    if let Some(unmet) = not_whole(WHAT, held) {
        return Some(unmet);
    }
    let budget = in_us(held);
    if budget.runtime_us < LEAST_US {
        let reason = format!(
            "{} us are requested, and cpu.rt.max accepts no less than {LEAST_US} us",
            budget.runtime_us
        );
        return unmet(reason, ask_for);
    }
    let (least, longest) = period_bounds_us(root);
    if !(least..=longest).contains(&budget.period_us) {
        let reason = format!(
            "the kernel accepts periods of {least} to {longest} us (kernel.sched_deadline_period_min_us and _max_us), {} us are requested",
            budget.period_us
        );
        return unmet(reason, ask_for);
    }
    let asked_us = budget.per_second_up_us();
    if asked_us > free_us {
        let reason = format!(
            "groups with budgets can still get {} us of every second of each cpu (kernel.sched_rt_runtime_us, less what serves \
             ordinary work and what others have), {} us are needed",
            grouped(free_us),
            grouped(asked_us)
        );
        return unmet(
            reason,
            "end what holds the rest, or request less (--reservation, or [[workload.reservation]])",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(budget_ns: u64, period_ns: u64) -> Budget {
        Budget {
            enforcer: Enforcer::Hcbs,
            budget_ns,
            period_ns,
        }
    }

    #[test]
    fn what_the_file_or_the_kernel_does_not_take_is_said_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let reason = |budget_ns, period_ns, free_us| {
            cannot(&held(budget_ns, period_ns), free_us, &root).map(|unmet| unmet.reason)
        };
        let ms = 1_000_000;
        assert_eq!(reason(3 * ms, 10 * ms, 300_000), None);
        let short = reason(3 * ms, 10 * ms, 299_999).unwrap();
        assert!(
            short.contains("299,999 us") && short.contains("300,000 us"),
            "{short}"
        );
        let uneven = reason(1_500, 10 * ms, 1_000_000).unwrap();
        assert!(uneven.contains("whole us"), "{uneven}");
        let small = reason(1_000, 10 * ms, 1_000_000).unwrap();
        assert!(small.contains("no less than 2 us"), "{small}");
        for period_ns in [99_000, 4_194_305_000] {
            let period = reason(50_000, period_ns, 1_000_000).unwrap();
            assert!(period.contains("periods of 100 to 4194304 us"), "{period}");
        }
    }

    #[test]
    fn a_kernel_without_it_is_told_what_would_have_it_and_nothing_is_left_of_nobody() {
        let needs = server(&held(1_000_000, 10_000_000));
        if Top::of_this_machine().is_err() {
            let fix = needs.fix.unwrap_or_default();
            assert!(
                !needs.met && fix.contains("patches"),
                "{}: {fix}",
                needs.reason
            );
            assert_eq!(Hcbs.free_us(), 0);
        }
        assert_eq!(Hcbs.remove_left("timecell-nobody"), Ok(()));
    }
}
