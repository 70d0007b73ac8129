//! Memory, and the part of it that in-memory file systems may take.

use super::limit::{Kind, Limit};
use crate::process::bytes;
use crate::root::Root;

pub(super) fn limits(root: &Root) -> Vec<Limit> {
    let mut found: Vec<Limit> = machine(root).into_iter().collect();
    if root.is_live() {
        found.extend(room("/dev/shm"));
    }
    found
}

pub(super) fn machine(root: &Root) -> Option<Limit> {
    let text = root.read("/proc/meminfo").ok()?;
    let mebibytes = |key: &str| bytes(&text, key).map(|bytes| bytes >> 20);
    let total = mebibytes("MemTotal")?;
    Some(Limit {
        kind: Kind::Memory,
        what: "memory of the machine".to_owned(),
        name: "/proc/meminfo".to_owned(),
        used: Some(total.saturating_sub(mebibytes("MemAvailable")?)),
        most: total,
        unit: " MiB",
        fix: "end other work, or give the machine more memory".to_owned(),
    })
}

fn room(place: &str) -> Option<Limit> {
    let stat = rustix::fs::statvfs(place).ok()?;
    let size = |blocks: u64| blocks.saturating_mul(stat.f_frsize) >> 20;
    Some(Limit {
        kind: Kind::SharedMemory,
        what: "shared memory".to_owned(),
        fix: format!("make it larger: mount -o remount,size=... {place}, or ask for fewer jobs"),
        name: place.to_owned(),
        used: Some(size(stat.f_blocks).saturating_sub(size(stat.f_bfree))),
        most: size(stat.f_blocks),
        unit: " MiB",
    })
    .filter(|limit| limit.most > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn memory_that_is_not_available_is_in_use() {
        let tree = Tree::new().file(
            "/proc/meminfo",
            "MemTotal:  2097152 kB\nMemFree: 5 kB\nMemAvailable:  1048576 kB\n",
        );
        let found = limits(&tree.root());
        assert_eq!(found[0].value(), "1,024 of 2,048 MiB");
    }
}
