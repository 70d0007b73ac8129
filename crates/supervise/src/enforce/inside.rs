//! A cell's processes, as the host sees them.

use std::fs;
use std::path::{Path, PathBuf};

/// A cell's processes, as the host sees them.
#[derive(Debug, Clone)]
pub struct Inside {
    /// Its first process.
    pub pid: i32,
    /// Its groups, one in each hierarchy; they outlive its processes.
    pub groups: Vec<PathBuf>,
}

impl Inside {
    /// Ids of all its threads, of whatever process; those of its first process alone where no group tells.
    pub fn threads(&self) -> Vec<i32> {
        let listed = (self.groups.iter().map(|group| listed(group))).find(|text| !text.is_empty());
        match listed {
            Some(text) => text
                .lines()
                .filter_map(|line| line.parse().ok())
                // 0 stands for a thread of another pid namespace.
                .filter(|thread| *thread > 0)
                .collect(),
            None => (fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter())
                .flatten()
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect(),
        }
    }
}

/// The threads of a group and of those below it, where podman puts a container and where those of enclosed cells are. Version 1 and
/// version 2 name the file differently; any one hierarchy has all of them.
fn listed(group: &Path) -> String {
    let own = ["tasks", "cgroup.threads"].map(|file| fs::read_to_string(group.join(file)));
    let mut text: String = own.into_iter().flatten().collect();
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        // podman puts its monitor of the container beside it, which is no thread of the cell.
        let is_monitor = entry.file_name() == "conmon";
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_monitor {
            text.push_str(&listed(&entry.path()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_from_any_group_that_tells_and_else_from_proc() {
        let dir = tempfile::tempdir().unwrap();
        let inside = |groups: &[&str]| Inside {
            pid: std::process::id().cast_signed(),
            groups: groups.iter().map(|name| dir.path().join(name)).collect(),
        };
        for (group, file) in [("one", "tasks"), ("two", "cgroup.threads")] {
            fs::create_dir(dir.path().join(group)).unwrap();
            fs::write(dir.path().join(group).join(file), "12\n0\n14\n").unwrap();
            assert_eq!(inside(&["nowhere", group]).threads(), [12, 14]);
        }
        let below = dir.path().join("outer/cell");
        fs::create_dir_all(&below).unwrap();
        fs::write(dir.path().join("outer/cgroup.threads"), "").unwrap();
        fs::write(below.join("cgroup.threads"), "15\n16\n").unwrap();
        let monitor = dir.path().join("outer/conmon");
        fs::create_dir(&monitor).unwrap();
        fs::write(monitor.join("cgroup.threads"), "17\n").unwrap();
        assert_eq!(inside(&["outer"]).threads(), [15, 16]);
        let own = inside(&[]).threads();
        assert!(own.contains(&std::process::id().cast_signed()), "{own:?}");
    }
}
