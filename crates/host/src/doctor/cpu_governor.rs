//! The frequency governor: do cpus slow down when they have little to do?

use super::{Check, Question, State};
use crate::cpus::{self, format_list};
use crate::fix::{Fix, Form};
use crate::root::Root;
use std::collections::BTreeMap;

const QUESTION: Question = Question {
    id: "cpu-governor",
    title: "Cpu frequency governor",
    why: "A governor that follows the load makes the same work take longer after a quiet time, so execution times depend on history.",
};

pub(super) fn check(root: &Root) -> Check {
    let online = match cpus::online_at(root) {
        Ok(online) => online,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let mut by_governor: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for cpu in online {
        if let Ok(governor) = root.read(file(cpu)) {
            by_governor.entry(governor).or_default().push(cpu);
        }
    }
    if by_governor.is_empty() {
        return QUESTION.answer(
            State::Info,
            "the machine offers no frequency control (usual in a virtual machine)",
        );
    }
    let mut found = by_governor
        .iter()
        .map(|(governor, cpus)| format!("{governor} on {}", super::name_cpus(cpus)))
        .collect::<Vec<_>>()
        .join(", ");
    let driver = root
        .read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
        .unwrap_or_default();
    if !driver.is_empty() {
        found.push_str(&format!(" (driver {driver})"));
    }
    let other: Vec<u32> = by_governor
        .iter()
        .filter(|(governor, _)| *governor != "performance")
        .flat_map(|(_, cpus)| cpus.iter().copied())
        .collect();
    if other.is_empty() {
        return QUESTION.answer(State::Good, found);
    }
    // Under intel_pstate and amd-pstate-epp, `powersave` follows the load; elsewhere it is the
    // lowest frequency, always.
    let slow = by_governor.contains_key("powersave") && !driver.contains("pstate");
    let state = if slow { State::Bad } else { State::Warning };
    let fix = format!(
        "for cpu in {}; do echo performance > /sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_governor; done",
        match &other[..] {
            [first, .., last]
                if other.len() > 8 && format_list(&other) == format!("{first}-{last}") =>
                format!("$(seq {first} {last})"),
            cpus => cpus
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        }
    );
    QUESTION.answer(state, found).with_fix(fix)
}

pub(super) fn fix(root: &Root, _: &[u32]) -> Fix {
    let fix = Fix::of(QUESTION.id);
    let files = cpus::online_at(root)
        .unwrap_or_default()
        .into_iter()
        .map(file);
    (files.filter(|file| root.exists(file))).fold(fix, |fix, file| {
        fix.write(root, file, Form::Plain, "performance")
    })
}

fn file(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(first: &str, second: &str, driver: &str) -> Tree {
        let cpu = "/sys/devices/system/cpu";
        Tree::new()
            .file(&format!("{cpu}/online"), "0-1\n")
            .file(&format!("{cpu}/cpu0/cpufreq/scaling_governor"), first)
            .file(&format!("{cpu}/cpu1/cpufreq/scaling_governor"), second)
            .file(&format!("{cpu}/cpu0/cpufreq/scaling_driver"), driver)
    }

    #[test]
    fn powersave_is_bad_where_it_means_the_lowest_frequency() {
        let check = check(&tree("powersave\n", "performance\n", "cpufreq-dt\n").root());
        assert_eq!(check.state, State::Bad);
        assert_eq!(
            check.found,
            "performance on cpu 1, powersave on cpu 0 (driver cpufreq-dt)"
        );
        let writes = fix(&tree("powersave\n", "performance\n", "").root(), &[]).writes;
        let open: Vec<&str> = (writes.iter())
            .filter(|write| !write.is_done())
            .map(|write| write.path.as_str())
            .collect();
        assert_eq!(
            open,
            ["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"]
        );
        assert_eq!(
            check.fix.unwrap(),
            "for cpu in 0; do echo performance > /sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_governor; done"
        );
    }

    #[test]
    fn powersave_of_a_pstate_driver_and_load_followers_are_warnings() {
        let state = |a, b, driver| check(&tree(a, b, driver).root()).state;
        assert_eq!(
            state("powersave", "powersave", "intel_pstate"),
            State::Warning
        );
        assert_eq!(state("schedutil", "schedutil", ""), State::Warning);
        assert_eq!(state("performance", "performance", ""), State::Good);
    }

    #[test]
    fn no_frequency_control_is_no_fault() {
        let tree = Tree::new().file("/sys/devices/system/cpu/online", "0\n");
        assert_eq!(check(&tree.root()).state, State::Info);
    }
}
