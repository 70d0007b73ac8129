//! A cell's processes, as the host sees them.

use std::fs;
use std::path::PathBuf;

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
        // Version 1 and version 2 name the file differently; any one hierarchy has all of them.
        let listed = (self.groups.iter())
            .flat_map(|group| [group.join("tasks"), group.join("cgroup.threads")])
            .find_map(|file| {
                fs::read_to_string(file)
                    .ok()
                    .filter(|text| !text.is_empty())
            });
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
        let own = inside(&[]).threads();
        assert!(own.contains(&std::process::id().cast_signed()), "{own:?}");
    }
}
