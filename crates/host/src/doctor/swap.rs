//! Swap: can the memory of a real-time program be on a disk when it is needed?

use super::{Check, Question, State};
use crate::fix::Fix;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "swap",
    title: "Swap",
    why: "Memory that was swapped out comes back in milliseconds, and programs that do not lock their memory cannot prevent it.",
};

pub(super) fn check(root: &Root) -> Check {
    let text = match root.read("/proc/swaps") {
        Ok(text) => text,
        // Kernels built without swap have no such file.
        Err(_) if root.exists("/proc/meminfo") => {
            return QUESTION.answer(State::Good, "the kernel was built without swap");
        }
        Err(reason) => return QUESTION.unknown(&reason),
    };
    // Filename Type Size Used Priority, sizes in KiB.
    let areas: Vec<String> = text
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let &[name, _, size, used, ..] = &fields[..] else {
                return None;
            };
            let mib = |kib: &str| kib.parse::<u64>().ok().map(|kib| model::mib(kib << 10));
            Some(format!("{name} ({}, {} used)", mib(size)?, mib(used)?))
        })
        .collect();
    if areas.is_empty() {
        return QUESTION.answer(State::Good, "none");
    }
    QUESTION
        .answer(State::Warning, areas.join(", "))
        .with_fix("swapoff -a (permanently: remove the swap lines from /etc/fstab)")
}

/// Bringing back swapped pages takes as long as it takes, and fails where memory is short.
pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    match check(root).state {
        State::Warning => fix.leave(
            "`swapoff -a` brings everything back into memory, which takes long and can fail: run it when nothing else runs",
        ),
        _ => fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn areas_are_named_with_their_use() {
        let header = "Filename\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        let none = Tree::new().file("/proc/swaps", header);
        assert_eq!(check(&none.root()).state, State::Good);
        let some = Tree::new().file(
            "/proc/swaps",
            &format!("{header}/dev/sda2 partition 2097152 20480 -2\n"),
        );
        let check = check(&some.root());
        assert_eq!(check.state, State::Warning);
        assert_eq!(check.found, "/dev/sda2 (2,048 MiB, 20 MiB used)");
    }
}
