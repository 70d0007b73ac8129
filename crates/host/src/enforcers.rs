//! Which enforcers this kernel has, their needs, the missing ones and the preferred one. This is only about whether they exist:
//! their free share for cells is a question of admission.

use std::path::PathBuf;

use model::Enforcer;
use serde::Serialize;

use crate::cgroup;
use crate::cpus::parse_list;
use crate::error::Result;
use crate::hcbs;
use crate::isolate::Partitions;
use crate::kernel;
use crate::root::Root;
use crate::rtgroup::{self, Budget};

/// One mechanism on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The mechanism.
    pub enforcer: Enforcer,
    /// Whether the kernel has it.
    pub has: bool,
    /// Whether a mission can use it: the kernel has it, and timecell holds cells of missions by it.
    pub holds_missions: bool,
    /// How it works here, or the missing part; a clause.
    pub found: String,
}

/// Every mechanism, in the order of [`Enforcer::ALL`].
pub fn found(root: &Root) -> Vec<Found> {
    (Enforcer::ALL.iter())
        .map(|&enforcer| {
            let here = here(root, enforcer);
            let can_be_asked = Enforcer::OF_MISSIONS.contains(&enforcer);
            let has = here.is_ok();
            let mut found = here.unwrap_or_else(|missing| missing.to_string());
            if has && !can_be_asked {
                found.push_str("; missions cannot use it in this version of timecell");
            }
            Found {
                enforcer,
                has,
                holds_missions: has && can_be_asked,
                found,
            }
        })
        .collect()
}

/// How a mechanism works on this kernel, a clause.
///
/// # Errors
/// The missing part, a clause.
pub fn here(root: &Root, enforcer: Enforcer) -> Result<String> {
    match enforcer {
        Enforcer::RtCgroup => rt_cgroup(root).map(|(top, _)| {
            format!(
                "real-time groups of cgroup v1 at {}; the kernel checks budgets in its tick{}",
                top.display(),
                tick(root)
            )
        }),
        Enforcer::Deadline => deadline(root).map(|()| {
            let ends = match kernel::deadline_by_timer(root) {
                Some(true) => "budgets end by a timer (HRTICK_DL)".to_owned(),
                Some(false) => format!("budgets end in the tick{} (NO_HRTICK_DL)", tick(root)),
                None => format!("budgets end in the tick{}, unless HRTICK_DL is on", tick(root)),
            };
            format!(
                "SCHED_DEADLINE, a budget for each thread; {ends}{}",
                anywhere(root)
            )
        }),
        Enforcer::Hcbs => Ok(hcbs::detect_at(root).map(|top| {
            format!(
                "{} of cgroup v2 at {}, which only a patched kernel has; the kernel checks budgets in its tick{}",
                hcbs::MAX,
                top.display(),
                tick(root)
            )
        })?),
        Enforcer::Freezer => freezer(root).map(|top| {
            format!(
                "cgroup v2 with its freezer at {}; a thread of class FIFO enforces budgets by the clock",
                top.display()
            )
        }),
        Enforcer::EvlQuota => evl_quota(root).map(|()| {
            "quota groups of EVL, which threads out of band enter by themselves; all have a period of 1 s".to_owned()
        }),
        Enforcer::EvlTp => evl_tp(root).map(|most| {
            format!("time partitions of EVL, which threads out of band enter by themselves; {most} windows in a frame at most")
        }),
        Enforcer::CpusetOnly => {
            Ok("affinity and cpusets, which every kernel has; no budget is enforced".to_owned())
        }
    }
}

/// The clause that SCHED_DEADLINE threads cannot be kept to some of the cpus here, and why; empty: they can, or there is one cpu.
fn anywhere(root: &Root) -> String {
    let online = root.read("/sys/devices/system/cpu/online");
    let cpus = parse_list(&online.unwrap_or_default()).unwrap_or_default();
    match Partitions::detect_at(root, "/nonexistent") {
        Err(why) if cpus.len() > 1 => format!("{ANYWHERE}: {why}"),
        _ => String::new(),
    }
}

const ANYWHERE: &str = "; a cell may run on any cpu and cannot be confined to some of them";

/// The top group of the real-time groups and its budget.
///
/// # Errors
/// Why this kernel has no such groups, or lets none of them run anything, a clause.
pub fn rt_cgroup(root: &Root) -> Result<(PathBuf, Budget)> {
    let top = rtgroup::detect_at(root)?;
    let budget = rtgroup::budget_of(root, &top)?;
    match budget.runtime_us {
        0 => Err(NO_RUNTIME.into()),
        _ => Ok((top, budget)),
    }
}

/// Checks that threads can have the class SCHED_DEADLINE.
///
/// # Errors
/// Why the kernel admits none, a clause.
pub fn deadline(root: &Root) -> Result<()> {
    match root.read_number::<i64>("/proc/sys/kernel/sched_rt_runtime_us") {
        Ok(0) => Err(NO_RUNTIME.into()),
        _ => Ok(()),
    }
}

