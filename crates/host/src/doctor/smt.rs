//! Simultaneous multithreading: do two cpus share one core?

use super::{Check, Question, State};
use crate::cpus::{self, format_list};
use crate::fix::Fix;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "smt",
    title: "Simultaneous multithreading",
    why: "Two cpus of one core share its units and caches, so work on one stretches execution times on the other, and no scheduler can prevent it.",
};

pub(super) fn check(root: &Root, rt: &[u32]) -> Check {
    let control = root.read("/sys/devices/system/cpu/smt/control");
    let active = match root.read("/sys/devices/system/cpu/smt/active") {
        Ok(active) => active == "1",
        Err(reason) => {
            // Kernels for machines that never have it lack the file.
            return QUESTION.unknown(&reason);
        }
    };
    if !active {
        let how = control.unwrap_or_else(|_| "unknown".to_owned());
        return QUESTION.answer(State::Good, format!("not active (control: {how})"));
    }
    let shared: Vec<String> = rt
        .iter()
        .filter_map(|cpu| {
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            let mut siblings = cpus::list_file(root, file).ok()?;
            siblings.retain(|sibling| sibling != cpu);
            (!siblings.is_empty()).then(|| {
                format!(
                    "cpu {cpu} shares its core with cpu {}",
                    format_list(&siblings)
                )
            })
        })
        .collect();
    if shared.is_empty() {
        return QUESTION.answer(
            State::Good,
            "active, but no cpu for real-time work shares its core",
        );
    }
    QUESTION
        .answer(State::Warning, format!("active: {}", shared.join("; ")))
        .with_fix(
            "echo off > /sys/devices/system/cpu/smt/control (permanently: kernel parameter nosmt)",
        )
}

/// Switching it off takes cpus away from everything that runs on them, and tasks bound to them do not return by themselves.
pub(super) fn fix(root: &Root, rt: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    match check(root, rt).state {
        State::Warning => fix.leave(
            "switching it off takes half of the cpus away from everything that runs, which cannot be undone for tasks bound to them: use the kernel parameter nosmt if you want that",
        ),
        _ => fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(active: &str, siblings: &str) -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/devices/system/cpu/smt/active", active)
            .file("/sys/devices/system/cpu/smt/control", "on\n")
            .file(
                "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
                siblings,
            )
    }

    #[test]
    fn a_shared_core_is_named() {
        let check = check(&tree("1\n", "1,3\n").root(), &[3]);
        assert_eq!(check.state, State::Warning);
        assert_eq!(check.found, "active: cpu 3 shares its core with cpu 1");
    }

    #[test]
    fn unshared_or_inactive_is_good() {
        assert_eq!(check(&tree("1\n", "3\n").root(), &[3]).state, State::Good);
        assert_eq!(check(&tree("0\n", "1,3\n").root(), &[3]).state, State::Good);
    }
}
