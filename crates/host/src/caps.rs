//! Rights of the calling process: effective capabilities and resource limits.

use crate::process::value;
use crate::root::{Root, Unreadable};
use serde::{Deserialize, Serialize};

/// Capability names in the order of their numbers, from 0.
const NAMES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// A set of effective capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    bits: u64,
}

impl Capabilities {
    /// Whether the capability of this name (such as `CAP_SYS_NICE`) is in the set.
    pub fn has(&self, name: &str) -> bool {
        NAMES
            .iter()
            .position(|known| *known == name)
            .is_some_and(|bit| self.bits & (1 << bit) != 0)
    }

    /// The names in the set, in kernel order; a bit without a known name is `CAP_<number>`.
    pub fn names(&self) -> Vec<String> {
        (0..64)
            .filter(|bit| self.bits & (1 << bit) != 0)
            .map(|bit| match NAMES.get(bit) {
                Some(name) => (*name).to_owned(),
                None => format!("CAP_{bit}"),
            })
            .collect()
    }
}

/// The effective capabilities of the calling process. In a user namespace they count only inside it
/// (see [`in_user_namespace`]).
///
/// # Errors
/// If `/proc/self/status` cannot be read or has no `CapEff` line.
pub fn effective() -> Result<Capabilities, Unreadable> {
    effective_at(&Root::live())
}

/// [`effective`] under another root.
pub fn effective_at(root: &Root) -> Result<Capabilities, Unreadable> {
    let path = "/proc/self/status";
    value(&root.read(path)?, "CapEff")
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        .map(|bits| Capabilities { bits })
        .ok_or_else(|| Unreadable {
            path: path.to_owned(),
            reason: "it has no CapEff line".to_owned(),
        })
}

/// Whether the calling process lives in a user namespace that is not the machine's own, as in a
/// rootless container: there CAP_SYS_NICE and CAP_SYS_ADMIN do not reach the scheduler.
pub fn in_user_namespace() -> bool {
    in_user_namespace_at(&Root::live())
}

/// [`in_user_namespace`] under another root.
pub fn in_user_namespace_at(root: &Root) -> bool {
    root.read("/proc/self/uid_map").is_ok_and(|map| {
        let fields: Vec<&str> = map.split_whitespace().collect();
        fields != ["0", "0", "4294967295"]
    })
}

/// The real user id of the calling process, from `/proc/self/status`.
pub fn own_uid(root: &Root) -> Option<u32> {
    let status = root.read("/proc/self/status").ok()?;
    let ids = value(&status, "Uid")?;
    ids.split_whitespace().next()?.parse().ok()
}

/// One resource limit. `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit in force.
    pub soft: Option<u64>,
    /// How far the process may raise the soft limit by itself.
    pub hard: Option<u64>,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.show(model::grouped))
    }
}

impl Limit {
    /// Both values, each as `number` prints it.
    pub(crate) fn show(self, number: fn(u64) -> String) -> String {
        let show = |value: Option<u64>| value.map_or("unlimited".to_owned(), number);
        match self.soft == self.hard {
            true => show(self.soft),
            false => format!("{} (hard {})", show(self.soft), show(self.hard)),
        }
    }
}

/// The resource limits that matter to real-time work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The highest real-time priority without CAP_SYS_NICE, 0..99.
    pub rtprio: Limit,
    /// How much memory may be locked without CAP_IPC_LOCK, in bytes.
    pub memlock_bytes: Limit,
    /// How many file descriptors a process may have open.
    pub nofile: Limit,
    /// How many processes and threads the user may have.
    pub nproc: Limit,
}

/// The limits of the calling process.
///
/// # Errors
/// If `/proc/self/limits` cannot be read or lacks one of them.
pub fn limits() -> Result<Limits, Unreadable> {
    limits_at(&Root::live(), 0)
}

/// [`limits`] under another root, of the process `pid` (0: the calling one).
pub fn limits_at(root: &Root, pid: i32) -> Result<Limits, Unreadable> {
    let path = proc_path(pid, "limits");
    let text = root.read(&path)?;
    let find = |name: &str| -> Result<Limit, Unreadable> {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| {
                let mut fields = rest.split_whitespace().map(|field| match field {
                    "unlimited" => Some(None),
                    number => number.parse::<u64>().ok().map(Some),
                });
                Some(Limit {
                    soft: fields.next()??,
                    hard: fields.next()??,
                })
            })
            .ok_or_else(|| Unreadable {
                path: path.clone(),
                reason: format!("it has no line `{name}`"),
            })
    };
    Ok(Limits {
        rtprio: find("Max realtime priority")?,
        memlock_bytes: find("Max locked memory")?,
        nofile: find("Max open files")?,
        nproc: find("Max processes")?,
    })
}

/// `/proc/<pid>/<file>`, with `self` for 0.
pub(crate) fn proc_path(pid: i32, file: &str) -> String {
    match pid {
        0 => format!("/proc/self/{file}"),
        pid => format!("/proc/{pid}/{file}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn capabilities_have_names() {
        let tree = Tree::new().file("/proc/self/status", "Name:\tx\nCapEff:\t0000020000800001\n");
        let caps = effective_at(&tree.root()).unwrap();
        assert!(caps.has("CAP_SYS_NICE"));
        assert!(!caps.has("CAP_SYS_ADMIN"));
        assert!(!caps.has("CAP_NONSENSE"));
        assert_eq!(caps.names(), ["CAP_CHOWN", "CAP_SYS_NICE", "CAP_41"]);
    }

    #[test]
    fn limits_are_read_with_unlimited_as_none() {
        let tree = Tree::new().file(
            "/proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max processes             unlimited            unlimited            processes \n\
             Max open files            1024                 20000                files     \n\
             Max locked memory         8388608              8388608              bytes     \n\
             Max realtime priority     0                    0                    \n",
        );
        let limits = limits_at(&tree.root(), 0).unwrap();
        assert_eq!(limits.nproc.soft, None);
        assert_eq!(limits.nofile.to_string(), "1,024 (hard 20,000)");
        assert_eq!(limits.memlock_bytes.soft, Some(8_388_608));
        assert_eq!(limits.rtprio.hard, Some(0));
    }

    #[test]
    fn a_missing_line_is_an_error() {
        let tree = Tree::new().file("/proc/self/limits", "Max processes 1 1\n");
        assert!(limits_at(&tree.root(), 0).is_err());
        assert!(effective_at(&tree.root()).is_err());
    }

    #[test]
    fn a_user_namespace_shows_in_its_map() {
        let own = Tree::new().file("/proc/self/uid_map", "0 0 4294967295\n");
        let rootless = Tree::new().file("/proc/self/uid_map", "0 1000 1\n1 100000 65536\n");
        assert!(!in_user_namespace_at(&own.root()));
        assert!(in_user_namespace_at(&rootless.root()));
    }

    #[test]
    fn the_calling_process_has_both() {
        assert!(effective().is_ok());
        assert!(limits().is_ok());
    }
}