const NO_RUNTIME: &str = "kernel.sched_rt_runtime_us is 0";

/// Where groups for the freezer of cgroup v2 are made: the top of that tree.
///
/// # Errors
/// The missing part, a clause.
pub fn freezer(root: &Root) -> Result<PathBuf> {
    let cgroups = cgroup::detect_at(root)?;
    let top = match cgroups.v2 {
        Some(mount) => mount.point,
        None => {
            return Err("cgroup v2 is not mounted (mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified)".into());
        }
    };
    // The group at the top has no such file, and one that has been removed meanwhile says nothing. Where there is none below the top,
    // the release tells.
    let mut groups: Vec<PathBuf> = (root.dirs_in(&top).iter())
        .map(|group| top.join(group))
        .collect();
    groups.retain(|group| root.exists(group.join("cgroup.procs")));
    let has = match groups.is_empty() {
        false => (groups.iter()).any(|group| root.exists(group.join("cgroup.freeze"))),
        true => kernel::is_since(root, 5, 2) != Some(false),
    };
    has.then_some(top)
        .ok_or_else(|| "cgroup v2 has no freezer, which needs Linux 5.2 or later".into())
}

/// Checks that EVL has quotas.
///
/// # Errors
/// The missing part, a clause.
pub fn evl_quota(root: &Root) -> Result<()> {
    const PERIOD: &str = "/sys/class/evl/control/quota";
    match root.read_number::<u64>(PERIOD) {
        Ok(::evl::PERIOD_NS) => Ok(()),
        Ok(other) => Err(format!(
            "{PERIOD} was changed to {other} ns, and whether the core follows it is not known; write {} there",
            ::evl::PERIOD_NS
        )
        .into()),
        Err(_) => Err("this kernel has no EVL with quotas (CONFIG_EVL_SCHED_QUOTA)".into()),
    }
}

/// How many windows the frame of a cpu may have in this kernel's EVL.
///
/// # Errors
/// The missing part, a clause.
pub fn evl_tp(root: &Root) -> Result<usize> {
    let most = root.read_number("/sys/class/evl/control/tp");
    most.map_err(|_| "this kernel has no EVL with time partitions (CONFIG_EVL_SCHED_TP)".into())
}

/// " of 4000 us", if it is known.
fn tick(root: &Root) -> String {
    let us = kernel::tick_hz(root).map(|hz| 1_000_000 / hz);
    us.map_or_else(String::new, |us| format!(" of {us} us"))
}

