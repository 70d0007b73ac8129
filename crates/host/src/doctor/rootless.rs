//! Rootless containers: can ordinary users make user namespaces with enough ids?

use super::{Check, Question, State};
use crate::caps;
use crate::install::install_at;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "rootless",
    title: "Rootless containers",
    why: "Containers without root need user namespaces and a range of subordinate user ids.",
};

pub(super) fn check(root: &Root) -> Check {
    let most = match root.read_number::<u64>("/proc/sys/user/max_user_namespaces") {
        Ok(most) => most,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    if most == 0 {
        return QUESTION
            .answer(
                State::Warning,
                "user namespaces are forbidden (user.max_user_namespaces is 0)",
            )
            .with_fix("sysctl -w user.max_user_namespaces=15000");
    }
    // The first is of Debian's kernels, the second of Ubuntu's.
    for (file, key, wrong, right) in [
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "kernel.unprivileged_userns_clone",
            "0",
            "1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "kernel.apparmor_restrict_unprivileged_userns",
            "1",
            "0",
        ),
    ] {
        if root.read(file).as_deref() == Ok(wrong) {
            return QUESTION
                .answer(
                    State::Warning,
                    format!("user namespaces are kept from ordinary users ({key} is {wrong})"),
                )
                .with_fix(format!("sysctl -w {key}={right}"));
        }
    }
    let uid = caps::own_uid(root);
    let user = uid.and_then(|uid| name_of(root, uid));
    let ranges = |file: &str| -> Vec<String> {
        root.read(file)
            .map(|text| text.lines().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    // Root starts rootless containers as somebody else, so any user's range will do.
    let count = |file: &str| -> u64 {
        ranges(file)
            .iter()
            .filter_map(|line| {
                let mut fields = line.split(':');
                let owner = fields.next()?;
                let count: u64 = fields.nth(1)?.trim().parse().ok()?;
                let mine = uid == Some(0)
                    || Some(owner) == user.as_deref()
                    || uid.is_some_and(|uid| owner == uid.to_string());
                mine.then_some(count)
            })
            .max()
            .unwrap_or(0)
    };
    let (uids, gids) = (count("/etc/subuid"), count("/etc/subgid"));
    let whose = match (uid, user.as_deref()) {
        (Some(0) | None, _) => "any user".to_owned(),
        (Some(_), Some(name)) => name.to_owned(),
        (Some(uid), None) => format!("user {uid}"),
    };
    let found = format!(
        "at most {most} user namespaces; subordinate ids of {whose}: {uids} users, {gids} groups"
    );
    // Images need ids 0 to 65,535.
    if uids < 65_536 || gids < 65_536 {
        let name = match whose.as_str() {
            "any user" => "USER",
            name => name.trim_start_matches("user "),
        };
        let state = if uid == Some(0) {
            State::Info
        } else {
            State::Warning
        };
        return QUESTION.answer(state, found).with_fix(format!(
            "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
        ));
    }
    if ![
        "/usr/bin/newuidmap",
        "/bin/newuidmap",
        "/usr/local/bin/newuidmap",
    ]
    .iter()
    .any(|program| root.exists(program))
    {
        return QUESTION
            .answer(
                State::Warning,
                format!("{found}; newuidmap is not installed"),
            )
            .with_fix(install_at(root, "uidmap"));
    }
    QUESTION.answer(State::Good, found)
}

fn name_of(root: &Root, uid: u32) -> Option<String> {
    let text = root.read("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse::<u32>().ok()? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(uid: u32, subuid: &str) -> Tree {
        Tree::new()
            .file("/proc/sys/user/max_user_namespaces", "96365\n")
            .file(
                "/proc/self/status",
                &format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"),
            )
            .file(
                "/etc/passwd",
                "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n",
            )
            .file("/etc/subuid", subuid)
            .file("/etc/subgid", subuid)
            .file("/usr/bin/newuidmap", "")
    }

    #[test]
    fn a_user_with_a_range_is_ready() {
        for range in ["ada:100000:65536\n", "1000:100000:65536\n"] {
            assert_eq!(check(&tree(1000, range).root()).state, State::Good);
        }
    }

    #[test]
    fn a_user_without_a_range_is_told_how_to_get_one() {
        for range in ["", "bob:100000:65536\n", "ada:100000:1\n"] {
            let check = check(&tree(1000, range).root());
            assert_eq!(check.state, State::Warning);
            assert!(check.fix.unwrap().ends_with(" ada"));
        }
    }

    #[test]
    fn for_root_it_is_information() {
        assert_eq!(check(&tree(0, "").root()).state, State::Info);
        assert_eq!(
            check(&tree(0, "bob:100000:65536\n").root()).state,
            State::Good
        );
    }

    #[test]
    fn forbidden_namespaces_are_found() {
        let none = tree(0, "").file("/proc/sys/user/max_user_namespaces", "0\n");
        assert_eq!(check(&none.root()).state, State::Warning);
        let debian = tree(0, "").file("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
        assert_eq!(
            check(&debian.root()).fix.unwrap(),
            "sysctl -w kernel.unprivileged_userns_clone=1"
        );
    }
}
