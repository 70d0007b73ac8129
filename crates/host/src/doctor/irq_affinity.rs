//! Interrupt affinity: do device interrupts arrive on the cpus for real-time work, and will those of devices that are found later?

use super::{Check, Question, State, name_cpus};
use crate::cpus::{self, format_list, format_mask};
use crate::fix::{Fix, Form};
use crate::root::{Root, Unreadable};

const QUESTION: Question = Question {
    id: "irq-affinity",
    title: "Interrupt affinity",
    why: "Interrupt handlers run before every task, so each device interrupt on a cpu delays the real-time work there.",
};

const DEFAULT: &str = "/proc/irq/default_smp_affinity";
/// Interrupts that are named.
const NAMED: usize = 3;

pub(super) fn check(root: &Root, rt: &[u32]) -> Check {
    let online = match cpus::online_at(root) {
        Ok(online) => online,
        Err(reason) => return QUESTION.unknown(&reason),
    };
    let irqs = numbers(root);
    if irqs.is_empty() {
        return QUESTION.unknown(&Unreadable {
            path: "/proc/irq".to_owned(),
            reason: "it names no interrupts".to_owned(),
        });
    }
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
    let balanced = is_balanced(root);
    let later = default(root).is_some_and(|cpus| cpus.iter().any(|cpu| rt.contains(cpu)));
    let mut found = format!(
        "{may} of {} interrupts may arrive on {}, now directed there: {do_now}; irqbalance is {}",
        irqs.len(),
        name_cpus(rt),
        if balanced { "running" } else { "not running" }
    );
    if later {
        found.push_str("; those of devices found later may as well (default_smp_affinity)");
    }
    if may > 0 {
        found.push_str(&arrived(root, rt));
    }
    let rest = others(&online, rt);
    if rest.is_empty() {
        return QUESTION.answer(
            State::Info,
            format!("{found}; there is no other cpu for them"),
        );
    }
    if may == 0 && !balanced && !later {
        return QUESTION.answer(State::Good, found);
    }
    let list = format_list(&rest);
    let mut fixes = Vec::new();
    if balanced {
        fixes.push(format!(
            "set IRQBALANCE_BANNED_CPULIST={} in the settings of irqbalance (/etc/default/irqbalance on Debian) and restart it",
            format_list(rt)
        ));
    }
    if later {
        fixes.push(format!("echo {} > {DEFAULT}", format_mask(&rest)));
    }
    if may > 0 {
        fixes.push(format!(
            "for irq in /proc/irq/[0-9]*; do echo {list} > $irq/smp_affinity_list; done"
        ));
    }
    let mut fix = fixes.join("; ");
    if may > 0 || later {
        fix.push_str(&format!(
            " (permanently: kernel parameter irqaffinity={list})"
        ));
    }
    QUESTION.answer(State::Warning, found).with_fix(fix)
}

/// Interrupts are taken off the cpus for real-time work, and none is sent to those that are `taken`; those that the kernel binds to
/// a cpu of its own choice stay.
pub(super) fn fix(root: &Root, rt: &[u32], taken: &[u32]) -> Fix {
    let mut fix = Fix::of(QUESTION.id);
    fix.one_by_one = true;
    let rest = others(&cpus::online_at(root).unwrap_or_default(), rt);
    if rest.is_empty() || rt.is_empty() {
        return fix;
    }
    let rest = others(&rest, taken);
    if rest.is_empty() {
        return fix.leave(format!(
            "missions run on all cpus but {}, so there is none to send interrupts to",
            name_cpus(rt)
        ));
    }
    // The rest of somebody's choice, such as near the device's memory, is kept; the kernel refuses cpus of which none is online.
    let kept_off = |cpus: Vec<u32>| {
        let left = others(&others(&cpus, rt), taken);
        match left.iter().any(|cpu| rest.contains(cpu)) {
            true => left,
            false => rest.clone(),
        }
    };
    for irq in numbers(root) {
        let file = format!("/proc/irq/{irq}/smp_affinity_list");
        match cpus::list_file(root, &file) {
            Ok(cpus) if cpus.iter().any(|cpu| rt.contains(cpu)) => {
                fix = fix.write(root, file, Form::Plain, format_list(&kept_off(cpus)));
            }
            _ => {}
        }
    }
    if let Some(cpus) = default(root) {
        // Where none of them is meant, it is left as it is, also with taken cpus.
        let set = match cpus.iter().any(|cpu| rt.contains(cpu)) {
            true => kept_off(cpus),
            false => cpus,
        };
        fix = fix.write(root, DEFAULT, Form::Mask, format_mask(&set));
        fix = fix.parameter("irqaffinity", format_list(&rest));
    }
    if is_balanced(root) {
        return fix.leave(format!(
            "irqbalance is running and moves interrupts back: set IRQBALANCE_BANNED_CPULIST={} in the settings of irqbalance (/etc/default/irqbalance on Debian) and restart it",
            format_list(rt)
        ));
    }
    fix
}

