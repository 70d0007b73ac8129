//! All real-time threads of the machine: class and priority as `/proc/PID/task/TID/stat` reports them (proc_pid_stat(5)).

use std::os::unix::fs::MetadataExt;

use crate::cpus;
use crate::process::{Stat, value};
use crate::root::Root;
use crate::sched;

/// A thread of class FIFO, RR or DEADLINE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtThread {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Its name in the kernel.
    pub name: String,
    /// Class and priority, such as `FIFO 90`, or `DEADLINE`.
    pub class: String,
    /// The priority, 1 to 99; `None`: it is of class DEADLINE, which comes before all of them.
    pub priority: Option<u8>,
    /// Cpus on which it may run, ascending.
    pub cpus: Vec<u32>,
}

/// All real-time threads of programs, but for those of the processes that `passed_over` names by their id and their parent's. The
/// kernel's own threads are left out: their cost to every cell is in the measured wake-up latency. A thread that ends meanwhile is
/// left out too.
///
/// `passed_over` is asked of a process without a parent first, before anything is read of it, and with it only if it has such a
/// thread. On the machine itself that is asked of the kernel, as reading `/proc` of every process takes some ten times as long.
pub fn all(root: &Root, mut passed_over: impl FnMut(i32, Option<i32>) -> bool) -> Vec<RtThread> {
    let pids = root.names_in("/proc").into_iter();
    let pids = pids.filter_map(|name| name.parse::<i32>().ok());
    pids.flat_map(|pid| of_process(root, pid, &mut passed_over))
        .collect()
}

/// The kernel's own real-time threads, those of interrupts among them.
pub fn of_the_kernel(root: &Root) -> Vec<RtThread> {
    let pids = root.names_in("/proc").into_iter();
    pids.filter_map(|name| name.parse::<i32>().ok())
        .filter(|pid| {
            !root.is_live() || sched::get_class(*pid).is_ok_and(|class| class.is_real_time())
        })
        .filter_map(|pid| {
            let stat = root.read(format!("/proc/{pid}/stat")).ok()?;
            let is_kernels = Stat::parse(stat.as_str())?.is_kernels();
            is_kernels.then(|| thread(root, pid, pid, &stat))?
        })
        .collect()
}

fn of_process(
    root: &Root,
    pid: i32,
    passed_over: &mut impl FnMut(i32, Option<i32>) -> bool,
) -> Vec<RtThread> {
    if passed_over(pid, None) || (root.is_live() && !may_have(root, pid)) {
        return Vec::new();
    }
    let Ok(stat) = root.read(format!("/proc/{pid}/stat")) else {
        return Vec::new();
    };
    // Most processes have one thread, of which their own file says all.
    match process(&stat) {
        Some((parent, _)) if passed_over(pid, Some(parent)) => Vec::new(),
        Some((_, 1)) => thread(root, pid, pid, &stat).into_iter().collect(),
        Some(_) => (threads_in(root, pid).into_iter())
            .filter_map(|tid| {
                let stat = root.read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
                thread(root, pid, tid, &stat)
            })
            .collect(),
        None => Vec::new(),
    }
}

/// Whether a process of this machine has a real-time thread, the kernel's own threads included. One that has ended has none.
fn may_have(root: &Root, pid: i32) -> bool {
    let is = |tid: i32| sched::get_class(tid).is_ok_and(|class| class.is_real_time());
    if is(pid) {
        return true;
    }
    // The links of the directory count its threads (proc_task_getattr of `fs/proc/base.c`).
    let links = std::fs::metadata(root.path(format!("/proc/{pid}/task"))).map(|dir| dir.nlink());
    match links {
        Ok(3) | Err(_) => false,
        Ok(_) => threads_in(root, pid).into_iter().any(is),
    }
}

fn threads_in(root: &Root, pid: i32) -> Vec<i32> {
    let names = root.names_in(format!("/proc/{pid}/task")).into_iter();
    names.filter_map(|name| name.parse().ok()).collect()
}

