//! Cpu isolation: are there cpus that ordinary work, the tick and RCU callbacks leave alone?

use super::{Check, Question, State, name_cpus, rt_cpus};
use crate::cpus::{self, format_list, parse_list};
use crate::kernel::{BuildOptions, CommandLine};
use crate::root::Root;

const QUESTION: Question = Question {
    id: "cpu-isolation",
    title: "Isolated cpus",
    why: "Ordinary work, timer ticks and RCU callbacks on a cpu delay the real-time tasks there unless the kernel keeps them away.",
};

pub(super) fn check(root: &Root) -> Check {
    let online = match cpus::online_at(root) {
        Ok(online) => online,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let line = CommandLine::read(root).ok();
    let parameter = |name: &str| {
        let value = line.as_ref()?.get(name)?;
        parse_list(value).ok()
    };
    let isolated = cpus::isolated_at(root);
    let nohz_file = cpus::list_file(root, "/sys/devices/system/cpu/nohz_full").ok();
    let can_nohz = nohz_file.is_some()
        || BuildOptions::read(root).is_ok_and(|options| options.has("CONFIG_NO_HZ_FULL"));
    let nohz = nohz_file.unwrap_or_default();
    // nohz_full= implies rcu_nocbs= on the same cpus.
    let mut nocbs = parameter("rcu_nocbs").unwrap_or_default();
    nocbs.extend(&nohz);

    let show = |cpus: &[u32]| match cpus {
        [] => "none".to_owned(),
        cpus => format_list(cpus),
    };
    let mut found = format!(
        "isolated {}; without tick (nohz_full) {}; without RCU callbacks (rcu_nocbs) {}",
        show(&isolated),
        show(&nohz),
        show(&nocbs)
    );
    if online.len() < 2 {
        found.push_str("; there is only one cpu");
        return QUESTION.answer(State::Warning, found);
    }
    let wanted = rt_cpus(root);
    let lacks = |have: &[u32]| wanted.iter().any(|cpu| !have.contains(cpu));
    if !lacks(&isolated) && !lacks(&nohz) && !lacks(&nocbs) {
        return QUESTION.answer(State::Good, found);
    }
    if !can_nohz {
        found.push_str("; this kernel was built without nohz_full");
        if !lacks(&isolated) {
            return QUESTION.answer(State::Info, found);
        }
    }
    let list = format_list(&wanted);
    let mut mend = format!("kernel parameters isolcpus=managed_irq,domain,{list}");
    if can_nohz {
        mend.push_str(&format!(" nohz_full={list} rcu_nocbs={list}"));
    }
    mend.push_str(&format!(" (for {})", name_cpus(&wanted)));
    QUESTION.answer(State::Warning, found).with_mend(mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(isolated: &str, nohz: &str) -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/devices/system/cpu/isolated", isolated)
            .file("/sys/devices/system/cpu/nohz_full", nohz)
    }

    #[test]
    fn fully_isolated_cpus_are_good() {
        let check = check(&tree("2-3\n", "2-3\n").root());
        assert_eq!(check.state, State::Good, "{check:?}");
    }

    #[test]
    fn without_isolation_the_parameters_are_named() {
        let check = check(&tree("\n", "(null)\n").root());
        assert_eq!(check.state, State::Warning);
        assert_eq!(
            check.mend.unwrap(),
            "kernel parameters isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3 (for cpu 3)"
        );
    }

    #[test]
    fn a_kernel_without_nohz_full_is_not_told_to_use_it() {
        let tree = Tree::new().file("/sys/devices/system/cpu/online", "0-1\n");
        let check = check(&tree.root());
        assert!(!check.mend.unwrap().contains("nohz_full"));
    }

    #[test]
    fn one_cpu_has_nothing_to_isolate() {
        let tree = Tree::new().file("/sys/devices/system/cpu/online", "0\n");
        let check = check(&tree.root());
        assert_eq!((check.state, check.mend), (State::Warning, None));
    }
}
