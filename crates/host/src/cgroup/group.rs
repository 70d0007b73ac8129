//! One group, by its directory.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::file::{FileError, at, gone};

/// The groups in a group, in no order; none of one that cannot be read.
pub fn below(group: &Path) -> Vec<PathBuf> {
    // A directory of the kernel's has a link for itself, one from its parent and one from each directory in it (kernfs_refresh_inode of
    // `fs/kernfs/inode.c`); to read it takes much longer, as each group has dozens of files.
    if fs::metadata(group).is_ok_and(|group| group.nlink() == 2) {
        return Vec::new();
    }
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|entry| entry.path()).collect()
}

/// The numbers in a file of a group, such as `cgroup.threads`; none if it cannot be read. 0 stands for one of another pid namespace.
pub fn listed(group: &Path, file: &str) -> Vec<i32> {
    let text = crate::file::text(group.join(file)).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The same with those of the groups below it.
pub fn listed_with_those_below(group: &Path, file: &str) -> Vec<i32> {
    let mut all = listed(group, file);
    for below in below(group) {
        all.extend(listed_with_those_below(&below, file));
    }
    all
}

/// The processes in a group itself.
pub fn processes(group: &Path) -> Vec<i32> {
    listed(group, "cgroup.procs")
}

/// Moves a process into a group.
///
/// # Errors
/// The kernel's error about `cgroup.procs`.
pub fn enter(group: &Path, pid: i32) -> Result<(), FileError> {
    let file = group.join("cgroup.procs");
    fs::write(&file, pid.to_string()).map_err(at(&file))
}

/// Removes a group that nobody is in, with those below it; fine if it is gone.
///
/// # Errors
/// EBUSY while a process is in one of them.
pub fn remove_empty(group: &Path) -> io::Result<()> {
    below(group)
        .iter()
        .try_for_each(|group| remove_empty(group))?;
    gone(fs::remove_dir(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_seen_with_those_below_and_removed_inside_first() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("cgroup.procs"), "12\n0\n").unwrap();
        fs::write(top.join("a/b/cgroup.procs"), "14\n").unwrap();
        assert_eq!(below(&top), [top.join("a")]);
        assert_eq!(processes(&top), [12, 0]);
        assert_eq!(listed_with_those_below(&top, "cgroup.procs"), [12, 0, 14]);
        enter(&top.join("a"), 15).unwrap();
        assert_eq!(processes(&top.join("a")), [15]);
        let refused = enter(&top.join("none"), 15).unwrap_err();
        assert!(refused.path.ends_with("none/cgroup.procs"), "{refused}");
        // Files stand for processes here.
        assert!(remove_empty(&top).is_err());
        for file in ["cgroup.procs", "a/cgroup.procs", "a/b/cgroup.procs"] {
            let _ = fs::remove_file(top.join(file));
        }
        remove_empty(&top).unwrap();
        assert!(!top.exists());
        remove_empty(&top).unwrap();
    }
}
