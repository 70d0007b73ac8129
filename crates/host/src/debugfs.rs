//! The kernel's scheduler in debugfs, and why it often cannot be read: debugfs may not be mounted, belongs to root, and is closed
//! to everybody where the kernel is locked down.

use crate::root::{Root, Unreadable};

/// Its usual mount point.
pub const POINT: &str = "/sys/kernel/debug";

/// The path of a file of debugfs, such as `sched/features`.
pub fn path(file: &str) -> String {
    format!("{POINT}/{file}")
}

/// The text of a file of debugfs.
///
/// # Errors
/// The reason, with a remedy where there is one.
pub fn read(root: &Root, file: &str) -> Result<String, Unreadable> {
    let path = path(file);
    root.read(&path).map_err(|error| {
        let reason = match error.reason.as_str() {
            "no such file or directory" if !is_mounted(root) => {
                "debugfs is not mounted: mount -t debugfs none /sys/kernel/debug".to_owned()
            }
            "no such file or directory" => "this kernel has no such file".to_owned(),
            "permission denied" => "only root may read debugfs".to_owned(),
            "operation not permitted" => {
                "the kernel is locked down and lets nobody read debugfs".to_owned()
            }
            _ => error.reason,
        };
        Unreadable { path, reason }
    })
}

/// Whether a file exists there; ordinary users, who may not look into it, see none.
fn is_mounted(root: &Root) -> bool {
    !root.names_in(POINT).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_debugfs_that_is_absent_is_told_from_a_file_that_is() {
        let absent = read(&Tree::new().root(), "sched/features").unwrap_err();
        assert!(absent.reason.contains("mount -t debugfs"), "{absent}");
        let tree = Tree::new().file("/sys/kernel/debug/sched/preempt", "full\n");
        let other = read(&tree.root(), "sched/features").unwrap_err();
        assert_eq!(other.reason, "this kernel has no such file");
        assert_eq!(read(&tree.root(), "sched/preempt").unwrap(), "full");
    }
}
