//! EVL: is there a core beside Linux for out-of-band threads, and is it fit to be used?

use super::{Check, Question, State};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "evl",
    title: "EVL",
    why: "Threads of EVL run out of band on a Dovetail kernel, where no lock and no load of Linux holds them up.",
};

/// Attributes of the core, and of its monotonic clock.
const CORE: &str = "/sys/class/evl/control";
const GRAVITY: &str = "/sys/class/clock/monotonic/gravity";
/// One directory for each cpu, with the device that ticks there.
const TICKS: &str = "/sys/devices/system/clockevents";

pub(super) fn check(root: &Root) -> Check {
    let core = |name: &str| {
        root.read(format!("{CORE}/{name}"))
            .map(|text| text.trim().to_owned())
    };
    let Ok(level) = core("abi") else {
        return QUESTION.answer(State::Info, "this kernel has no EVL core");
    };
    let state = core("state").unwrap_or_else(|_| "unknown".to_owned());
    let mut found = format!("ABI {level}, {state}");
    if let Ok(cpus) = core("cpus") {
        found += &format!(", out of band on cpus {cpus}");
    }
    if let Ok(gravity) = root.read(GRAVITY) {
        // Of the interrupt, of threads of the kernel and of users: subtracted from every expiry.
        found += &format!(", gravity {} ns", gravity.trim());
    }
    let ticks = root.names_in(TICKS).into_iter();
    let proxies = ticks.filter(|name| {
        let device = root.read(format!("{TICKS}/{name}/current_device"));
        device.is_ok_and(|device| device.starts_with("proxy"))
    });
    found += match proxies.count() {
        0 => ", no tick of Linux passes through it",
        _ => ", the ticks of Linux pass through it",
    };
    let is_known = level
        .parse()
        .is_ok_and(|level| ::evl::LEVELS.contains(&level));
    if !is_known {
        return QUESTION.answer(State::Warning, found).with_fix(format!(
            "timecell knows levels {} to {} of EVL's ABI; take such a kernel for `stage = \"oob\"`",
            ::evl::LEVELS.start(),
            ::evl::LEVELS.end()
        ));
    }
    match state.as_str() {
        "running" => QUESTION.answer(State::Good, found),
        _ => QUESTION
            .answer(State::Warning, found)
            .with_fix(format!("echo start > {CORE}/state")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn kernel(abi: &str, state: &str) -> Tree {
        Tree::new()
            .file("/sys/class/evl/control/abi", &format!("{abi}\n"))
            .file("/sys/class/evl/control/state", &format!("{state}\n"))
            .file("/sys/class/evl/control/cpus", "0-3\n")
            .file("/sys/class/clock/monotonic/gravity", "0i 2000k 3500u\n")
            .file(
                "/sys/devices/system/clockevents/clockevent0/current_device",
                "proxy:arch_sys_timer\n",
            )
    }

    #[test]
    fn a_running_core_of_a_known_level_is_good() {
        let check = check(&kernel("32", "running").root());
        assert_eq!(check.state, State::Good);
        assert_eq!(
            check.found,
            "ABI 32, running, out of band on cpus 0-3, gravity 0i 2000k 3500u ns, the ticks of Linux pass through it"
        );
    }

    #[test]
    fn a_stopped_core_and_an_unknown_level_are_warnings() {
        let stopped = check(&kernel("32", "stopped").root());
        assert_eq!(stopped.state, State::Warning);
        assert!(stopped.fix.unwrap().starts_with("echo start"));
        let unknown = check(&kernel("44", "running").root());
        assert_eq!(unknown.state, State::Warning);
        assert!(unknown.fix.unwrap().contains("levels 23 to 43"));
    }

    #[test]
    fn a_kernel_without_the_core_is_only_told() {
        assert_eq!(check(&Tree::new().root()).state, State::Info);
    }
}
