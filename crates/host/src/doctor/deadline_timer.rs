//! The timer of SCHED_DEADLINE: do budgets end when they are used up, or at the next tick?

use super::{Check, Question, State};
use crate::debugfs;
use crate::fix::{Fix, Form};
use crate::kernel::{self, BuildOptions, FEATURES};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "deadline-timer",
    title: "End of deadline budgets",
    why: "A thread of SCHED_DEADLINE whose budget ends in the tick can run up to a tick too long, and admission must allow for that.",
};

pub(super) fn check(root: &Root) -> Check {
    if is_built(root) == Some(false) {
        return QUESTION.answer(
            State::Info,
            format!(
                "in the tick{}; the kernel was built without SCHED_HRTICK",
                late(root)
            ),
        );
    }
    match (
        kernel::deadline_by_timer(root),
        debugfs::read(root, FEATURES),
    ) {
        (Some(true), _) => QUESTION.answer(State::Good, "by a timer (HRTICK_DL)"),
        (Some(false), Ok(features)) => QUESTION
            .answer(
                State::Warning,
                format!("in the tick{} (NO_{})", late(root), feature(&features)),
            )
            .with_fix(format!(
                "echo {} > {}",
                feature(&features),
                debugfs::path(FEATURES)
            )),
        (_, Err(reason)) => QUESTION.answer(
            State::Unknown,
            format!("{reason}; the kernel's default is the tick{}", late(root)),
        ),
        (_, Ok(_)) => QUESTION.answer(
            State::Info,
            format!("in the tick{}; the kernel has no HRTICK_DL", late(root)),
        ),
    }
}

/// HRTICK_DL; before Linux 5.12, HRTICK for both kinds of threads.
fn feature(features: &str) -> &'static str {
    match kernel::feature(features, "HRTICK_DL") {
        Some(_) => "HRTICK_DL",
        None => "HRTICK",
    }
}

fn is_built(root: &Root) -> Option<bool> {
    let options = BuildOptions::read(root).ok()?;
    Some(options.has("CONFIG_SCHED_HRTICK"))
}

/// ", up to 4000 us late", if it is known.
fn late(root: &Root) -> String {
    let us = kernel::tick_hz(root).map(|hz| 1_000_000 / hz);
    us.map_or_else(String::new, |us| format!(", up to {us} us late"))
}

pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    if is_built(root) == Some(false) {
        return fix;
    }
    match (
        kernel::deadline_by_timer(root),
        debugfs::read(root, FEATURES),
    ) {
        (Some(_), Ok(features)) => fix.write(
            root,
            debugfs::path(FEATURES),
            Form::Feature,
            feature(&features),
        ),
        (_, Err(error)) => fix.leave(error.to_string()),
        (_, Ok(_)) => fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    fn tree(features: &str) -> Tree {
        Tree::new()
            .bytes(
                "/proc/config.gz",
                &gzip("CONFIG_HZ=250\nCONFIG_SCHED_HRTICK=y\n"),
            )
            .file("/sys/kernel/debug/sched/features", features)
    }

    #[test]
    fn the_tick_is_a_warning_with_its_length_and_is_fixed() {
        let tick = tree("PLACE_LAG NO_HRTICK NO_HRTICK_DL\n");
        let found = check(&tick.root());
        assert_eq!(found.state, State::Warning);
        assert_eq!(
            found.found,
            "in the tick, up to 4000 us late (NO_HRTICK_DL)"
        );
        let writes = fix(&tick.root(), &[]).writes;
        assert_eq!(
            (writes[0].was.as_str(), writes[0].set.as_str()),
            ("NO_HRTICK_DL", "HRTICK_DL")
        );
        let timer = tree("PLACE_LAG NO_HRTICK HRTICK_DL\n");
        assert_eq!(check(&timer.root()).state, State::Good);
        assert!(fix(&timer.root(), &[]).writes[0].is_done());
        let old = tree("NO_HRTICK NO_NONTASK_CAPACITY\n");
        assert_eq!(fix(&old.root(), &[]).writes[0].set, "HRTICK");
    }

    #[test]
    fn a_kernel_without_the_timer_is_not_told_to_use_it() {
        let without = Tree::new()
            .bytes("/proc/config.gz", &gzip("CONFIG_HZ=1000\n"))
            .file("/sys/kernel/debug/sched/features", "NO_HRTICK_DL\n");
        let found = check(&without.root());
        assert_eq!((found.state, found.fix), (State::Info, None));
        assert_eq!(fix(&without.root(), &[]), Fix::of("deadline-timer"));
        assert_eq!(check(&tree("PLACE_LAG\n").root()).state, State::Info);
    }

    #[test]
    fn a_closed_debugfs_is_told() {
        let closed = Tree::new();
        assert_eq!(check(&closed.root()).state, State::Unknown);
        assert!(fix(&closed.root(), &[]).left[0].contains("mount -t debugfs"));
    }
}
