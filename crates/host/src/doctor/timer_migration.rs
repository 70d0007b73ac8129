//! Timer migration: do timers expire on the cpu that armed them, or on whichever is busy?

use super::{Check, Question, State};
use crate::fix::{Fix, Form};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "timer-migration",
    title: "Timer migration",
    why: "A timer that an idle cpu hands to a busy one expires there in an interrupt, which no budget limits and no priority holds off, even if its program may not run on that cpu.",
};

pub(super) fn check(root: &Root) -> Check {
    match root.read_number::<u32>(FILE) {
        Ok(0) => QUESTION.answer(State::Good, "off: timers expire on the cpu that armed them"),
        Ok(_) => QUESTION
            .answer(
                State::Warning,
                "on: timers of idle cpus expire on busy ones",
            )
            .with_fix("sysctl -w kernel.timer_migration=0"),
        Err(reason) => QUESTION.unknown(&reason),
    }
}

pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    match root.read_number::<u32>(FILE) {
        Ok(_) => fix.write(root, FILE, Form::Plain, "0"),
        Err(error) => fix.leave(error.to_string()),
    }
}

const FILE: &str = "/proc/sys/kernel/timer_migration";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn timers_that_move_are_warned_of_with_the_fix() {
        let of = |text: &str| {
            check(
                &Tree::new()
                    .file("/proc/sys/kernel/timer_migration", text)
                    .root(),
            )
        };
        assert_eq!(of("0\n").state, State::Good);
        let on = of("1\n");
        assert_eq!(on.state, State::Warning);
        assert_eq!(
            on.fix.as_deref(),
            Some("sysctl -w kernel.timer_migration=0")
        );
        assert_eq!(of("some\n").state, State::Unknown);
        let tree = Tree::new().file(FILE, "1\n");
        let write = &fix(&tree.root(), &[]).writes[0];
        assert_eq!((write.was.as_str(), write.set.as_str()), ("1", "0"));
    }
}
