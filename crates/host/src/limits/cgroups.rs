//! The limits of control groups: processes and memory of timecell's group and of every group above it, and the number of groups.

use super::limit::{Kind, Limit};
use crate::cgroup;
use crate::root::Root;
use std::path::{Path, PathBuf};

/// Ids that the kernel has for memory groups, removed ones with pages left included (`MEM_CGROUP_ID_MAX`).
const MEMORY_GROUPS: u64 = 65_535;

pub(super) fn limits(root: &Root) -> Vec<Limit> {
    let mut found = Vec::new();
    if let Ok(cgroups) = cgroup::detect_at(root) {
        let v1 = |controller: &str| {
            let mount = cgroups.v1_mount(controller)?.point.clone();
            Some((mount, cgroups.v1_group(root, controller, 0)?))
        };
        let v2 = || {
            Some((
                cgroups.v2.as_ref()?.point.clone(),
                cgroups.v2_group(root, 0)?,
            ))
        };
        if let Some((top, own)) = v1("pids").or_else(v2) {
            found.extend(upwards(&top, &own, |group| pids(root, group)));
        }
        if let Some((top, own)) = v1("memory") {
            found.extend(upwards(&top, &own, |group| {
                memory(
                    root,
                    group,
                    "memory.usage_in_bytes",
                    "memory.limit_in_bytes",
                )
            }));
        } else if let Some((top, own)) = v2() {
            found.extend(upwards(&top, &own, |group| {
                memory(root, group, "memory.current", "memory.max")
            }));
        }
        if let Some((top, own)) = v2() {
            found.extend(upwards(&top, &own, |group| descendants(root, group)));
        }
    }
    found.extend(memory_groups(root));
    found
}

/// The group and all above it, up to the root of the hierarchy.
fn upwards(top: &Path, own: &Path, limit: impl Fn(&Path) -> Option<Limit>) -> Vec<Limit> {
    let mut found = Vec::new();
    let mut at: Option<PathBuf> = Some(own.to_owned());
    while let Some(group) = at {
        found.extend(limit(&group));
        at = (group != top)
            .then(|| group.parent().map(Path::to_owned))
            .flatten()
            .filter(|parent| parent.starts_with(top));
    }
    found
}

fn pids(root: &Root, group: &Path) -> Option<Limit> {
    let file = group.join("pids.max");
    Some(Limit {
        kind: Kind::Processes,
        what: format!("processes and threads in cgroup {}", group.display()),
        used: root.read_number(group.join("pids.current")).ok(),
        most: root.read_number(&file).ok()?,
        unit: "",
        fix: format!("raise it: echo max > {}", file.display()),
        name: file.display().to_string(),
    })
}

fn memory(root: &Root, group: &Path, used: &str, most: &str) -> Option<Limit> {
    let file = group.join(most);
    let bytes: u64 = root.read_number(&file).ok()?;
    // Version 1 writes "no limit" as the largest number of pages.
    (bytes < 1 << 60).then(|| Limit {
        kind: Kind::Memory,
        what: format!("memory of cgroup {}", group.display()),
        used: (root.read_number::<u64>(group.join(used)).ok()).map(|bytes| bytes >> 20),
        most: bytes >> 20,
        unit: " MiB",
        fix: format!("write a larger number of bytes to {}", file.display()),
        name: file.display().to_string(),
    })
}

fn descendants(root: &Root, group: &Path) -> Option<Limit> {
    let file = group.join("cgroup.max.descendants");
    let stat = root.read(group.join("cgroup.stat")).ok();
    let used = stat.as_deref().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("nr_descendants "))?;
        line.trim().parse().ok()
    });
    Some(Limit {
        kind: Kind::Cgroups,
        what: format!("groups below cgroup {}", group.display()),
        used,
        most: root.read_number(&file).ok()?,
        unit: "",
        fix: format!("raise it: echo max > {}", file.display()),
        name: file.display().to_string(),
    })
}

fn memory_groups(root: &Root) -> Option<Limit> {
    let text = root.read("/proc/cgroups").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("memory"))?;
    Some(Limit {
        kind: Kind::Cgroups,
        what: "memory control groups of the machine".to_owned(),
        name: "MEM_CGROUP_ID_MAX of the kernel".to_owned(),
        used: line.split_whitespace().nth(1)?.parse().ok(),
        most: MEMORY_GROUPS,
        unit: "",
        fix: "remove unused groups; the number is built into the kernel".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn limits_of_every_group_above_are_found() {
        let tree = Tree::new()
            .file("/cg/a/pids.max", "max\n")
            .file("/cg/a/b/pids.max", "100\n")
            .file("/cg/a/b/pids.current", "99\n")
            .file(
                "/proc/cgroups",
                "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t77\t1\n",
            );
        let root = tree.root();
        let found = upwards(Path::new("/cg"), Path::new("/cg/a/b"), |group| {
            pids(&root, group)
        });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].value(), "99 of 100");
        assert_eq!(found[0].fix, "raise it: echo max > /cg/a/b/pids.max");
        assert_eq!(memory_groups(&root).unwrap().value(), "77 of 65,535");
    }
}