/// A real-time thread, by its own `stat`; `None`: it has another class or has ended.
fn thread(root: &Root, pid: i32, tid: i32, stat: &str) -> Option<RtThread> {
    let (name, class, priority) = real_time(stat)?;
    let status = root.read(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let allowed = value(&status, "Cpus_allowed_list");
    Some(RtThread {
        pid,
        tid,
        name,
        class,
        priority,
        cpus: cpus::parse_list(allowed?).ok()?,
    })
}

/// The parent of a process and how many threads it has, by its own `stat`; `None`: it is one of the kernel's.
fn process(stat: &str) -> Option<(i32, u64)> {
    let stat = Stat::parse(stat).filter(|stat| !stat.is_kernels())?;
    Some((stat.parent()?, stat.field(20)?))
}

/// Name, class and priority of a real-time thread; `None`: it is another one.
fn real_time(stat: &str) -> Option<(String, String, Option<u8>)> {
    let stat = Stat::parse(stat)?;
    // One that waits to be reaped runs no more.
    if stat.has_ended() {
        return None;
    }
    let priority: u8 = stat.field(40)?;
    let (class, priority) = match stat.field::<u64>(41)? {
        1 => (format!("FIFO {priority}"), Some(priority)),
        2 => (format!("RR {priority}"), Some(priority)),
        6 => ("DEADLINE".to_owned(), None),
        _ => return None,
    };
    Some((stat.name().to_owned(), class, priority))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    /// `PF_KTHREAD`.
    const KERNEL_THREAD: u64 = 0x0020_0000;

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
        let expected = ("a) b".to_owned(), "FIFO 90".to_owned(), Some(90));
        assert_eq!(fifo, expected);
        assert_eq!(real_time(&stat("x", 0, 10, 2)).unwrap().1, "RR 10");
        let deadline = real_time(&stat("x", 0, 0, 6)).unwrap();
        assert_eq!((deadline.1.as_str(), deadline.2), ("DEADLINE", None));
        assert_eq!(real_time(&stat("x", 0, 0, 0)), None);
        assert_eq!(
            real_time(&stat("x", 0, 90, 1).replace(") S ", ") Z ")),
            None
        );
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
        assert_eq!(process(&with(3, 0)), Some((3, 3)));
        assert_eq!(process(&with(1, KERNEL_THREAD)), None);
        let tree = |threads: u64| {
            let status = "Name:\tx\nCpus_allowed_list:\t0-1\n";
            let mut tree = Tree::new().file("/proc/7/stat", &with(threads, 0));
            for tid in [7, 8] {
                let dir = format!("/proc/7/task/{tid}");
                tree = tree
                    .file(&format!("{dir}/stat"), &with(threads, 0))
                    .file(&format!("{dir}/status"), status);
            }
            let root = tree.root();
            assert_eq!(all(&root, |pid, _| pid == 7), []);
            assert_eq!(all(&root, |_, parent| parent == Some(3)), []);
            let found = all(&root, |pid, parent| pid == 3 || parent == Some(7));
            found.iter().map(|thread| thread.tid).collect::<Vec<i32>>()
        };
        assert_eq!(tree(1), [7]);
        assert_eq!(tree(2), [7, 8]);
    }

    #[test]
    fn the_kernels_own_threads_are_listed_apart() {
        let mut tree = Tree::new();
        for (pid, name, flags, policy) in [
            (7, "irq/24-nvme0q1", KERNEL_THREAD, 1),
            (8, "kworker/0:1", KERNEL_THREAD, 0),
            (9, "control", 0, 1),
        ] {
            let status = format!("Name:\t{name}\nCpus_allowed_list:\t1\n");
            tree = tree
                .file(&format!("/proc/{pid}/stat"), &stat(name, flags, 50, policy))
                .file(
                    &format!("/proc/{pid}/task/{pid}/stat"),
                    &stat(name, flags, 50, policy),
                )
                .file(&format!("/proc/{pid}/task/{pid}/status"), &status);
        }
        let root = tree.root();
        let names = |found: Vec<RtThread>| -> Vec<String> {
            found.into_iter().map(|thread| thread.name).collect()
        };
        assert_eq!(names(of_the_kernel(&root)), ["irq/24-nvme0q1"]);
        assert_eq!(names(all(&root, |_, _| false)), ["control"]);
    }

    #[test]
    fn the_kernel_and_its_files_name_the_same_threads() {
        use std::sync::mpsc::channel;
        let own = std::process::id().cast_signed();
        let ((tell, told), (end, ended)) = (channel(), channel::<()>());
        let thread = std::thread::spawn(move || {
            let class = sched::Class::Fifo { priority: 1 };
            let tid = crate::process::thread_id();
            tell.send(sched::set_class(tid, &class).map(|()| tid))
                .unwrap();
            let _ = ended.recv();
        });
        let may = told.recv().unwrap();
        let by = |root: Root| {
            let found = all(&root, |pid, _| pid != own);
            assert!(found.iter().all(|thread| !thread.cpus.is_empty()));
            found.iter().map(|thread| thread.tid).collect::<Vec<i32>>()
        };
        // The same files without system calls.
        let (asked, read) = (by(Root::live()), by(Root::at("/proc/..")));
        assert_eq!(asked, read);
        if let Ok(tid) = may {
            assert!(asked.contains(&tid), "{asked:?}");
        }
        drop(end);
        thread.join().unwrap();
    }
}
