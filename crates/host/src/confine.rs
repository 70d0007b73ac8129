//! Keeping a process and its children to some cpus from outside: by the cpuset of its group and by its affinity. Where there is
//! a cpuset controller the group cannot be escaped; the affinity holds wherever the process may not change it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup::{self, Cgroups};
use crate::cpus::{format_list, parse_list};
use crate::error::{Doing, Result};
use crate::root::Root;
use crate::sched::{self, SchedError};

/// The means that keep a process to its cpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeps {
    /// The cpuset of this group, and the affinity.
    Cpuset(PathBuf),
    /// The affinity alone, for this reason.
    Affinity(String),
}

/// Why a process is not kept to its cpus.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel refused the affinity.
    #[error(transparent)]
    Class(#[from] SchedError),
    /// The kernel still lets it run elsewhere.
    #[error("process {pid} was put on cpu {}, but the kernel still lets it run on cpu {}", format_list(.wanted), format_list(.found))]
    Elsewhere {
        /// The process.
        pid: i32,
        /// Where it was to run.
        wanted: Vec<u32>,
        /// Where it may run.
        found: Vec<u32>,
    },
}

impl fmt::Display for Keeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keeps::Cpuset(group) => write!(f, "the cpuset {}", group.display()),
            Keeps::Affinity(why) => write!(f, "its affinity alone, because {why}"),
        }
    }
}

/// Keeps a single-threaded process, and all that it will start, to these cpus, and checks with the kernel. The group
/// that the process is in must be its own: everybody in it is kept to the cpus.
///
/// # Errors
/// When the kernel refuses the affinity, or still lets the process run elsewhere.
pub fn confine(pid: i32, cpus: &[u32]) -> Result<Keeps, ConfineError> {
    let root = Root::live();
    let keeps = match cgroup::detect_at(&root) {
        Ok(cgroups) => by_cpuset(&root, &cgroups, pid, cpus),
        Err(unreadable) => Err(unreadable.into()),
    };
    // A cpuset that is written gives all in it its cpus, so that the affinity comes last.
    sched::set_affinity(pid, cpus)?;
    let found = sched::get_affinity(pid)?;
    if !same(&found, cpus) {
        return Err(ConfineError::Elsewhere {
            pid,
            wanted: cpus.to_vec(),
            found,
        });
    }
    Ok(keeps.map_or_else(|why| Keeps::Affinity(why.to_string()), Keeps::Cpuset))
}

/// The group whose cpuset keeps the process, or why there is none, a clause.
fn by_cpuset(root: &Root, cgroups: &Cgroups, pid: i32, cpus: &[u32]) -> Result<PathBuf> {
    const NONE: &str = "there is no cpuset controller";
    let (mount, group) = match cgroups.v1_mount("cpuset") {
        Some(mount) => (mount, cgroups.v1_group(root, "cpuset", pid)),
        None => {
            let mount = cgroups.v2.as_ref().ok_or(NONE)?;
            if !mount.controllers.iter().any(|name| name == "cpuset") {
                return Err(NONE.into());
            }
            (mount, cgroups.v2_group(root, pid))
        }
    };
    let group = group
        .filter(|group| *group != mount.point)
        .ok_or("it is in no group of its own")?;
    if cgroups.v1_mount("cpuset").is_none() {
        cgroup::hand_down(root, &mount.point, &group, "cpuset", "cpuset.cpus")?;
    }
    let file = group.join("cpuset.cpus");
    let already = root.read(&file).ok();
    let already = already.and_then(|text| parse_list(text.trim()).ok());
    if already.is_none_or(|already| !same(&already, cpus)) {
        let list = format_list(cpus);
        write(root, &file, &list)?;
    }
    Ok(group)
}

fn write(root: &Root, file: &Path, text: &str) -> Result<()> {
    fs::write(root.path(file), text)
        .doing(|| format!("{} does not accept `{text}`", file.display()))
}

fn same(one: &[u32], other: &[u32]) -> bool {
    let sorted = |cpus: &[u32]| {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    };
    sorted(one) == sorted(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    /// A machine whose process 7 is in the group `/cell` of a hierarchy of cpusets.
    fn machine(mounts: &str, own: &str) -> Tree {
        Tree::new()
            .file("/proc/mounts", mounts)
            .file("/proc/self/mountinfo", mounts)
            .file("/proc/7/cgroup", own)
    }

    #[test]
    fn version_1_narrows_the_group_and_leaves_one_that_fits_alone() {
        let mounts = "30 20 0:30 / /c rw - cgroup cgroup rw,cpuset\n";
        let tree = machine(mounts, "3:cpuset:/cell\n").file("/c/cell/cpuset.cpus", "0-1\n");
        let root = tree.root();
        let cgroups = cgroup::detect_at(&root).unwrap();
        let group = by_cpuset(&root, &cgroups, 7, &[1]).unwrap();
        assert_eq!(group, Path::new("/c/cell"));
        assert_eq!(root.read("/c/cell/cpuset.cpus").unwrap(), "1");
        // A group that already has them is not written, which would have the kernel build its domains anew.
        std::fs::write(root.path("/c/cell/cpuset.cpus"), "1,1").unwrap();
        by_cpuset(&root, &cgroups, 7, &[1]).unwrap();
        assert_eq!(root.read("/c/cell/cpuset.cpus").unwrap(), "1,1");
    }

    #[test]
    fn version_2_hands_the_controller_down_first() {
        let mounts = "30 20 0:30 / /c rw - cgroup2 cgroup2 rw\n";
        let tree = machine(mounts, "0::/cell\n")
            .file("/c/cgroup.controllers", "cpuset pids\n")
            .file("/c/cgroup.subtree_control", "pids\n")
            .file("/c/cell/cgroup.procs", "7\n");
        let root = tree.root();
        let cgroups = cgroup::detect_at(&root).unwrap();
        by_cpuset(&root, &cgroups, 7, &[0]).unwrap();
        assert_eq!(root.read("/c/cgroup.subtree_control").unwrap(), "+cpuset");
        assert_eq!(root.read("/c/cell/cpuset.cpus").unwrap(), "0");
    }

    #[test]
    fn the_group_of_everybody_is_not_touched() {
        let mounts = "30 20 0:30 / /c rw - cgroup cgroup rw,cpuset\n";
        let tree = machine(mounts, "3:cpuset:/\n").file("/c/cpuset.cpus", "0-1\n");
        let root = tree.root();
        let cgroups = cgroup::detect_at(&root).unwrap();
        let why = by_cpuset(&root, &cgroups, 7, &[1]).unwrap_err();
        assert!(why.to_string().contains("no group of its own"), "{why}");
        assert_eq!(root.read("/c/cpuset.cpus").unwrap(), "0-1");
    }
}
