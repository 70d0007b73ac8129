//! The consumption of a load's processes, from the kernel: for programs that do not report it themselves.

use std::collections::{HashMap, HashSet};
use std::fs;

use host::process::{self, Stat, tick_ns};

/// Consumption of a process and everything below it until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Processes alive.
    pub processes: u32,
    /// Cpu time, ns; that of ended processes stays with their reapers.
    pub cpu_ns: i64,
    /// Bytes passed to write calls, to files, pipes and sockets alike; 0 where the kernel does not count them.
    pub written_bytes: u64,
}

/// Sums up `root` and its descendants.
pub(crate) fn usage(root: i32) -> Usage {
    let parents = parents();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, stat) in &parents {
        let parent = stat.parent().unwrap_or(0);
        children.entry(parent).or_default().push(*pid);
    }
    let mut usage = Usage::default();
    let mut seen = HashSet::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        let Some(stat) = parents.get(&pid).filter(|_| seen.insert(pid)) else {
            continue;
        };
        usage.processes += u32::from(!stat.has_ended());
        // Ticks of 10 ms are too coarse for hundreds of processes and for little work; the scheduler's own account is of
        // threads that live, and not every kernel keeps it: the larger one is nearer.
        let own = match stat.field(20) {
            Some(1) => process::scheduled_ns(pid),
            _ => process::cpu_ns_of_threads(pid),
        };
        let own = own.ok().flatten().unwrap_or(0);
        let own = own.max(ns(stat, [14, 15]));
        usage.cpu_ns += own + ns(stat, [16, 17]);
        usage.written_bytes += written(pid);
        open.extend(children.get(&pid).into_iter().flatten());
    }
    usage
}

/// Cpu time of two fields (utime and stime; cutime and cstime of children that have ended), ns.
fn ns(stat: &Stat, fields: [usize; 2]) -> i64 {
    let ticks: [i64; 2] = fields.map(|field| stat.field(field).unwrap_or(0));
    (ticks[0] + ticks[1]).saturating_mul(tick_ns())
}

fn parents() -> HashMap<i32, Stat> {
    let all = process::all().into_iter();
    all.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect()
}

fn written(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("wchar: ")?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_process_are_told_from_its_childrens() {
        let line = "7 (a) R 1 (b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99";
        let stat = Stat::parse(line).unwrap();
        let of = |fields| ns(&stat, fields) / tick_ns();
        assert_eq!((of([14, 15]), of([16, 17])), (30, 70));
    }

    #[test]
    fn what_children_consume_and_write_is_counted() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do echo 123456789; done >/dev/null & wait"])
            .spawn()
            .unwrap();
        let root = child.id().cast_signed();
        let mut used = usage(root);
        let began = std::time::Instant::now();
        while (used.processes < 2 || used.cpu_ns < 20_000_000) && began.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            used = usage(root);
        }
        for pid in parents()
            .iter()
            .filter(|(_, s)| s.parent() == Some(root))
            .map(|(p, _)| *p)
        {
            // SAFETY: a child of our child, which has not been reaped.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        child.wait().unwrap();
        assert!(used.cpu_ns >= 20_000_000 && used.processes == 2, "{used:?}");
        assert_eq!(usage(i32::MAX), Usage::default());
    }
}
