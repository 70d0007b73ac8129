//! Real-time throttling: how much of a cpu real-time tasks may take before the kernel stops them.

use super::{Check, Question, State};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "rt-throttling",
    title: "Real-time throttling",
    why: "It stops a runaway real-time task from taking a cpu for ever, and it also stops a well-behaved one that needs more than the limit.",
};

pub(super) fn check(root: &Root) -> Check {
    let runtime = match root.read_number::<i64>("/proc/sys/kernel/sched_rt_runtime_us") {
        Ok(runtime) => runtime,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let period = match root.read_number::<i64>("/proc/sys/kernel/sched_rt_period_us") {
        Ok(period) => period,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let mend = "sysctl -w kernel.sched_rt_runtime_us=950000";
    if runtime < 0 {
        return QUESTION
            .answer(
                State::Warning,
                "off: a task that never blocks keeps its cpu",
            )
            .with_mend(mend);
    }
    let found = format!("real-time tasks may use {runtime} us of every {period} us on each cpu");
    if runtime == 0 {
        return QUESTION.answer(State::Bad, found).with_mend(mend);
    }
    // Below a half, ordinary mission loads run into it.
    if i128::from(runtime) * 2 < i128::from(period) {
        return QUESTION.answer(State::Warning, found).with_mend(mend);
    }
    QUESTION.answer(State::Good, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn state(runtime: &str) -> State {
        let tree = Tree::new()
            .file("/proc/sys/kernel/sched_rt_runtime_us", runtime)
            .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
        check(&tree.root()).state
    }

    #[test]
    fn the_usual_limit_is_good_and_extremes_are_not() {
        assert_eq!(state("950000\n"), State::Good);
        assert_eq!(state("-1\n"), State::Warning);
        assert_eq!(state("100000\n"), State::Warning);
        assert_eq!(state("0\n"), State::Bad);
        assert_eq!(state("many\n"), State::Unknown);
    }
}
