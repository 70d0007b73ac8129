//! Processes and threads.

use super::limit::{Kind, Limit, Resource, of_file, of_process, pids};
use crate::root::Root;
use std::os::unix::fs::MetadataExt;

pub(super) fn limits(root: &Root, uid: u32) -> Vec<Limit> {
    let mut found = of_machine(root);
    let mine = pids(root)
        .filter(|pid| {
            let dir = root.path(format!("/proc/{pid}"));
            dir.metadata().is_ok_and(|found| found.uid() == uid)
        })
        .count() as u64;
    // Root with CAP_SYS_RESOURCE is not held to it.
    if uid != 0 {
        found.extend(of_process(
            Kind::Processes,
            "processes of the user",
            Resource::Processes,
            Some(mine),
        ));
    }
    found
}

/// Those that all users share.
pub(super) fn of_machine(root: &Root) -> Vec<Limit> {
    let threads = threads(root);
    [
        ("process ids of the machine", "/proc/sys/kernel/pid_max"),
        ("threads of the machine", "/proc/sys/kernel/threads-max"),
    ]
    .into_iter()
    .filter_map(|(what, path)| of_file(root, Kind::Processes, what, path, threads))
    .collect()
}

/// Threads of the machine: the second number of `running/all` in `/proc/loadavg`.
fn threads(root: &Root) -> Option<u64> {
    let text = root.read("/proc/loadavg").ok()?;
    let (_, all) = text.split_whitespace().nth(3)?.split_once('/')?;
    all.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn threads_are_held_against_both_limits() {
        let tree = Tree::new()
            .file("/proc/loadavg", "0.00 0.01 0.05 1/321 4567\n")
            .file("/proc/sys/kernel/pid_max", "32768\n")
            .file("/proc/sys/kernel/threads-max", "400\n");
        let found = limits(&tree.root(), 0);
        let values: Vec<String> = found.iter().map(Limit::value).collect();
        assert_eq!(values, ["321 of 32,768", "321 of 400"]);
        assert_eq!(found[0].fix, "raise it: sysctl -w kernel.pid_max=65536");
    }
}
