//! RCU callbacks: for how long do they hold up real-time tasks where they run in interrupts?
//!
//! Rather than in interrupts, PREEMPT_RT and `rcutree.use_softirq=0` run them in threads that can be preempted. `rcu_do_batch` in kernel/rcu/tree.c takes
//! at least 1 ms for the limit, and applies it where so many callbacks wait that a batch has more than 100.

use super::{Check, Question, State, name_cpus};
use crate::fix::{Fix, Form};
use crate::kernel;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "rcu-callbacks",
    title: "RCU callbacks",
    why: "A process that starts and ends others without end leaves callbacks to the kernel. Where many wait, the kernel runs them in an interrupt for as long as this limit, over and over, and no priority holds that off.",
};

const LIMIT_NS: &str = "/sys/module/rcutree/parameters/rcu_resched_ns";
const IN_INTERRUPTS: &str = "/sys/module/rcutree/parameters/use_softirq";

/// The least limit that the kernel keeps to.
const LEAST_NS: u64 = 1_000_000;

pub(super) fn check(root: &Root, wanted: &[u32]) -> Check {
    if root.read(IN_INTERRUPTS).is_ok_and(|found| found == "N") {
        return QUESTION.answer(State::Good, "they run in threads, which can be preempted");
    }
    let elsewhere = kernel::without_rcu_callbacks(root);
    if !wanted.is_empty() && wanted.iter().all(|cpu| elsewhere.contains(cpu)) {
        let cpus = name_cpus(wanted);
        return QUESTION.answer(State::Good, format!("none run in interrupts of {cpus}"));
    }
    match root.read_number::<u64>(LIMIT_NS) {
        Ok(limit) if limit <= LEAST_NS => {
            let found = "interrupts run them for at most 1 ms at a time, the least there is";
            QUESTION.answer(State::Good, found)
        }
        Ok(limit) => {
            let ms = limit as f64 / 1e6;
            let found = format!("interrupts run them for up to {ms} ms at a time");
            QUESTION
                .answer(State::Warning, found)
                .with_fix(format!("echo {LEAST_NS} > {LIMIT_NS}"))
        }
        Err(reason) => QUESTION.unknown(&reason),
    }
}

pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    Fix::of(QUESTION.id).write(root, LIMIT_NS, Form::Plain, LEAST_NS.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn long_batches_in_interrupts_are_warned_of_with_the_fix() {
        let of = |softirq: &str, limit: &str, line: &str| {
            let tree = Tree::new()
                .file(IN_INTERRUPTS, softirq)
                .file(LIMIT_NS, limit);
            check(&tree.file("/proc/cmdline", line).root(), &[1])
        };
        let found = of("Y\n", "3000000\n", "quiet");
        assert_eq!(found.state, State::Warning);
        assert!(found.found.contains("up to 3 ms"), "{}", found.found);
        assert_eq!(found.fix, Some(format!("echo 1000000 > {LIMIT_NS}")));
        assert_eq!(of("Y\n", "1000000\n", "quiet").state, State::Good);
        assert_eq!(of("N\n", "3000000\n", "quiet").state, State::Good);
        assert_eq!(of("Y\n", "3000000\n", "rcu_nocbs=1").state, State::Good);
        assert_eq!(of("Y\n", "3000000\n", "rcu_nocbs=0").state, State::Warning);
        assert_eq!(check(&Tree::new().root(), &[1]).state, State::Unknown);
        let tree = Tree::new().file(LIMIT_NS, "3000000\n");
        let write = &fix(&tree.root(), &[]).writes[0];
        assert_eq!(
            (write.was.as_str(), write.set.as_str()),
            ("3000000", "1000000")
        );
    }
}
