//! Privileges: may this process set real-time classes, lock memory and make cgroups?

use super::{Check, Question, State};
use crate::caps;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "privileges",
    title: "Privileges and limits",
    why: "Real-time classes, locked memory and cgroups are refused to processes without the privilege or limit for them.",
};

pub(super) fn check(root: &Root) -> Check {
    let (held, limits) = match (caps::effective_at(root), caps::limits_at(root, 0)) {
        (Ok(held), Ok(limits)) => (held, limits),
        (Err(reason), _) | (_, Err(reason)) => return QUESTION.unknown(&reason),
    };
    let rootless = caps::in_user_namespace_at(root);
    let wanted = [
        "CAP_SYS_NICE",
        "CAP_IPC_LOCK",
        "CAP_SYS_ADMIN",
        "CAP_SYS_RESOURCE",
    ];
    let lacking: Vec<&str> = wanted
        .into_iter()
        .filter(|name| rootless || !held.has(name))
        .collect();
    let mut found = match (&lacking[..], rootless) {
        (_, true) => {
            "inside a user namespace, where capabilities do not reach the scheduler".to_owned()
        }
        ([], _) => format!("has {}", wanted.join(", ")),
        (lacking, _) if lacking.len() == wanted.len() => format!("lacks {}", lacking.join(", ")),
        (lacking, _) => {
            let has: Vec<&str> = wanted.into_iter().filter(|name| held.has(name)).collect();
            format!("has {}; lacks {}", has.join(", "), lacking.join(", "))
        }
    };
    found.push_str(&format!(
        "; limits: real-time priority {}, locked memory {}, {} open files, {} processes",
        limits.rtprio,
        limits.memlock_bytes.show(model::mib),
        limits.nofile,
        limits.nproc
    ));
    let lacks = |name: &str| lacking.contains(&name);
    let no_class = lacks("CAP_SYS_NICE") && limits.rtprio.soft == Some(0);
    let no_lock = lacks("CAP_IPC_LOCK")
        && limits
            .memlock_bytes
            .soft
            .is_some_and(|bytes| bytes < 64 << 20);
    let fix = "run as root, or write `* - rtprio 99` and `* - memlock unlimited` to /etc/security/limits.d/timecell.conf and log in again";
    if no_class {
        QUESTION.answer(State::Bad, found).with_fix(fix)
    } else if no_lock || lacks("CAP_SYS_ADMIN") || lacks("CAP_SYS_NICE") {
        QUESTION.answer(State::Warning, found).with_fix(fix)
    } else {
        QUESTION.answer(State::Good, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(caps: &str, rtprio: &str, map: &str) -> Tree {
        Tree::new()
            .file("/proc/self/status", &format!("CapEff:\t{caps}\n"))
            .file("/proc/self/uid_map", map)
            .file(
                "/proc/self/limits",
                &format!(
                    "Max processes 100 100\nMax open files 20000 20000\n\
                     Max locked memory 8388608 8388608\nMax realtime priority {rtprio} {rtprio}\n"
                ),
            )
    }

    #[test]
    fn root_is_good_a_user_is_not() {
        let own = "0 0 4294967295";
        assert_eq!(
            check(&tree("1ffffffffff", "0", own).root()).state,
            State::Good
        );
        let user = check(&tree("0", "0", own).root());
        assert_eq!(user.state, State::Bad);
        assert!(user.found.contains("locked memory 8 MiB"));
        assert_eq!(check(&tree("0", "99", own).root()).state, State::Warning);
    }

    #[test]
    fn root_of_a_user_namespace_has_nothing() {
        let check = check(&tree("1ffffffffff", "0", "0 1000 1").root());
        assert_eq!(check.state, State::Bad);
        assert!(check.found.starts_with("inside a user namespace"));
    }
}
