//! A cell's processes, as the host sees them.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use host::sched::{self, Class};

/// The most threads of a cell whose class is checked, the first that the kernel lists: each costs a call, and there are
/// other cells to check.
const MOST: usize = 64;

/// A cell's processes, as the host sees them.
#[derive(Debug, Clone)]
pub struct Inside {
    /// Its first process.
    pub pid: i32,
    /// Its groups, one in each hierarchy; they outlive its processes.
    pub groups: Vec<PathBuf>,
}

impl Inside {
    /// Ids of all its threads, of any process; those of its first process alone where no group tells.
    pub fn threads(&self) -> Vec<i32> {
        self.first_threads(usize::MAX)
    }

    /// The first `most` of them.
    fn first_threads(&self, most: usize) -> Vec<i32> {
        let listed = self.groups.iter().map(|group| listed(group, most));
        match listed.into_iter().find(|threads| !threads.is_empty()) {
            // 0 stands for a thread of another pid namespace.
            Some(threads) => threads.into_iter().filter(|thread| *thread > 0).collect(),
            None => (host::process::threads(self.pid).into_iter())
                .take(most)
                .collect(),
        }
    }

    /// Its first 64 threads with their classes.
    pub fn classes(&self) -> Vec<(i32, Class)> {
        let threads = self.first_threads(MOST).into_iter();
        let with_class = |tid: i32| Some((tid, sched::get_class(tid).ok()?));
        threads.filter_map(with_class).collect()
    }
}

/// Which of these threads are of SCHED_DEADLINE, as clauses: at most one. `why` says why that matters to the enforcer of the others.
pub(super) fn of_deadline(threads: &[(i32, Class)], why: &str) -> Vec<String> {
    let is = |(_, class): &&(i32, Class)| matches!(class, Class::Deadline { .. });
    let found: Vec<i32> = threads.iter().filter(is).map(|(tid, _)| *tid).collect();
    let what = match found.as_slice() {
        [] => return Vec::new(),
        [one] => format!("its thread {one} is"),
        [first, ..] => format!("{} of its threads ({first} the first) are", found.len()),
    };
    vec![format!("{what} of SCHED_DEADLINE, {why}")]
}

/// The threads of a group and of those below it, where podman puts a container and where those of enclosed cells are.
/// Version 1 and version 2 name the file differently; any one hierarchy has all of them. At most `most`.
fn listed(group: &Path, most: usize) -> Vec<i32> {
    let mut threads = Vec::new();
    let open = |file: &&str| File::open(group.join(file)).ok();
    if let Some(file) = ["tasks", "cgroup.threads"].iter().find_map(open) {
        // A group that cannot be read, or goes meanwhile, has no more.
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        threads.extend(lines.filter_map(|line| line.parse::<i32>().ok()).take(most));
    }
    for below in host::cgroup::below(group) {
        // podman puts its monitor of the container beside it, which is no thread of the cell.
        if !below.ends_with("conmon") {
            threads.extend(listed(&below, most - threads.len()));
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn threads_come_from_any_group_that_tells_and_else_from_proc() {
        let dir = tempfile::tempdir().unwrap();
        let inside = |groups: &[&str]| Inside {
            pid: std::process::id().cast_signed(),
            groups: groups.iter().map(|name| dir.path().join(name)).collect(),
        };
        for (group, file) in [("one", "tasks"), ("two", "cgroup.threads")] {
            fs::create_dir(dir.path().join(group)).unwrap();
            fs::write(dir.path().join(group).join(file), "12\n0\n14\n").unwrap();
            assert_eq!(inside(&["nowhere", group]).threads(), [12, 14]);
        }
        let below = dir.path().join("outer/cell");
        fs::create_dir_all(&below).unwrap();
        fs::write(dir.path().join("outer/cgroup.threads"), "").unwrap();
        fs::write(below.join("cgroup.threads"), "15\n16\n").unwrap();
        let monitor = dir.path().join("outer/conmon");
        fs::create_dir(&monitor).unwrap();
        fs::write(monitor.join("cgroup.threads"), "17\n").unwrap();
        assert_eq!(inside(&["outer"]).threads(), [15, 16]);
        fs::write(dir.path().join("outer/cgroup.threads"), "13\n").unwrap();
        for (most, threads) in [(0, vec![]), (1, vec![13]), (2, vec![13, 15])] {
            assert_eq!(listed(&dir.path().join("outer"), most), threads);
        }
        let own = inside(&[]).threads();
        assert!(own.contains(&std::process::id().cast_signed()), "{own:?}");
    }

    #[test]
    fn threads_of_sched_deadline_are_found() {
        let (_asker, tid) = sched::bandwidth::Asker::new(|| {
            let ns = 100_000_000;
            let class = Class::Deadline {
                runtime_ns: 100_000,
                deadline_ns: ns,
                period_ns: ns,
            };
            let given = sched::set_class(0, &class).is_ok();
            given.then(host::process::thread_id)
        })
        .unwrap();
        let inside = Inside {
            pid: std::process::id().cast_signed(),
            groups: Vec::new(),
        };
        match tid {
            Some(tid) => {
                let told = of_deadline(&inside.classes(), "which nothing holds");
                let own = format!("its thread {tid} is of SCHED_DEADLINE, which nothing holds");
                // Those of other tests are there as well at times.
                let is_told = told == [own] || told[0].contains(" of its threads (");
                assert!(is_told, "{told:?}");
            }
            None => eprintln!("not tested: there is no SCHED_DEADLINE here"),
        }
    }
}
