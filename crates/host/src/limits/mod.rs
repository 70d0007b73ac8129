//! The limits of a machine that many processes run into: what each is, how much of it is in use now, and how it is
//! raised. One file for each kind of thing that is counted. Nothing is judged here.

mod cgroups;
mod files;
mod keys;
mod memory;
mod namespaces;
mod processes;
mod raise;

pub use raise::raise;

use crate::root::Root;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Processes and threads.
    Processes,
    /// Open files.
    Files,
    /// inotify instances and watches.
    Inotify,
    /// Keys and keyrings of the kernel.
    Keys,
    /// Namespaces.
    Namespaces,
    /// Memory.
    Memory,
    /// Space in shared memory.
    SharedMemory,
    /// Control groups.
    Cgroups,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What is counted.
    pub kind: Kind,
    /// In words, such as `processes and threads of the machine`.
    pub what: String,
    /// Where it is set, such as `/proc/sys/kernel/pid_max` or `RLIMIT_NOFILE`.
    pub name: String,
    /// Current use, in the limit's unit; `None` where it cannot be told.
    pub used: Option<u64>,
    /// The limit.
    pub most: u64,
    /// Unit, such as ` MB`; empty for plain numbers.
    pub unit: &'static str,
    /// How to raise it, one sentence.
    pub mend: String,
}

impl Limit {
    /// Share of the limit that is in use; 0 where it cannot be told.
    pub fn share(&self) -> f64 {
        self.used
            .map_or(0.0, |used| used as f64 / self.most.max(1) as f64)
    }

    /// Such as `32760 of 32768`.
    pub fn value(&self) -> String {
        let unit = self.unit;
        match self.used {
            Some(used) => format!("{used} of {}{unit}", self.most),
            None => format!("at most {}{unit}", self.most),
        }
    }
}

/// Every limit that can be read, as it stands now for the user `uid`.
///
/// Looks at every process of the machine: takes milliseconds for each thousand.
pub fn all(root: &Root, uid: u32) -> Vec<Limit> {
    let mut found = processes::limits(root, uid);
    found.extend(files::limits(root, uid));
    found.extend(keys::limits(root, uid));
    found.extend(namespaces::limits(root));
    found.extend(memory::limits(root));
    found.extend(cgroups::limits(root));
    found
}

/// The limits that everybody on the machine shares, and that are read within microseconds: process ids, threads, memory.
pub fn shared(root: &Root) -> Vec<Limit> {
    let mut found = processes::of_machine(root);
    found.extend(memory::machine(root));
    found
}

/// Of memory, shared memory and control groups; looks at no process.
pub(crate) fn of_room(root: &Root) -> Vec<Limit> {
    let mut found = memory::limits(root);
    let of_groups = cgroups::limits(root).into_iter();
    found.extend(of_groups.filter(|limit| limit.kind != Kind::Processes));
    found
}

/// A number in a file, as a limit of `kind`; `None` where there is no such file or it sets no limit.
fn of_file(root: &Root, kind: Kind, what: &str, path: &str, used: Option<u64>) -> Option<Limit> {
    let most: u64 = root.read_number(path).ok()?;
    let key = path.strip_prefix("/proc/sys/")?.replace('/', ".");
    Some(Limit {
        kind,
        what: what.to_owned(),
        name: path.to_owned(),
        used,
        most,
        unit: "",
        mend: format!("raise it: sysctl -w {key}={}", most.saturating_mul(2)),
    })
}

/// A soft limit of this process.
fn of_process(kind: Kind, what: &str, resource: Resource, used: Option<u64>) -> Option<Limit> {
    let (name, flag) = match resource {
        Resource::Files => ("RLIMIT_NOFILE", "n"),
        Resource::Processes => ("RLIMIT_NPROC", "u"),
    };
    let most = resource.limit()?.rlim_cur;
    (most != libc::RLIM_INFINITY).then(|| Limit {
        kind,
        what: what.to_owned(),
        name: name.to_owned(),
        used,
        most,
        unit: "",
        mend: format!("raise it in the shell that starts timecell: ulimit -H{flag} and ulimit -S{flag}, or limits.conf(5)"),
    })
}

/// Limits of this process that matter here.
#[derive(Debug, Clone, Copy)]
enum Resource {
    Files,
    Processes,
}

/// Pids of all processes.
fn pids(root: &Root) -> impl Iterator<Item = String> {
    (root.names_in("/proc").into_iter())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_limits_and_none_is_exceeded() {
        // SAFETY: no arguments, cannot fail.
        let uid = unsafe { libc::geteuid() };
        let limits = all(&Root::live(), uid);
        for kind in [Kind::Processes, Kind::Files, Kind::Memory] {
            assert!(
                limits.iter().any(|l| l.kind == kind),
                "{kind:?}: {limits:?}"
            );
        }
        for limit in &limits {
            assert!(limit.most > 0, "{limit:?}");
            assert!(!limit.mend.is_empty() && !limit.what.is_empty());
        }
    }

    #[test]
    fn use_is_told_against_the_limit() {
        let mut limit = Limit {
            kind: Kind::Memory,
            what: "memory".to_owned(),
            name: "x".to_owned(),
            used: Some(3),
            most: 4,
            unit: " MB",
            mend: String::new(),
        };
        assert_eq!((limit.share(), limit.value().as_str()), (0.75, "3 of 4 MB"));
        limit.used = None;
        assert_eq!(
            (limit.share(), limit.value().as_str()),
            (0.0, "at most 4 MB")
        );
    }
}