fn numbers(root: &Root) -> Vec<String> {
    let mut names = root.names_in("/proc/irq");
    names.retain(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    names
}

/// Where interrupts of devices go that are found later.
fn default(root: &Root) -> Option<Vec<u32>> {
    cpus::parse_mask(&root.read(DEFAULT).ok()?)
}

fn others(cpus: &[u32], rt: &[u32]) -> Vec<u32> {
    let others = cpus.iter().copied().filter(|cpu| !rt.contains(cpu));
    others.collect()
}

fn is_balanced(root: &Root) -> bool {
    root.names_in("/proc").iter().any(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && root.read(format!("/proc/{pid}/comm")).as_deref() == Ok("irqbalance")
    })
}

/// "; most since the start: eth0-rx-0 (1200), ..." of the interrupts that have arrived on these cpus.
fn arrived(root: &Root, rt: &[u32]) -> String {
    let text = root.read("/proc/interrupts").unwrap_or_default();
    let mut lines = text.lines();
    // A column for each cpu that is online: CPU0 CPU2 CPU3.
    let columns: Vec<bool> = (lines.next().unwrap_or_default().split_whitespace())
        .map(|name| {
            let cpu = name
                .strip_prefix("CPU")
                .and_then(|number| number.parse::<u32>().ok());
            cpu.is_some_and(|cpu| rt.contains(&cpu))
        })
        .collect();
    let mut counts: Vec<(u64, String)> = lines
        .filter_map(|line| {
            let (irq, rest) = line.trim().split_once(':')?;
            let words: Vec<&str> = rest.split_whitespace().collect();
            // Those with names instead of numbers are the cpu's own.
            if !irq.bytes().all(|byte| byte.is_ascii_digit()) || words.len() <= columns.len() {
                return None;
            }
            let on_these = words.iter().zip(&columns).filter(|(_, is)| **is);
            let count = on_these.filter_map(|(count, _)| count.parse::<u64>().ok());
            Some((
                count.fold(0, u64::saturating_add),
                (*words.last()?).to_owned(),
            ))
        })
        .filter(|(count, _)| *count > 0)
        .collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let named = counts.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|(count, name)| format!("{name} ({count})"))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("; most frequent there since boot: {}", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree(affinity: &str, effective: &str) -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/proc/irq/default_smp_affinity", "7\n")
            .file("/proc/irq/9/smp_affinity_list", "0-2\n")
            .file("/proc/irq/24/smp_affinity_list", affinity)
            .file("/proc/irq/24/effective_affinity_list", effective)
    }

    #[test]
    fn interrupts_that_may_arrive_are_counted() {
        let check = check(&tree("0-3\n", "3\n").root(), &[3]);
        assert_eq!(check.state, State::Warning);
        assert_eq!(
            check.found,
            "1 of 2 interrupts may arrive on cpu 3, now directed there: 1; irqbalance is not running"
        );
        assert!(check.fix.unwrap().contains("echo 0-2 >"));
    }

    #[test]
    fn interrupts_kept_elsewhere_are_good_unless_something_moves_them() {
        assert_eq!(check(&tree("0-2\n", "0\n").root(), &[3]).state, State::Good);
        let moved = check(
            &tree("0-2\n", "0\n")
                .file("/proc/77/comm", "irqbalance\n")
                .root(),
            &[3],
        );
        assert_eq!(moved.state, State::Warning);
        assert!(moved.fix.unwrap().contains("IRQBALANCE_BANNED_CPULIST=3"));
    }

    #[test]
    fn those_of_devices_found_later_and_those_that_arrive_are_told() {
        let interrupts = "           CPU0       CPU2       CPU3\n  9:  5  6  7  IO-APIC  9-fasteoi  acpi\n 24:  1  0  40  PCI-MSI  0-edge  eth0-rx-0\n LOC:  9  9  9  Local timer\n ERR:  0\n";
        let tree = tree("0-3\n", "3\n")
            .file("/proc/irq/default_smp_affinity", "f\n")
            .file("/proc/interrupts", interrupts);
        let found = check(&tree.root(), &[3]);
        assert!(
            found.found.contains("default_smp_affinity"),
            "{}",
            found.found
        );
        assert!(
            found
                .found
                .ends_with("since boot: eth0-rx-0 (40), acpi (7)"),
            "{}",
            found.found
        );
        assert!(
            found
                .fix
                .unwrap()
                .starts_with("echo 7 > /proc/irq/default_smp_affinity")
        );
    }

    #[test]
    fn they_are_taken_off_and_what_else_was_chosen_is_kept() {
        let tree = tree("2-3\n", "3\n")
            .file("/proc/irq/default_smp_affinity", "f\n")
            .file("/proc/irq/25/smp_affinity_list", "3\n")
            .file("/proc/77/comm", "irqbalance\n");
        let made = fix(&tree.root(), &[3], &[]);
        let sets: Vec<(&str, &str)> = (made.writes.iter())
            .map(|write| (write.path.as_str(), write.set.as_str()))
            .collect();
        assert_eq!(
            sets,
            [
                ("/proc/irq/24/smp_affinity_list", "2"),
                ("/proc/irq/25/smp_affinity_list", "0-2"),
                ("/proc/irq/default_smp_affinity", "7"),
            ]
        );
        assert!(made.one_by_one && made.left[0].contains("irqbalance"));
        assert_eq!(made.parameters[0].value, "0-2");
        // Where they have no other cpu to go to, they stay.
        assert!(fix(&tree.root(), &[0, 1, 2, 3], &[]).writes.is_empty());
    }

    fn sets(fix: &Fix) -> Vec<&str> {
        fix.writes.iter().map(|write| write.set.as_str()).collect()
    }

    #[test]
    fn none_is_sent_to_a_cpu_of_a_mission() {
        let tree = tree("2-3\n", "3\n")
            .file("/proc/irq/default_smp_affinity", "f\n")
            .file("/proc/irq/25/smp_affinity_list", "0-3\n");
        let made = fix(&tree.root(), &[3], &[2]);
        assert_eq!(sets(&made), ["0-1", "0-1", "3"]);
        assert_eq!(made.parameters[0].value, "0-1");
        // Those that are there already are the mission's concern, not ours.
        assert!(made.writes.iter().all(|write| !write.path.contains("/9/")));
        let full = fix(&tree.root(), &[3], &[0, 1, 2]);
        assert!(
            full.writes.is_empty() && full.parameters.is_empty(),
            "{full:?}"
        );
        assert!(full.left[0].contains("all cpus but cpu 3"), "{full:?}");
    }

    #[test]
    fn a_cpu_that_is_offline_is_not_all_that_is_left() {
        let tree = tree("3,7\n", "3\n").file("/proc/irq/default_smp_affinity", "88\n");
        assert_eq!(sets(&fix(&tree.root(), &[3], &[])), ["0-2", "7"]);
    }
}
