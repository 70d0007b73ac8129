//! Interrupt affinity: do device interrupts arrive on the cpus for real-time work?

use super::{Check, Question, State, name_cpus, rt_cpus};
use crate::cpus::{self, format_list};
use crate::root::{Root, Unreadable};

const QUESTION: Question = Question {
    id: "irq-affinity",
    title: "Interrupt affinity",
    why: "Interrupt handlers run before every task, so each device interrupt on a cpu delays the real-time work there.",
};

pub(super) fn check(root: &Root) -> Check {
    let online = match cpus::online_at(root) {
        Ok(online) => online,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let irqs: Vec<String> = root
        .names_in("/proc/irq")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    if irqs.is_empty() {
        return QUESTION.unknown(&Unreadable {
            path: "/proc/irq".to_owned(),
            reason: "it names no interrupts".to_owned(),
        });
    }
    let rt = rt_cpus(root);
    let hits = |irq: &str, file: &str| {
        cpus::list_file(root, format!("/proc/irq/{irq}/{file}"))
            .is_ok_and(|cpus| cpus.iter().any(|cpu| rt.contains(cpu)))
    };
    let may = irqs
        .iter()
        .filter(|irq| hits(irq, "smp_affinity_list"))
        .count();
    let do_now = irqs
        .iter()
        .filter(|irq| hits(irq, "effective_affinity_list"))
        .count();
    let balanced = root.names_in("/proc").iter().any(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && root.read(format!("/proc/{pid}/comm")).as_deref() == Ok("irqbalance")
    });
    let found = format!(
        "{may} of {} interrupts may arrive on {}, now directed there: {do_now}; irqbalance is {}",
        irqs.len(),
        name_cpus(&rt),
        if balanced { "running" } else { "not running" }
    );
    let rest: Vec<u32> = online.into_iter().filter(|cpu| !rt.contains(cpu)).collect();
    if rest.is_empty() {
        return QUESTION.answer(
            State::Info,
            format!("{found}; there is no other cpu for them"),
        );
    }
    if may == 0 && !balanced {
        return QUESTION.answer(State::Good, found);
    }
    let list = format_list(&rest);
    let mut mend = String::new();
    if balanced {
        mend.push_str(&format!(
            "set IRQBALANCE_BANNED_CPULIST={} in /etc/default/irqbalance and systemctl restart irqbalance",
            format_list(&rt)
        ));
    }
    if may > 0 {
        if balanced {
            mend.push_str("; ");
        }
        mend.push_str(&format!(
            "for irq in /proc/irq/[0-9]*; do echo {list} > $irq/smp_affinity_list; done (permanently: kernel parameter irqaffinity={list})"
        ));
    }
    QUESTION.answer(State::Warning, found).with_mend(mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(affinity: &str, effective: &str) -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/proc/irq/default_smp_affinity", "f\n")
            .file("/proc/irq/9/smp_affinity_list", "0-2\n")
            .file("/proc/irq/24/smp_affinity_list", affinity)
            .file("/proc/irq/24/effective_affinity_list", effective)
    }

    #[test]
    fn interrupts_that_may_arrive_are_counted() {
        let check = check(&tree("0-3\n", "3\n").root());
        assert_eq!(check.state, State::Warning);
        assert_eq!(
            check.found,
            "1 of 2 interrupts may arrive on cpu 3, now directed there: 1; irqbalance is not running"
        );
        assert!(check.mend.unwrap().contains("echo 0-2 >"));
    }

    #[test]
    fn interrupts_kept_elsewhere_are_good_unless_something_moves_them() {
        assert_eq!(check(&tree("0-2\n", "0\n").root()).state, State::Good);
        let moved = check(
            &tree("0-2\n", "0\n")
                .file("/proc/77/comm", "irqbalance\n")
                .root(),
        );
        assert_eq!(moved.state, State::Warning);
        assert!(moved.mend.unwrap().contains("IRQBALANCE_BANNED_CPULIST=3"));
    }
}
