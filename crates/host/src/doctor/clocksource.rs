//! The clock source: the cost of reading the time.

use super::{Check, Question, State};
use crate::fix::{Fix, Form};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "clocksource",
    title: "Clock source",
    why: "A slow clock source turns every reading of the time into a system call and a bus access of about a microsecond.",
};

/// Read from user space, in some tens of nanoseconds.
const FAST: [&str; 5] = [
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
];
/// Read over a bus, or no finer than the tick.
const SLOW: [&str; 6] = [
    "hpet",
    "acpi_pm",
    "pit",
    "jiffies",
    "refined-jiffies",
    "hyperv_clocksource_msr",
];

pub(super) fn check(root: &Root) -> Check {
    let current = match root.read(format!("{DIRECTORY}/current_clocksource")) {
        Ok(current) => current,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let available = root
        .read(format!("{DIRECTORY}/available_clocksource"))
        .unwrap_or_default();
    let found = format!("{current} (available: {available})");
    if FAST.contains(&current.as_str()) {
        return QUESTION.answer(State::Good, found);
    }
    let better = better(&available);
    let state = match (SLOW.contains(&current.as_str()), better) {
        (true, _) => State::Bad,
        (false, Some(_)) => State::Warning,
        // A clock of a board that this program does not know.
        (false, None) => State::Info,
    };
    let check = QUESTION.answer(state, found);
    match better {
        Some(better) => check.with_fix(format!(
            "echo {better} > {DIRECTORY}/current_clocksource (permanently: kernel parameter clocksource={better})"
        )),
        None if state == State::Bad => check
            .with_fix("kernel parameter tsc=reliable, if the machine keeps its time stamp counter steady"),
        None => check,
    }
}

/// The fast one among these, if there is one.
fn better(available: &str) -> Option<&'static str> {
    let is_there = |fast: &&&str| available.split_whitespace().any(|name| name == **fast);
    FAST.iter().find(is_there).copied()
}

pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    let read = |file: &str| root.read(format!("{DIRECTORY}/{file}"));
    let (Ok(current), Ok(available)) = (read("current_clocksource"), read("available_clocksource"))
    else {
        return fix;
    };
    match better(&available) {
        Some(better) if !FAST.contains(&current.as_str()) => fix
            .write(
                root,
                format!("{DIRECTORY}/current_clocksource"),
                Form::Plain,
                better,
            )
            .parameter("clocksource", better),
        _ => fix,
    }
}

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn clock(current: &str, available: &str) -> Check {
        let directory = "/sys/devices/system/clocksource/clocksource0";
        check(
            &Tree::new()
                .file(&format!("{directory}/current_clocksource"), current)
                .file(&format!("{directory}/available_clocksource"), available)
                .root(),
        )
    }

    #[test]
    fn a_slow_clock_is_bad_and_a_better_one_is_named() {
        let check = clock("hpet\n", "tsc hpet acpi_pm \n");
        assert_eq!(check.state, State::Bad);
        assert!(check.fix.unwrap().starts_with("echo tsc > "));
        let tree = Tree::new()
            .file(&format!("{DIRECTORY}/current_clocksource"), "hpet\n")
            .file(&format!("{DIRECTORY}/available_clocksource"), "tsc hpet\n");
        let made = fix(&tree.root(), &[]);
        assert_eq!(
            (made.writes[0].set.as_str(), made.parameters.len()),
            ("tsc", 1)
        );
        assert!(clock("hpet", "hpet").fix.unwrap().contains("tsc=reliable"));
    }

    #[test]
    fn fast_clocks_are_good_and_strange_ones_are_told() {
        assert_eq!(clock("tsc\n", "tsc kvm-clock\n").state, State::Good);
        assert_eq!(clock("arch_sys_counter\n", "").state, State::Good);
        assert_eq!(clock("xen\n", "xen tsc\n").state, State::Warning);
        assert_eq!(clock("board_timer\n", "board_timer\n").state, State::Info);
    }
}
