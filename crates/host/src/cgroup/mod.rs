//! How the cgroup file systems are laid out on this machine, where a process's own groups are, and
//! which OCI runtimes refuse the layout.

mod group;

use crate::caps::proc_path;
use crate::error::{Doing, Result};
use crate::mounts::{self, Mount as Mounted};
use crate::root::{Root, Unreadable};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub use group::{below, enter, listed, listed_with_those_below, processes, remove_empty};

/// Which generations of cgroups are mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// No cgroup file system is mounted.
    None,
    /// Only version 1 hierarchies.
    V1,
    /// Version 1 hierarchies beside a version 2 one.
    Hybrid {
        /// The controllers on version 2; empty in the usual hybrid layout.
        v2_controllers: Vec<String>,
    },
    /// Only the unified hierarchy of version 2.
    V2,
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Layout::None => write!(f, "no cgroups"),
            Layout::V1 => write!(f, "cgroup v1"),
            Layout::Hybrid { v2_controllers } if v2_controllers.is_empty() => {
                write!(f, "hybrid: v1, with an empty v2 beside it")
            }
            Layout::Hybrid { v2_controllers } => {
                write!(f, "hybrid: v1, with {} on v2", v2_controllers.join(", "))
            }
            Layout::V2 => write!(f, "cgroup v2"),
        }
    }
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The controllers on it (`name=systemd` is left out).
    pub controllers: Vec<String>,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Which group of the hierarchy is visible at the mount point; "/" outside of containers.
    pub root: String,
}

/// The mounted hierarchies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    /// Version 1, in the order of mounting.
    pub v1: Vec<Mount>,
    /// Version 2.
    pub v2: Option<Mount>,
}

/// A runtime that will not start a container on this layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The name of the runtime, such as `crun`.
    pub runtime: String,
    /// Why, in one sentence.
    pub reason: String,
    /// A command that changes it until the next boot.
    pub fix: String,
}

/// Finds the hierarchies mounted for the calling process.
///
/// # Errors
/// If `/proc/self/mountinfo` cannot be read.
pub fn detect() -> Result<Cgroups, Unreadable> {
    detect_at(&Root::live())
}

