//! Control groups that were handed to users: can one of them keep the kernel's lock of all groups for long?

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Check, Question, State};
use crate::cgroup;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "delegated-groups",
    title: "Delegated groups",
    why: "Whoever owns a control group can make thousands below it and freeze them all in a loop; each time the kernel holds for \
          milliseconds the one lock that every freeze, start and end of a cell takes.",
};

/// Groups this deep are looked at: a user's service manager has its own in the fourth.
const DEPTH: usize = 5;

pub(super) fn check(root: &Root) -> Check {
    let cgroups = match cgroup::detect_at(root) {
        Ok(cgroups) => cgroups,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let Some(v2) = cgroups.v2 else {
        return QUESTION.answer(State::Info, "no cgroup v2 hierarchy is mounted");
    };
    let found = unlimited_in(root, &v2.point);
    if found.is_empty() {
        return QUESTION.answer(
            State::Good,
            "each has a limit on descendants, or there is none",
        );
    }
    let names: Vec<String> = (found.iter())
        .map(|group| group.display().to_string())
        .collect();
    let limits: Vec<String> = (names.iter())
        .map(|name| format!("{name}/cgroup.max.descendants"))
        .collect();
    QUESTION
        .answer(
            State::Warning,
            format!("without a limit on descendants: {}", names.join(", ")),
        )
        .with_fix(format!("echo 100 | tee {}", limits.join(" ")))
}

/// Groups of cgroup v2 that belong to users and may have any number of descendants, at most five deep: the topmost ones.
pub fn unlimited_groups(root: &Root) -> Vec<PathBuf> {
    let v2 = cgroup::detect_at(root).ok().and_then(|all| all.v2);
    v2.map_or_else(Vec::new, |v2| unlimited_in(root, &v2.point))
}

fn unlimited_in(root: &Root, hierarchy: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    unlimited(root, hierarchy, DEPTH, &mut found);
    found.sort();
    found
}

/// The topmost groups that belong to another user than root, with no limit on descendants there or above.
fn unlimited(root: &Root, group: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let limit = root.read(group.join("cgroup.max.descendants"));
    if limit.is_ok_and(|limit| limit != "max") {
        return;
    }
    match std::fs::metadata(root.path(group)) {
        Ok(owned) if owned.uid() != 0 => found.push(group.to_owned()),
        Ok(_) if depth > 0 => {
            for below in cgroup::below(&root.path(group)) {
                if let Some(name) = below.file_name() {
                    unlimited(root, &group.join(name), depth - 1, found);
                }
            }
        }
        Ok(_) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const AT: &str = "/sys/fs/cgroup/user.slice";

    fn tree() -> Tree {
        Tree::new()
            .file(
                "/proc/self/mountinfo",
                "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .file(&format!("{AT}/cgroup.max.descendants"), "max\n")
            .file(&format!("{AT}/one/cgroup.max.descendants"), "max\n")
    }

    /// Gives a directory of the tree to another user, which only root may.
    fn give(root: &Root, group: &str) -> bool {
        std::os::unix::fs::chown(root.path(format!("{AT}/{group}")), Some(1000), None).is_ok()
    }

    #[test]
    fn a_group_of_a_user_without_a_limit_is_named_with_what_limits_it() {
        let tree = tree();
        if !give(&tree.root(), "one") {
            eprintln!("not tested: only root may give a directory away");
            return;
        }
        let found = check(&tree.root());
        assert_eq!(found.state, State::Warning);
        assert!(found.found.ends_with("/user.slice/one"), "{}", found.found);
        assert_eq!(
            found.fix.as_deref(),
            Some("echo 100 | tee /sys/fs/cgroup/user.slice/one/cgroup.max.descendants")
        );
    }

    #[test]
    fn a_limit_there_or_above_is_enough_and_so_is_roots_ownership() {
        for limited in [AT.to_owned(), format!("{AT}/one")] {
            let tree = tree().file(&format!("{limited}/cgroup.max.descendants"), "100\n");
            give(&tree.root(), "one");
            assert_eq!(check(&tree.root()).state, State::Good, "{limited}");
        }
    }
}
