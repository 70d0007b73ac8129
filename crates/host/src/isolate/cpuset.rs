//! Load balancing: cpus taken out of it by the cpuset file system.
//!
//! Version 1: one cpuset of the other cpus goes on balancing, and every cpuset that includes the cpus stops (cpuset(7),
//! "sched_load_balance"). No task is moved to another group. Version 2: a partition in state `isolated`, which the
//! users of the cpus must join (the kernel's cgroup-v2, "cpuset.cpus.partition").

use std::path::{Path, PathBuf};

use super::found::{IsolateError, Isolated};
use super::journal::{Change, GROUP, Journal};
use crate::cgroup::{self, Mount};
use crate::cpus::{format_list, parse_list};
use crate::error::{Doing, Result};
use crate::file::gone;
use crate::root::{Root, reason_of};

/// Levels of groups that are looked through.
const DEPTH: usize = 8;

/// Takes the cpus out of load balancing if that is possible; tells the outcome in `found`. Returns the group that users
/// of the cpus must join, if there is one.
pub(super) fn split(
    root: &Root,
    journal: &mut Journal,
    found: &mut Isolated,
) -> Result<Option<PathBuf>, IsolateError> {
    if !found.cpus.is_empty() && found.cpus.iter().all(|cpu| found.isolcpus.contains(cpu)) {
        found.balancing = "already off, by isolcpus= or a partition".to_owned();
        return Ok(None);
    }
    let cgroups = cgroup::detect_at(root)?;
    let v2 = cgroups
        .v2
        .as_ref()
        .filter(|mount| mount.controllers.iter().any(|name| name == "cpuset"));
    let done = match (cgroups.v1_mount("cpuset"), v2) {
        (Some(mount), _) => version_1(mount, journal, found)?.map(|()| None),
        (None, Some(mount)) => version_2(mount, journal, found)?.map(Some),
        (None, None) => Err("there is no cpuset controller".into()),
    };
    Ok(match done {
        Ok(group) => {
            found.balancing = match group {
                None => "off: a cpuset balances over the other cpus only".to_owned(),
                Some(_) => "off: the cpus are an isolated cpuset partition".to_owned(),
            };
            group
        }
        Err(why) => {
            found.balancing = format!("on: {why}");
            None
        }
    })
}

