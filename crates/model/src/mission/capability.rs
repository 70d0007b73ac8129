//! Linux capabilities: their names, and which of them no cell gets.

/// The capabilities of Linux 5.9 and later, capabilities(7), without their prefix `CAP_`.
const NAMES: [&str; 41] = [
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "SYSLOG",
    "WAKE_ALARM",
];

/// Those with which a cell could escape, and how.
const BREAKS_THE_CAGE: [(&str, &str); 12] = [
    ("BPF", "load programs into the kernel"),
    ("DAC_READ_SEARCH", "open files outside its root"),
    ("MAC_ADMIN", "change the machine's security policy"),
    ("MAC_OVERRIDE", "bypass the machine's security policy"),
    ("MKNOD", "create devices that it was not given"),
    ("PERFMON", "observe and slow down the whole machine"),
    ("SYS_ADMIN", "mount file systems and leave its namespaces"),
    ("SYS_BOOT", "restart the machine"),
    ("SYS_MODULE", "load modules into the kernel"),
    ("SYS_NICE", "raise its own class and priority"),
    ("SYS_RAWIO", "write to memory and I/O ports"),
    ("SYS_RESOURCE", "raise its own limits"),
];

/// Every capability that a cell may have, as the kernel's headers name it.
pub(super) fn allowed() -> impl Iterator<Item = String> {
    NAMES
        .iter()
        .filter(|name| escape(name).is_none())
        .map(|name| format!("CAP_{name}"))
}

/// Whether the kernel has a capability of this full name.
pub(super) fn is_known(full: &str) -> bool {
    full.strip_prefix("CAP_")
        .is_some_and(|name| NAMES.contains(&name))
}

/// How a cell could escape with this capability, written with or without `CAP_`.
pub(super) fn escape(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("CAP_").unwrap_or(name);
    BREAKS_THE_CAGE
        .iter()
        .find(|(each, _)| *each == name)
        .map(|(_, escape)| *escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_the_cage_is_known_and_not_allowed() {
        for (name, _) in BREAKS_THE_CAGE {
            assert!(is_known(&format!("CAP_{name}")), "{name}");
        }
        assert_eq!(allowed().count(), NAMES.len() - BREAKS_THE_CAGE.len());
        assert!(!is_known("NET_RAW") && is_known("CAP_NET_RAW"));
    }
}
