//! The cgroup layout, and the container runtimes that refuse it.

use super::{Check, Question, State};
use crate::cgroup::{self, Layout};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "cgroup-layout",
    title: "Cgroup layout",
    why: "Containers are held by cgroups; which limits exist, and which runtimes start at all, depends on how they are mounted.",
};

pub(super) fn check(root: &Root) -> Check {
    let cgroups = match cgroup::detect_at(root) {
        Ok(cgroups) => cgroups,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let layout = cgroups.layout();
    if layout == Layout::None {
        return QUESTION
            .answer(State::Bad, "no cgroup file system is mounted")
            .with_fix("mount -t cgroup2 none /sys/fs/cgroup");
    }
    let refusals = cgroups.refusals();
    let Some(first) = refusals.first() else {
        return QUESTION.answer(State::Good, layout.to_string());
    };
    let names = refusals
        .iter()
        .map(|refusal| {
            format!(
                "{} will not start containers: {}",
                refusal.runtime, refusal.reason
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    QUESTION
        .answer(State::Warning, format!("{layout}; {names}"))
        .with_fix(first.fix.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn hugetlb_on_v2_of_a_hybrid_is_a_warning_with_the_mount_that_fixes_it() {
        let tree = Tree::new()
            .file("/proc/self/mountinfo", &format!("{V1}{V2}"))
            .file("/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
        let check = check(&tree.root());
        assert_eq!(check.state, State::Warning);
        assert!(check.found.contains("crun will not start containers"));
        assert!(
            check
                .fix
                .unwrap()
                .contains("mount -t cgroup -o hugetlb none /sys/fs/cgroup/hugetlb")
        );
    }

    #[test]
    fn plain_layouts_are_good_and_none_is_bad() {
        let state = |text| check(&Tree::new().file("/proc/self/mountinfo", text).root()).state;
        assert_eq!(state(V1), State::Good);
        assert_eq!(state(V2), State::Good);
        assert_eq!(state("1 0 0:1 / / rw - ext4 /dev/sda rw\n"), State::Bad);
    }
}
