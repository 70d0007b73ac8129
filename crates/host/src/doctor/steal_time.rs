//! Steal time: how much of the cpus does the hypervisor give to others?

use super::{Check, Question, State};
use crate::root::{Root, Unreadable};
use std::time::Duration;

const QUESTION: Question = Question {
    id: "steal-time",
    title: "Steal time",
    why: "While the hypervisor runs something else, no task of this machine runs, whatever its priority.",
};

const PATH: &str = "/proc/stat";
/// How long the live machine is watched.
const WATCH: Duration = Duration::from_millis(100);

pub(super) fn check(root: &Root) -> Check {
    let before = match Times::read(root) {
        Ok(times) => times,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    if root.is_live() {
        std::thread::sleep(WATCH);
    }
    match Times::read(root) {
        Ok(after) => judge(&before, &after),
        Err(reason) => QUESTION.unknown(&reason),
    }
}

/// Time of all cpus since boot, in ticks of 10 ms.
struct Times {
    steal: u64,
    total: u64,
}

impl Times {
    fn read(root: &Root) -> Result<Self, Unreadable> {
        let parse = |text: &str| -> Option<Self> {
            let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
            // user nice system idle iowait irq softirq steal; guest times are inside user.
            let fields: Vec<u64> = line
                .split_whitespace()
                .take(8)
                .map_while(|field| field.parse().ok())
                .collect();
            Some(Self {
                steal: *fields.get(7)?,
                total: fields
                    .iter()
                    .fold(0, |sum, field| sum.saturating_add(*field)),
            })
        };
        parse(&root.read(PATH)?).ok_or_else(|| Unreadable {
            path: PATH.to_owned(),
            reason: "it has no cpu line with steal time".to_owned(),
        })
    }
}

fn judge(before: &Times, after: &Times) -> Check {
    let since_boot = share(after.steal, after.total);
    let watched = after.total.saturating_sub(before.total);
    let now = share(after.steal.saturating_sub(before.steal), watched);
    let mut found = format!("{since_boot:.2} % since boot");
    if watched > 0 {
        found.push_str(&format!(
            ", {now:.1} % over the last {} ms of cpu time (counted in steps of 10 ms)",
            watched.saturating_mul(10)
        ));
    }
    let state = if since_boot >= 5.0 {
        State::Bad
    } else if since_boot >= 0.1 || now > 0.0 {
        State::Warning
    } else {
        State::Good
    };
    let check = QUESTION.answer(state, found);
    if state == State::Good {
        check
    } else {
        check.with_fix(
            "have the host pin each virtual cpu to a cpu of its own, or measure on a real machine",
        )
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn times(steal: u64, total: u64) -> Times {
        Times { steal, total }
    }

    #[test]
    fn steal_is_judged_since_boot_and_now() {
        assert_eq!(judge(&times(0, 1000), &times(0, 1020)).state, State::Good);
        let now = judge(&times(0, 100_000), &times(2, 100_020));
        assert_eq!(now.state, State::Warning);
        assert_eq!(
            now.found,
            "0.00 % since boot, 10.0 % over the last 200 ms of cpu time (counted in steps of 10 ms)"
        );
        assert_eq!(judge(&times(60, 1000), &times(60, 1000)).state, State::Bad);
    }

    #[test]
    fn the_eighth_field_is_read() {
        let tree = Tree::new().file(PATH, "cpu  13433 0 2750 83180 442 0 86 11 0 0\ncpu0 1\n");
        let times = Times::read(&tree.root()).unwrap();
        assert_eq!((times.steal, times.total), (11, 99_902));
        let old = Tree::new().file(PATH, "cpu  1 2 3 4\n");
        assert_eq!(check(&old.root()).state, State::Unknown);
    }
}
