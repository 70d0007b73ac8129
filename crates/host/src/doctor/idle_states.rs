//! Idle states: how long does a sleeping cpu take to wake?

use super::{Check, Question, State, name_cpus};
use crate::fix::{Fix, Form};
use crate::kernel::CommandLine;
use crate::root::Root;

const QUESTION: Question = Question {
    id: "idle-states",
    title: "Cpu idle states",
    why: "A cpu in a deep idle state wakes late, so the first instant after a quiet time is the slowest.",
};

/// Exit latencies up to this many microseconds disappear in the cost of a wake-up.
const HARMLESS_US: u64 = 10;

pub(super) fn check(root: &Root, rt: &[u32]) -> Check {
    if let Ok(line) = CommandLine::read(root)
        && line.get("idle") == Some("poll")
    {
        return QUESTION.answer(State::Good, "none: idle=poll keeps every cpu awake");
    }
    let driver = match root.read("/sys/devices/system/cpu/cpuidle/current_driver") {
        Ok(driver) => driver,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let switch = if root.exists("/dev/cpu_dma_latency") {
        "/dev/cpu_dma_latency is there"
    } else {
        "/dev/cpu_dma_latency is absent"
    };
    let mut deepest: Option<(u64, String)> = None;
    for cpu in rt {
        let states = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in root.names_in(&states) {
            let state = format!("{states}/{state}");
            if root.read(format!("{state}/disable")).as_deref() == Ok("1") {
                continue;
            }
            let Ok(latency) = root.read_number::<u64>(format!("{state}/latency")) else {
                continue;
            };
            let name = root.read(format!("{state}/name")).unwrap_or_default();
            if deepest.as_ref().is_none_or(|(most, _)| latency > *most) {
                deepest = Some((latency, name));
            }
        }
    }
    match deepest {
        None => QUESTION.answer(
            State::Info,
            format!(
                "the kernel manages none (driver {}); an idle cpu halts, and in a virtual machine the hypervisor decides how deep; {switch}",
                if driver.is_empty() { "none" } else { &driver }
            ),
        ),
        Some((latency, name)) => {
            let found = format!(
                "the deepest on {} is {name}, {latency} us to leave (driver {driver}); {switch}",
                name_cpus(rt)
            );
            if latency <= HARMLESS_US {
                return QUESTION.answer(State::Good, found);
            }
            let mut fix = format!(
                "for state in {}; do [ \"$(cat $state/latency)\" -gt {HARMLESS_US} ] && echo 1 > $state/disable; done",
                rt.iter()
                    .map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state*"))
                    .collect::<Vec<_>>()
                    .join(" ")
            );
            fix.push_str(" (or hold /dev/cpu_dma_latency open with the value 0)");
            QUESTION.answer(State::Warning, found).with_fix(fix)
        }
    }
}

/// A process that holds /dev/cpu_dma_latency open keeps all cpus awake meanwhile; this is for those that matter.
pub(super) fn fix(root: &Root, rt: &[u32]) -> Fix {
    let mut fix = Fix::of(QUESTION.id);
    for cpu in rt {
        let states = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in root.names_in(&states) {
            let state = format!("{states}/{state}");
            let latency = root.read_number::<u64>(format!("{state}/latency"));
            if latency.is_ok_and(|us| us > HARMLESS_US) {
                fix = fix.write(root, format!("{state}/disable"), Form::Plain, "1");
            }
        }
    }
    fix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(disable: &str) -> Tree {
        let idle = "/sys/devices/system/cpu/cpu1/cpuidle";
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-1\n")
            .file(
                "/sys/devices/system/cpu/cpuidle/current_driver",
                "intel_idle\n",
            )
            .file(&format!("{idle}/state0/latency"), "0\n")
            .file(&format!("{idle}/state0/name"), "POLL\n")
            .file(&format!("{idle}/state1/latency"), "133\n")
            .file(&format!("{idle}/state1/name"), "C6\n")
            .file(&format!("{idle}/state1/disable"), disable)
    }

    #[test]
    fn a_deep_state_is_a_warning_until_it_is_disabled() {
        let deep = check(&tree("0\n").root(), &[1]);
        assert_eq!(deep.state, State::Warning);
        assert!(deep.found.contains("C6, 133 us"), "{}", deep.found);
        assert!(deep.fix.unwrap().contains("cpu1/cpuidle/state*"));
        assert_eq!(check(&tree("1\n").root(), &[1]).state, State::Good);
        let writes = fix(&tree("0\n").root(), &[1]).writes;
        assert_eq!(writes.len(), 1, "state0 is harmless: {writes:?}");
        assert!(writes[0].path.ends_with("cpu1/cpuidle/state1/disable") && !writes[0].is_done());
        assert!(fix(&tree("1\n").root(), &[1]).writes[0].is_done());
    }

    #[test]
    fn polling_is_good_and_no_driver_is_no_fault() {
        let poll = Tree::new().file("/proc/cmdline", "quiet idle=poll\n");
        assert_eq!(check(&poll.root(), &[1]).state, State::Good);
        let none = Tree::new().file("/sys/devices/system/cpu/cpuidle/current_driver", "none\n");
        assert_eq!(check(&none.root(), &[1]).state, State::Info);
    }
}