fn version_1(
    mount: &Mount,
    journal: &mut Journal,
    found: &Isolated,
) -> Result<Result<()>, IsolateError> {
    if mount.root != "/" {
        return Ok(Err(
            "the root of the cpuset hierarchy is not mounted here".into()
        ));
    }
    let group = mount.point.join(format!("{GROUP}{}", std::process::id()));
    journal.note(&Change::Group {
        path: group.clone(),
    })?;
    let made = || -> Result<()> {
        make(&group)?;
        let mems = read(&mount.point.join("cpuset.mems"))?;
        write(&group.join("cpuset.cpus"), &format_list(&found.rest))?;
        write(&group.join("cpuset.mems"), &mems)
    };
    if let Err(why) = made() {
        let _ = remove(&group);
        return Ok(Err(why));
    }
    let mut reaching = Vec::new();
    below(&mount.point, DEPTH, &mut |dir| {
        let cpus = read(&dir.join("cpuset.cpus")).unwrap_or_default();
        let cpus = parse_list(&cpus).unwrap_or_default();
        let balances = read(&dir.join("cpuset.sched_load_balance")).is_ok_and(|on| on == "1");
        if balances && cpus.iter().any(|cpu| found.cpus.contains(cpu)) {
            reaching.push(dir.join("cpuset.sched_load_balance"));
        }
    });
    for file in reaching {
        journal.note(&Change::File {
            path: file.clone(),
            was: "1".to_owned(),
            set: "0".to_owned(),
        })?;
        if let Err(why) = write(&file, "0") {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

fn version_2(
    mount: &Mount,
    journal: &mut Journal,
    found: &Isolated,
) -> Result<Result<PathBuf>, IsolateError> {
    if mount.root != "/" {
        return Ok(Err(
            "the root of the cgroup hierarchy is not mounted here".into()
        ));
    }
    // Groups at the top have cpusets only where the top hands the controller down.
    let root = Root::live();
    if !cgroup::is_handed_down(&root, &mount.point, "cpuset") {
        journal.note(&Change::File {
            path: mount.point.join(cgroup::SUBTREE_CONTROL),
            was: "-cpuset".to_owned(),
            set: "+cpuset".to_owned(),
        })?;
        if let Err(why) = cgroup::hand_down_in(&root, &mount.point, "cpuset") {
            return Ok(Err(why));
        }
    }
    let group = mount.point.join(format!("{GROUP}{}", std::process::id()));
    journal.note(&Change::Group {
        path: group.clone(),
    })?;
    let made = make_partition(&group, &found.cpus, "isolated");
    Ok(made.map(|()| group))
}

/// Version 2: makes a group whose cpus are a partition of this state (`root`, `isolated`); nothing is left of one that the kernel
/// refuses.
pub(super) fn make_partition(group: &Path, cpus: &[u32], state: &str) -> Result<()> {
    taken_already(group, cpus)?;
    let made = || -> Result<()> {
        make(group)?;
        let file = group.join("cpuset.cpus.partition");
        write(&group.join("cpuset.cpus"), &format_list(cpus))?;
        write(&file, state)?;
        match read(&file)? {
            found if found == state => Ok(()),
            found => Err(format!("the kernel calls the partition `{found}`").into()),
        }
    };
    made().inspect_err(|_| {
        let _ = remove(group);
    })
}

/// That no group beside this one is a partition of one of these cpus: the kernel would call that one invalid for the mere mention of
/// its cpu in another's `cpuset.cpus`.
fn taken_already(group: &Path, cpus: &[u32]) -> Result<()> {
    let beside = group.parent().map(std::fs::read_dir);
    for entry in beside.into_iter().flatten().flatten().flatten() {
        let other = entry.path();
        let state = read(&other.join("cpuset.cpus.partition")).unwrap_or_default();
        if other == group || !matches!(state.as_str(), "root" | "isolated") {
            continue;
        }
        let its = read(&other.join("cpuset.cpus")).unwrap_or_default();
        let its = parse_list(&its).unwrap_or_default();
        if let Some(cpu) = cpus.iter().find(|cpu| its.contains(cpu)) {
            return Err(format!("cpu {cpu} is in the partition {}", other.display()).into());
        }
    }
    Ok(())
}

/// Removes a group that was made here; processes still in it go to the group above.
pub(super) fn remove(group: &Path) -> Option<String> {
    if !group.exists() {
        return None;
    }
    // The kernel takes a removed group apart later on, and kernels before 6.2 bind tasks to all cpus then, also those that have been bound
    // again meanwhile. This it does at once.
    let state = group.join("cpuset.cpus.partition");
    if state.exists() {
        let _ = write(&state, "member");
    }
    let above = group.parent()?;
    for pid in cgroup::processes(group) {
        let _ = cgroup::enter(above, pid);
    }
    let kept = gone(std::fs::remove_dir(group)).err()?;
    Some(format!(
        "{} could not be removed: {}",
        group.display(),
        reason_of(&kept)
    ))
}

fn make(group: &Path) -> Result<()> {
    std::fs::create_dir(group).doing(|| format!("{} cannot be made", group.display()))
}

fn read(path: &Path) -> Result<String> {
    crate::file::text(path)
        .map(|text| text.trim().to_owned())
        .doing(|| format!("{} cannot be read", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).doing(|| format!("{} does not accept `{text}`", path.display()))
}

fn below(dir: &Path, depth: usize, see: &mut dyn FnMut(&Path)) {
    see(dir);
    if depth == 0 {
        return;
    }
    for inner in cgroup::below(dir) {
        below(&inner, depth - 1, see);
    }
}
