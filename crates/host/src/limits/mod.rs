//! The limits of a machine that many processes run into: their values, their present use, and how each is raised. One
//! file for each kind of thing that is counted. Nothing is judged here.

mod cgroups;
mod files;
mod keys;
mod limit;
mod memory;
mod namespaces;
mod processes;
mod raise;

pub use limit::{Kind, Limit};
pub use raise::raise;

use crate::root::Root;

/// Every limit that can be read, as it stands now for the user `uid`.
///
/// Looks at every process of the machine: takes milliseconds for each thousand.
pub fn all(root: &Root, uid: u32) -> Vec<Limit> {
    let mut found = processes::limits(root, uid);
    found.extend(files::limits(root, uid));
    found.extend(keys::limits(root, uid));
    found.extend(namespaces::limits(root));
    found.extend(memory::limits(root));
    found.extend(cgroups::limits(root));
    found
}

/// The limits that everybody on the machine shares, and that are read within microseconds: process ids, threads, memory.
pub fn shared(root: &Root) -> Vec<Limit> {
    let mut found = processes::of_machine(root);
    found.extend(memory::machine(root));
    found
}

/// Of memory, shared memory and control groups; looks at no process.
pub(crate) fn of_room(root: &Root) -> Vec<Limit> {
    let mut found = memory::limits(root);
    let of_groups = cgroups::limits(root).into_iter();
    found.extend(of_groups.filter(|limit| limit.kind != Kind::Processes));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_limits_and_none_is_exceeded() {
        let uid = rustix::process::geteuid().as_raw();
        let limits = all(&Root::live(), uid);
        for kind in [Kind::Processes, Kind::Files, Kind::Memory] {
            assert!(
                limits.iter().any(|l| l.kind == kind),
                "{kind:?}: {limits:?}"
            );
        }
        for limit in &limits {
            assert!(limit.most > 0, "{limit:?}");
            assert!(!limit.fix.is_empty() && !limit.what.is_empty());
        }
    }

    #[test]
    fn use_is_told_against_the_limit() {
        let mut limit = Limit {
            kind: Kind::Memory,
            what: "memory".to_owned(),
            name: "x".to_owned(),
            used: Some(3),
            most: 4,
            unit: " MiB",
            fix: String::new(),
        };
        assert_eq!(
            (limit.share(), limit.value().as_str()),
            (0.75, "3 of 4 MiB")
        );
        limit.used = None;
        assert_eq!(
            (limit.share(), limit.value().as_str()),
            (0.0, "at most 4 MiB")
        );
    }
}