/// [`detect`] under another root.
pub fn detect_at(root: &Root) -> Result<Cgroups, Unreadable> {
    let mut found = Cgroups {
        v1: Vec::new(),
        v2: None,
    };
    for Mounted {
        root: group,
        point,
        kind,
        options,
    } in mounts::of(&root.read("/proc/self/mountinfo")?)
    {
        let mut mount = Mount {
            controllers: Vec::new(),
            point,
            root: group,
        };
        match kind {
            "cgroup" => {
                mount.controllers = options
                    .split(',')
                    .filter(|option| CONTROLLERS.contains(option))
                    .map(str::to_owned)
                    .collect();
                // A hierarchy mounted twice counts once; the first mount is the usual place.
                if mount.controllers.is_empty()
                    || !found
                        .v1
                        .iter()
                        .any(|known| known.controllers == mount.controllers)
                {
                    found.v1.push(mount);
                }
            }
            "cgroup2" if found.v2.is_none() => {
                mount.controllers = root
                    .read(mount.point.join("cgroup.controllers"))
                    .map(|text| text.split_whitespace().map(str::to_owned).collect())
                    .unwrap_or_default();
                found.v2 = Some(mount);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The controllers of version 1, as named in the mount options.
const CONTROLLERS: [&str; 15] = [
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "hugetlb",
    "net_cls",
    "net_prio",
    "perf_event",
    "rdma",
    "misc",
    "debug",
];

impl Cgroups {
    /// Which generations are mounted.
    pub fn layout(&self) -> Layout {
        match (&self.v1[..], &self.v2) {
            ([], None) => Layout::None,
            (_, None) => Layout::V1,
            ([], Some(_)) => Layout::V2,
            (_, Some(v2)) => Layout::Hybrid {
                v2_controllers: v2.controllers.clone(),
            },
        }
    }

    /// The version 1 hierarchy that has this controller.
    pub fn v1_mount(&self, controller: &str) -> Option<&Mount> {
        self.v1
            .iter()
            .find(|mount| mount.controllers.iter().any(|known| known == controller))
    }

    /// The directory of the group in which process `pid` (0: the calling one) is, in the version 1
    /// hierarchy of this controller. `None` if there is no such hierarchy, no such process, or the
    /// group lies outside of the mounted part.
    pub fn v1_group(&self, root: &Root, controller: &str, pid: i32) -> Option<PathBuf> {
        let mount = self.v1_mount(controller)?;
        let text = root.read(proc_path(pid, "cgroup")).ok()?;
        let group = text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let controllers = fields.nth(1)?;
            let group = fields.next()?;
            controllers
                .split(',')
                .any(|known| known == controller)
                .then_some(group)
        })?;
        under(mount, group)
    }

    /// The directory of the version 2 group in which process `pid` (0: the calling one) is.
    pub fn v2_group(&self, root: &Root, pid: i32) -> Option<PathBuf> {
        let text = root.read(proc_path(pid, "cgroup")).ok()?;
        let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        under(self.v2.as_ref()?, group)
    }

    /// The runtimes that will refuse to start a container on this layout.
    pub fn refusals(&self) -> Vec<Refusal> {
        let Layout::Hybrid { v2_controllers } = self.layout() else {
            return Vec::new();
        };
        if v2_controllers.is_empty() {
            return Vec::new();
        }
        let fix = v2_controllers
            .iter()
            .map(|name| {
                // The one controller whose name changed between the generations.
                let v1_name = if name == "io" { "blkio" } else { name };
                format!(
                    "mkdir -p /sys/fs/cgroup/{v1_name} && mount -t cgroup -o {v1_name} none /sys/fs/cgroup/{v1_name}"
                )
            })
            .collect::<Vec<_>>()
            .join(" && ");
        vec![Refusal {
            runtime: "crun".to_owned(),
            reason: format!(
                "it refuses a hybrid layout with controllers on v2 only ({})",
                v2_controllers.join(", ")
            ),
            fix,
        }]
    }
}

/// Version 2: makes every group above this one hand a controller down, where this one lacks that file of it.
///
/// # Errors
/// Names the file that does not accept it, a clause.
pub fn hand_down(
    root: &Root,
    top: &Path,
    group: &Path,
    controller: &str,
    file: &str,
) -> Result<()> {
    if root.exists(group.join(file)) {
        return Ok(());
    }
    let above: Vec<&Path> = (group.ancestors().skip(1))
        .take_while(|dir| dir.starts_with(top))
        .collect();
    (above.into_iter().rev()).try_for_each(|dir| hand_down_in(root, dir, controller))
}

/// Version 2: the file of a group that gives controllers to the groups in it.
pub const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

/// Version 2: whether a group hands a controller down to those in it.
pub fn is_handed_down(root: &Root, dir: &Path, controller: &str) -> bool {
    let handed = root.read(dir.join(SUBTREE_CONTROL)).unwrap_or_default();
    handed.split_whitespace().any(|name| name == controller)
}

/// Version 2: makes one group hand a controller down to those in it.
///
/// # Errors
/// Names the file that does not accept it, a clause.
pub fn hand_down_in(root: &Root, dir: &Path, controller: &str) -> Result<()> {
    if is_handed_down(root, dir, controller) {
        return Ok(());
    }
    let (file, text) = (dir.join(SUBTREE_CONTROL), format!("+{controller}"));
    std::fs::write(root.path(&file), &text)
        .doing(|| format!("{} does not accept `{text}`", file.display()))
}

/// Where `group`, a path from the root of the hierarchy, appears under the mount.
fn under(mount: &Mount, group: &str) -> Option<PathBuf> {
    let rest = if mount.root == "/" {
        group
    } else {
        // "/docker/a" must not pass for a prefix of "/docker/ab".
        let rest = group.strip_prefix(mount.root.as_str())?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        rest
    };
    if rest.split('/').any(|part| part == "..") {
        return None;
    }
    Some(match rest.trim_matches('/') {
        "" => mount.point.clone(),
        rest => mount.point.join(rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const TMPFS: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n";
    const CPU: &str = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
    const SYSTEMD: &str =
        "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
    const UNIFIED: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn hybrid(controllers: &str) -> Tree {
        Tree::new()
            .file(
                "/proc/self/mountinfo",
                &format!("{TMPFS}{CPU}{SYSTEMD}{UNIFIED}"),
            )
            .file("/sys/fs/cgroup/unified/cgroup.controllers", controllers)
            .file(
                "/proc/self/cgroup",
                "1:name=systemd:/\n4:cpu,cpuacct:/a/b\n0::/c\n",
            )
    }

    #[test]
    fn a_hybrid_layout_with_hugetlb_on_v2_makes_crun_refuse() {
        let tree = hybrid("hugetlb\n");
        let cgroups = detect_at(&tree.root()).unwrap();
        assert_eq!(
            cgroups.layout(),
            Layout::Hybrid {
                v2_controllers: vec!["hugetlb".into()]
            }
        );
        let refusals = cgroups.refusals();
        assert_eq!(refusals.len(), 1);
        assert_eq!(refusals[0].runtime, "crun");
        assert_eq!(
            refusals[0].fix,
            "mkdir -p /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb none /sys/fs/cgroup/hugetlb"
        );
    }

    #[test]
    fn an_empty_v2_beside_v1_is_refused_by_none() {
        let tree = hybrid("\n");
        let cgroups = detect_at(&tree.root()).unwrap();
        assert!(matches!(cgroups.layout(), Layout::Hybrid { .. }));
        assert!(cgroups.refusals().is_empty());
    }

    #[test]
    fn a_process_is_found_in_its_groups() {
        let tree = hybrid("");
        let root = tree.root();
        let cgroups = detect_at(&root).unwrap();
        assert_eq!(
            cgroups.v1_group(&root, "cpu", 0).unwrap(),
            PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/a/b")
        );
        assert_eq!(
            cgroups.v2_group(&root, 0).unwrap(),
            PathBuf::from("/sys/fs/cgroup/unified/c")
        );
        assert_eq!(cgroups.v1_group(&root, "memory", 0), None);
    }

    #[test]
    fn inside_a_container_paths_count_from_the_mounted_group() {
        let mount = |root: &str| Mount {
            controllers: vec!["cpu".into()],
            point: "/sys/fs/cgroup/cpu".into(),
            root: root.into(),
        };
        let at = PathBuf::from;
        assert_eq!(
            under(&mount("/d/x"), "/d/x"),
            Some(at("/sys/fs/cgroup/cpu"))
        );
        assert_eq!(
            under(&mount("/d/x"), "/d/x/y"),
            Some(at("/sys/fs/cgroup/cpu/y"))
        );
        assert_eq!(under(&mount("/d/x"), "/d/xy"), None);
        assert_eq!(under(&mount("/"), "/../elsewhere"), None);
    }

    #[test]
    fn pure_layouts_and_none_are_told_apart() {
        let of = |mountinfo: &str| {
            let tree = Tree::new().file("/proc/self/mountinfo", mountinfo);
            detect_at(&tree.root()).unwrap().layout()
        };
        assert_eq!(of(CPU), Layout::V1);
        assert_eq!(of(UNIFIED), Layout::V2);
        assert_eq!(of("garbage\n - \n1 2 3 - cgroup\n"), Layout::None);
        assert!(detect_at(&Tree::new().root()).is_err());
    }
}
