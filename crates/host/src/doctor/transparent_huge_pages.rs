//! Transparent huge pages: does the kernel rearrange the memory of running programs?

use super::{Check, Question, State, chosen};
use crate::fix::{Fix, Form};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "transparent-huge-pages",
    title: "Transparent huge pages",
    why: "Building huge pages stops a program for up to milliseconds at moments it did not choose.",
};

pub(super) fn check(root: &Root) -> Check {
    let text = match root.read(FILE) {
        Ok(text) => text,
        Err(_) if root.exists("/sys/kernel/mm") => {
            return QUESTION.answer(State::Good, "the kernel was built without them");
        }
        Err(reason) => return QUESTION.unknown(&reason),
    };
    match chosen(&text) {
        Some("always") => QUESTION.answer(State::Warning, "always").with_fix(format!(
            "echo madvise > {FILE} (permanently: kernel parameter transparent_hugepage=madvise)"
        )),
        Some("madvise") => QUESTION.answer(State::Good, "madvise: only programs that ask for them"),
        Some("never") => QUESTION.answer(State::Good, "never"),
        _ => QUESTION.answer(
            State::Unknown,
            format!("{FILE} holds {:?}", crate::root::shorten(&text)),
        ),
    }
}

pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    match root.read(FILE).as_deref().map(chosen) {
        Ok(Some("always")) => fix
            .write(root, FILE, Form::Brackets, "madvise")
            .parameter("transparent_hugepage", "madvise"),
        Ok(Some("madvise")) => fix.write(root, FILE, Form::Brackets, "madvise"),
        _ => fix,
    }
}

const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn state(text: &str) -> State {
        let file = "/sys/kernel/mm/transparent_hugepage/enabled";
        check(&Tree::new().file(file, text).root()).state
    }

    #[test]
    fn only_always_is_warned_about() {
        assert_eq!(state("[always] madvise never\n"), State::Warning);
        assert_eq!(state("always [madvise] never\n"), State::Good);
        assert_eq!(state("always madvise [never]\n"), State::Good);
        assert_eq!(state("?\n"), State::Unknown);
        let fixed = |text: &str| fix(&Tree::new().file(FILE, text).root(), &[]);
        assert_eq!(fixed("[always] madvise never\n").writes[0].set, "madvise");
        assert!(fixed("always madvise [never]\n").writes.is_empty());
    }

    #[test]
    fn a_kernel_without_them_is_good() {
        let tree = Tree::new().file("/sys/kernel/mm/ksm/run", "0\n");
        assert_eq!(check(&tree.root()).state, State::Good);
    }
}