/// Which of these mechanisms to prefer here and why, one sentence.
pub fn preference(found: &[Found]) -> String {
    let has = |enforcer: Enforcer| {
        (found.iter()).any(|each| each.enforcer == enforcer && each.holds_missions)
    };
    let is_anywhere = (found.iter())
        .any(|each| each.enforcer == Enforcer::Deadline && each.found.contains(ANYWHERE));
    let single = has(Enforcer::Deadline).then_some(match is_anywhere {
        true => {
            "`deadline` for a cell that is one task in one thread and may run on any cpu, where the kernel itself keeps the budget and a task \
             reserves least"
        }
        false => {
            "`deadline` for a cell that is one task in one thread, where the kernel itself keeps the budget and a task reserves least"
        }
    });
    let whole = if has(Enforcer::RtCgroup) {
        Some((
            "`rt-cgroup` for a cell of several threads",
            "because the kernel holds all of them to one budget",
        ))
    } else if has(Enforcer::Hcbs) {
        Some((
            "`hcbs` for a cell of several threads",
            "because the kernel holds all of them to one budget",
        ))
    } else if has(Enforcer::Freezer) {
        Some((
            "`freezer` for a cell of several threads",
            "because nothing else here holds all of them to one budget",
        ))
    } else {
        None
    };
    let mut sentence = match (single, whole) {
        (Some(single), Some((whole, why))) => format!("prefer {single}, and {whole}, {why}"),
        (Some(single), None) => format!(
            "prefer {single}: it is the only mechanism here that holds cells of missions to a budget, and it cannot hold a cell of several threads"
        ),
        (None, Some((whole, why))) => format!("prefer {whole} or one, {why}"),
        (None, None) => {
            "nothing here holds cells of missions to a budget: `cpuset-only` gives them cpus of their own and no more".to_owned()
        }
    };
    if (has(Enforcer::RtCgroup) || has(Enforcer::Hcbs)) && has(Enforcer::Freezer) {
        sentence.push_str("; where the tick makes that reserve too much, use `freezer`");
    }
    sentence.push('.');
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    fn mounts(text: &str) -> Tree {
        Tree::new().file("/proc/self/mountinfo", text)
    }

    fn with_groups(runtime: &str) -> Tree {
        mounts(V1)
            .file("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", runtime)
            .file("/sys/fs/cgroup/cpu/cpu.rt_period_us", "1000000\n")
    }

    #[test]
    fn each_is_found_by_what_it_needs() {
        let of = |tree: Tree, enforcer| here(&tree.root(), enforcer);
        assert!(of(with_groups("950000\n"), Enforcer::RtCgroup).is_ok());
        let zero = of(with_groups("0\n"), Enforcer::RtCgroup)
            .unwrap_err()
            .to_string();
        assert_eq!(zero, "kernel.sched_rt_runtime_us is 0");
        assert!(of(mounts(V2), Enforcer::RtCgroup).is_err());
        let runtime = |text| Tree::new().file("/proc/sys/kernel/sched_rt_runtime_us", text);
        assert!(of(runtime("950000\n"), Enforcer::Deadline).is_ok());
        assert!(of(runtime("-1\n"), Enforcer::Deadline).is_ok());
        assert!(of(runtime("0\n"), Enforcer::Deadline).is_err());
        // A cpuset of its own for some cpus there is with version 2 alone.
        let cpus = |tree: Tree| {
            tree.file("/sys/devices/system/cpu/online", "0-1\n")
                .file("/proc/sys/kernel/sched_rt_runtime_us", "950000\n")
        };
        let v2 = cpus(mounts(V2)).file("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
        for (tree, anywhere) in [(v2, false), (cpus(mounts(V1)), true)] {
            let found = found(&tree.root());
            let deadline = found
                .iter()
                .find(|each| each.enforcer == Enforcer::Deadline);
            let text = &deadline.unwrap().found;
            assert_eq!(text.contains(ANYWHERE), anywhere, "{text}");
            let told = preference(&found);
            assert_eq!(told.contains("may run on any cpu"), anywhere, "{told}");
        }
        assert!(of(mounts(V1), Enforcer::Freezer).is_err());
        assert!(of(mounts(V2), Enforcer::Freezer).is_ok());
        let old = mounts(V2).file("/proc/sys/kernel/osrelease", "4.19.0\n");
        assert!(of(old, Enforcer::Freezer).is_err());
        let group = |file: &str| mounts(V2).file(&format!("/sys/fs/cgroup/init/{file}"), "0\n");
        assert!(of(group("cgroup.freeze"), Enforcer::Freezer).is_ok());
        assert!(of(group("cgroup.procs"), Enforcer::Freezer).is_err());
        assert!(of(mounts(V2), Enforcer::Hcbs).is_err());
        let hcbs = mounts(V2).file("/sys/fs/cgroup/cpu.rt.max", "0 100000\n");
        assert!(of(hcbs, Enforcer::Hcbs).is_ok());
        assert!(of(Tree::new(), Enforcer::CpusetOnly).is_ok());
    }

    #[test]
    fn servers_of_cgroup_v2_are_found_and_preferred_for_whole_cells() {
        let tree = mounts(V2).file("/sys/fs/cgroup/cpu.rt.max", "0 100000\n");
        let found = found(&tree.root());
        assert_eq!(found.len(), Enforcer::ALL.len());
        let hcbs = found
            .iter()
            .find(|each| each.enforcer == Enforcer::Hcbs)
            .unwrap();
        assert!(hcbs.has && hcbs.holds_missions);
        let preferred = preference(&found);
        assert!(
            preferred.contains("`hcbs` for a cell of several threads"),
            "{preferred}"
        );
        assert!(preferred.ends_with("`freezer`."), "{preferred}");
    }

    #[test]
    fn the_preference_follows_from_what_is_there() {
        let of = |there: &[Enforcer]| {
            let found: Vec<Found> = (Enforcer::ALL.iter())
                .map(|&enforcer| Found {
                    enforcer,
                    has: there.contains(&enforcer),
                    holds_missions: there.contains(&enforcer),
                    found: String::new(),
                })
                .collect();
            preference(&found)
        };
        let (rt, deadline) = (Enforcer::RtCgroup, Enforcer::Deadline);
        let (freezer, none) = (Enforcer::Freezer, Enforcer::CpusetOnly);
        let both = of(&[rt, deadline, none]);
        assert!(
            both.contains("`deadline` for a cell that is one task"),
            "{both}"
        );
        assert!(
            both.contains("`rt-cgroup` for a cell of several threads"),
            "{both}"
        );
        assert!(!both.contains("freezer"), "{both}");
        let all = of(&[rt, deadline, freezer, none]);
        assert!(
            all.contains("`rt-cgroup` for") && all.ends_with("`freezer`."),
            "{all}"
        );
        // As on a PREEMPT_RT kernel with cgroup v2 only.
        let v2 = of(&[deadline, freezer, none]);
        assert!(
            v2.contains("`freezer` for a cell of several threads"),
            "{v2}"
        );
        let single = of(&[deadline, none]);
        assert!(
            single.contains("it cannot hold a cell of several threads"),
            "{single}"
        );
        assert!(of(&[none]).starts_with("nothing here"));
    }
}
