//! Timer resolution: how finely can a task be woken, and how often does the tick check budgets?

use super::{Check, Question, State};
use crate::root::{Root, Unreadable};
use crate::{clock, kernel};

const QUESTION: Question = Question {
    id: "timer-resolution",
    title: "Timer resolution",
    why: "Without high-resolution timers a task wakes only on a tick, and group budgets are enforced by the tick in any case.",
};

pub(super) fn check(root: &Root) -> Check {
    let resolution_ns = match resolution_ns(root) {
        Ok(resolution) => resolution,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let tick = match kernel::tick_hz(root) {
        Some(hz) => format!(
            "tick {hz} Hz, so budgets are enforced in steps of {} us",
            1_000_000 / hz
        ),
        None => "tick frequency unknown".to_owned(),
    };
    let found = format!("timers resolve {resolution_ns} ns; {tick}");
    if resolution_ns <= 1_000 {
        QUESTION.answer(State::Good, found)
    } else {
        QUESTION.answer(State::Bad, found).with_fix(
            "boot without the kernel parameters highres=off and nohz=off, on a kernel built with CONFIG_HIGH_RES_TIMERS",
        )
    }
}

/// Resolution of CLOCK_MONOTONIC timers in nanoseconds.
fn resolution_ns(root: &Root) -> Result<u64, Unreadable> {
    if root.is_live()
        && let Some(ns) = clock::resolution(libc::CLOCK_MONOTONIC)
    {
        return Ok(ns);
    }
    let path = "/proc/timer_list";
    root.read(path)?
        .lines()
        .find_map(|line| {
            let rest = line.trim().strip_prefix(".resolution:")?;
            rest.split_whitespace().next()?.parse().ok()
        })
        .ok_or_else(|| Unreadable {
            path: path.to_owned(),
            reason: "it names no resolution".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, gzip};

    #[test]
    fn high_resolution_is_good_and_the_tick_is_told() {
        let tree = Tree::new()
            .file("/proc/timer_list", " clock 0:\n  .resolution: 1 nsecs\n")
            .bytes("/proc/config.gz", &gzip("CONFIG_HZ=250\n"));
        let check = check(&tree.root());
        assert_eq!(check.state, State::Good);
        assert_eq!(
            check.found,
            "timers resolve 1 ns; tick 250 Hz, so budgets are enforced in steps of 4000 us"
        );
    }

    #[test]
    fn timers_on_the_tick_are_bad() {
        let tree = Tree::new().file("/proc/timer_list", "  .resolution: 4000000 nsecs\n");
        assert_eq!(check(&tree.root()).state, State::Bad);
    }
}
