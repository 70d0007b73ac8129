//! Namespaces: every container has several.

use super::limit::{Kind, Limit, of_file, pids};
use crate::root::Root;
use std::collections::BTreeSet;

const KINDS: [(&str, &str); 7] = [
    ("user", "user"),
    ("net", "network"),
    ("pid", "pid"),
    ("mnt", "mount"),
    ("ipc", "ipc"),
    ("uts", "uts"),
    ("cgroup", "cgroup"),
];

pub(super) fn limits(root: &Root) -> Vec<Limit> {
    let mut seen: [BTreeSet<std::path::PathBuf>; KINDS.len()] = Default::default();
    for pid in pids(root) {
        for ((kind, _), seen) in KINDS.iter().zip(&mut seen) {
            seen.extend(std::fs::read_link(root.path(format!("/proc/{pid}/ns/{kind}"))).ok());
        }
    }
    (KINDS.iter().zip(&seen))
        .filter_map(|((kind, name), seen)| {
            let path = format!("/proc/sys/user/max_{kind}_namespaces");
            let what = format!("{name} namespaces");
            // Those that only a mount or an open file holds are not among them.
            of_file(
                root,
                Kind::Namespaces,
                &what,
                &path,
                Some(seen.len() as u64),
            )
        })
        .collect()
}
