//! Kernel limits on how many cells can live at once.

use super::{Check, Question, State};
use crate::caps;
use crate::cgroup;
use crate::limits;
use crate::root::Root;
use model::grouped;

const QUESTION: Question = Question {
    id: "cell-limits",
    title: "Limits on the number of cells",
    why: "Each container takes memory, keys, inotify instances, processes and file descriptors, and the lowest limit caps the cell count.",
};

/// Below this many keys, containers run out of keyrings before anything else.
const FEW_KEYS: u64 = 2_000;

pub(super) fn check(root: &Root) -> Check {
    let number = |file: &str| root.read_number::<u64>(file).ok();
    let mut parts = Vec::new();
    for (file, what) in [
        ("/proc/sys/kernel/keys/maxkeys", "keys per user"),
        ("/proc/sys/kernel/keys/root_maxkeys", "keys for root"),
        (
            "/proc/sys/fs/inotify/max_user_instances",
            "inotify instances per user",
        ),
        ("/proc/sys/kernel/pid_max", "process ids"),
        ("/proc/sys/kernel/threads-max", "threads"),
    ] {
        if let Some(value) = number(file) {
            parts.push(format!("{value} {what}"));
        }
    }
    if let Some(most) = pids_max(root) {
        parts.push(format!("{most} processes in this cgroup"));
    }
    if let Ok(limits) = caps::limits_at(root, 0) {
        parts.push(format!("{} open files per process", limits.nofile));
    }
    for limit in limits::of_room(root) {
        parts.push(format!(
            "{}{} {}",
            grouped(limit.most),
            limit.unit,
            limit.what
        ));
    }
    if parts.is_empty() {
        return QUESTION.answer(State::Unknown, "none of the limits can be read");
    }
    let check = QUESTION.answer(State::Info, parts.join(", "));
    match number("/proc/sys/kernel/keys/maxkeys") {
        Some(keys) if keys < FEW_KEYS => check.with_fix(
            "sysctl -w kernel.keys.maxkeys=20000 kernel.keys.maxbytes=2000000 (if rootless containers run out of keys)",
        ),
        _ => check,
    }
}

/// The limit on processes of the own group, if there is one.
fn pids_max(root: &Root) -> Option<u64> {
    let cgroups = cgroup::detect_at(root).ok()?;
    let group = cgroups
        .v1_group(root, "pids", 0)
        .or_else(|| cgroups.v2_group(root, 0))?;
    root.read_number(group.join("pids.max")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn limits_are_information_and_few_keys_can_be_fixed() {
        let tree = Tree::new()
            .file(
                "/proc/meminfo",
                "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n",
            )
            .file("/proc/sys/kernel/keys/maxkeys", "200\n")
            .file("/proc/sys/kernel/pid_max", "32768\n")
            .file(
                "/proc/self/mountinfo",
                "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .file("/proc/self/cgroup", "0::/user\n")
            .file("/sys/fs/cgroup/user/pids.max", "500\n");
        let check = check(&tree.root());
        assert_eq!(check.state, State::Info);
        assert_eq!(
            check.found,
            "200 keys per user, 32768 process ids, 500 processes in this cgroup, 2,048 MiB memory of the machine"
        );
        assert!(check.fix.unwrap().contains("kernel.keys.maxkeys=20000"));
    }

    #[test]
    fn enough_keys_need_no_fix() {
        let tree = Tree::new().file("/proc/sys/kernel/keys/maxkeys", "20000\n");
        assert_eq!(check(&tree.root()).fix, None);
    }
}
