//! One limit, and the two places that hold most of them: a file, and the limits of this process.

use rustix::process::{self, getrlimit};

use crate::root::Root;

/// The counted resource.
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
    /// The counted resource.
    pub kind: Kind,
    /// In words, such as `processes and threads of the machine`.
    pub what: String,
    /// Where it is set, such as `/proc/sys/kernel/pid_max` or `RLIMIT_NOFILE`.
    pub name: String,
    /// Current use, in the limit's unit; `None` where it cannot be told.
    pub used: Option<u64>,
    /// The limit.
    pub most: u64,
    /// Unit, such as ` MiB`; empty for plain numbers.
    pub unit: &'static str,
    /// How to raise it, one sentence.
    pub fix: String,
}

impl Limit {
    /// Share of the limit that is in use; 0 where it cannot be told.
    pub fn share(&self) -> f64 {
        self.used
            .map_or(0.0, |used| used as f64 / self.most.max(1) as f64)
    }

    /// Such as `32,760 of 32,768`.
    pub fn value(&self) -> String {
        let (most, unit) = (model::grouped(self.most), self.unit);
        match self.used {
            Some(used) => format!("{} of {most}{unit}", model::grouped(used)),
            None => format!("at most {most}{unit}"),
        }
    }
}

/// A number in a file, as a limit of `kind`; `None` where there is no such file or it sets no limit.
pub(super) fn of_file(
    root: &Root,
    kind: Kind,
    what: &str,
    path: &str,
    used: Option<u64>,
) -> Option<Limit> {
    let most: u64 = root.read_number(path).ok()?;
    let key = path.strip_prefix("/proc/sys/")?.replace('/', ".");
    Some(Limit {
        kind,
        what: what.to_owned(),
        name: path.to_owned(),
        used,
        most,
        unit: "",
        fix: format!("raise it: sysctl -w {key}={}", most.saturating_mul(2)),
    })
}

/// A soft limit of this process.
pub(super) fn of_process(
    kind: Kind,
    what: &str,
    resource: Resource,
    used: Option<u64>,
) -> Option<Limit> {
    let (name, flag) = match resource {
        Resource::Files => ("RLIMIT_NOFILE", "n"),
        Resource::Processes => ("RLIMIT_NPROC", "u"),
    };
    let most = getrlimit(resource.number()).current?;
    Some(Limit {
        kind,
        what: what.to_owned(),
        name: name.to_owned(),
        used,
        most,
        unit: "",
        fix: format!(
            "raise it in the shell that starts timecell: ulimit -H{flag} and ulimit -S{flag}, or limits.conf(5)"
        ),
    })
}

/// Limits of this process that matter here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Resource {
    Files,
    Processes,
}

impl Resource {
    /// The kernel's name for it.
    pub(super) fn number(self) -> process::Resource {
        match self {
            Resource::Files => process::Resource::Nofile,
            Resource::Processes => process::Resource::Nproc,
        }
    }
}

/// Pids of all processes.
pub(super) fn pids(root: &Root) -> impl Iterator<Item = String> {
    (root.names_in("/proc").into_iter())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}
