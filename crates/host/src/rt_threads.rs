//! Real-time threads of the machine, whoever's they are: what `/proc/PID/task/TID/stat` says of class and priority
//! (proc_pid_stat(5)).

use crate::cpus;
use crate::root::Root;

/// Flag of the kernel's own threads (`PF_KTHREAD` of `include/linux/sched.h`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A thread of class FIFO, RR or DEADLINE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtThread {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// What the kernel calls it.
    pub name: String,
    /// Class and priority, such as `FIFO 90`, or `DEADLINE`.
    pub class: String,
    /// Cpus on which it may run, ascending.
    pub cpus: Vec<u32>,
    /// Its process's parent.
    pub parent: i32,
}

/// All real-time threads of programs. The kernel's own threads are left out: what they cost every cell is in the measured wake-up
/// latency. A thread that ends meanwhile is left out too.
pub fn all(root: &Root) -> Vec<RtThread> {
    let pids = root.names_in("/proc").into_iter();
    let pids = pids.filter_map(|name| name.parse::<i32>().ok());
    pids.flat_map(|pid| of_process(root, pid)).collect()
}

fn of_process(root: &Root, pid: i32) -> Vec<RtThread> {
    let Ok(stat) = root.read(format!("/proc/{pid}/stat")) else {
        return Vec::new();
    };
    // Most processes have one thread, of which their own file says all.
    match threads_of(&stat) {
        None => Vec::new(),
        Some(1) => thread(root, pid, pid, &stat).into_iter().collect(),
        Some(_) => (root.names_in(format!("/proc/{pid}/task")).iter())
            .filter_map(|name| {
                let tid = name.parse().ok()?;
                let stat = root.read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
                thread(root, pid, tid, &stat)
            })
            .collect(),
    }
}

/// A real-time thread, by its own `stat`; `None`: it is another one or has ended.
fn thread(root: &Root, pid: i32, tid: i32, stat: &str) -> Option<RtThread> {
    let (name, class, parent) = real_time(stat)?;
    let status = root.read(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let allowed = (status.lines()).find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Some(RtThread {
        pid,
        tid,
        name,
        class,
        cpus: cpus::parse_list(allowed?.trim()).ok()?,
        parent,
    })
}

/// How many threads a process has, by its own `stat`; `None`: it is one of the kernel's.
fn threads_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let number = |at: usize| rest.split_whitespace().nth(at)?.parse::<u64>().ok();
    (number(6)? & KERNEL_THREAD == 0).then_some(number(17)?)
}

/// Name, class and parent of a real-time thread of a program; `None`: it is another one.
fn real_time(stat: &str) -> Option<(String, String, i32)> {
    // The name, in parentheses, may hold anything.
    let (before, rest) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    if number(6)? & KERNEL_THREAD != 0 {
        return None;
    }
    let priority = number(37)?;
    let class = match number(38)? {
        1 => format!("FIFO {priority}"),
        2 => format!("RR {priority}"),
        6 => "DEADLINE".to_owned(),
        _ => return None,
    };
    Some((name.to_owned(), class, fields.get(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn stat(name: &str, flags: u64, priority: u64, policy: u64) -> String {
        let zeros = |count: usize| vec!["0"; count].join(" ");
        format!(
            "7 ({name}) S 3 7 7 0 -1 {flags} {} {priority} {policy} 0 0 0",
            zeros(30)
        )
    }

    #[test]
    fn class_and_priority_stand_behind_any_name() {
        let fifo = real_time(&stat("a) b", 4_194_304, 90, 1)).unwrap();
        assert_eq!(fifo, ("a) b".to_owned(), "FIFO 90".to_owned(), 3));
        assert_eq!(real_time(&stat("x", 0, 10, 2)).unwrap().1, "RR 10");
        assert_eq!(real_time(&stat("x", 0, 0, 6)).unwrap().1, "DEADLINE");
        assert_eq!(real_time(&stat("x", 0, 0, 0)), None);
        assert_eq!(real_time(&stat("migration/0", KERNEL_THREAD, 99, 1)), None);
        assert_eq!(real_time("7 (x) S 1"), None);
    }

    #[test]
    fn a_process_is_listed_only_if_it_has_several_threads() {
        let with = |threads: u64, flags: u64| {
            let zeros = |count: usize| vec!["0"; count].join(" ");
            format!(
                "7 (x) S 3 7 7 0 -1 {flags} {} {threads} {} 90 1 0 0 0",
                zeros(10),
                zeros(19)
            )
        };
        assert_eq!(threads_of(&with(3, 0)), Some(3));
        assert_eq!(threads_of(&with(1, KERNEL_THREAD)), None);
        let tree = |threads: u64| {
            let status = "Name:\tx\nCpus_allowed_list:\t0-1\n";
            let mut tree = Tree::new().file("/proc/7/stat", &with(threads, 0));
            for tid in [7, 8] {
                let dir = format!("/proc/7/task/{tid}");
                tree = tree
                    .file(&format!("{dir}/stat"), &with(threads, 0))
                    .file(&format!("{dir}/status"), status);
            }
            let mut tids: Vec<i32> = all(&tree.root()).iter().map(|thread| thread.tid).collect();
            tids.sort_unstable();
            tids
        };
        assert_eq!(tree(1), [7]);
        assert_eq!(tree(2), [7, 8]);
    }

    #[test]
    fn this_machine_is_read() {
        for thread in all(&Root::live()) {
            assert!(!thread.cpus.is_empty(), "{thread:?}");
        }
    }
}
