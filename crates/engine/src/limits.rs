//! The resource limits of a cell, as far as this process may grant them.

use model::Size;

use crate::Rights;
use crate::app::{Grants, Scheduling};

/// One limit, soft and hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The OCI name, such as `RLIMIT_NOFILE`.
    pub(crate) name: &'static str,
    pub(crate) value: u64,
}

/// Descriptors of a cell.
const NOFILE: u64 = 1024;

/// The limits of a cell that runs words of ours.
pub(crate) fn of(rights: &Rights) -> Vec<Limit> {
    let wanted = Wanted {
        nofile: NOFILE,
        rtprio: rights.rtprio.into(),
        memlock_bytes: rights.memlock_bytes,
    };
    wanted.within_reach()
}

/// The limits of a cell that runs an application.
pub(crate) fn of_app(grants: &Grants) -> Vec<Limit> {
    let mut limits = Wanted::of(grants).within_reach();
    // Niceness below 0 would be another way to more than the granted share. A core of at most 1 byte is not even handed to
    // the machine's crash handler, which one of 0 bytes would be.
    limits.extend(
        [("RLIMIT_NICE", 0), ("RLIMIT_CORE", 1)].map(|(name, value)| Limit { name, value }),
    );
    let of_the_user = [
        (
            "RLIMIT_SIGPENDING",
            libc::RLIMIT_SIGPENDING,
            Some(grants.pending_signals),
        ),
        (
            "RLIMIT_MSGQUEUE",
            libc::RLIMIT_MSGQUEUE,
            Some(grants.message_queue_bytes),
        ),
        ("RLIMIT_NPROC", libc::RLIMIT_NPROC, grants.processes),
    ];
    // The hard limit of this process, above which it may grant nothing for certain. The type of its name is another one in
    // every C library.
    let own_hard = |which| {
        let mut both = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: a structure on the stack.
        match unsafe { libc::getrlimit(which, &raw mut both) } {
            0 => both.rlim_max,
            _ => 0,
        }
    };
    limits.extend(of_the_user.into_iter().filter_map(|(name, which, value)| {
        Some(Limit {
            name,
            value: value?.min(own_hard(which)),
        })
    }));
    limits
}

/// The granted limits that cannot be given, each with the most that can. Not those that bound nothing: a cell with CAP_IPC_LOCK locks any
/// amount, and one whose calls for classes are answered gets its grants.
pub(crate) fn short_of(grants: &Grants) -> Vec<(Limit, u64)> {
    let wanted = Wanted::of(grants);
    let given = wanted.within_reach();
    let wanted = [wanted.nofile, wanted.rtprio, wanted.memlock_bytes];
    let is_moot = |name: &str| match name {
        "RLIMIT_MEMLOCK" => grants
            .capabilities
            .iter()
            .any(|name| name == "CAP_IPC_LOCK"),
        "RLIMIT_RTPRIO" => matches!(grants.scheduling, Scheduling::Granted(_)),
        _ => false,
    };
    (given.into_iter().zip(wanted))
        .filter(|(given, wanted)| given.value < *wanted && !is_moot(given.name))
        .collect()
}

/// The limits of cpu time and memory as words for a container manager.
pub(crate) fn words(limits: &Size) -> Vec<String> {
    let cpus = (limits.vcpus).map(|vcpus| ["--cpus".to_owned(), vcpus.to_string()]);
    let memory = (limits.memory_bytes).map(|bytes| ["--memory".to_owned(), bytes.to_string()]);
    cpus.into_iter().chain(memory).flatten().collect()
}

/// Whether this process may grant a cell so much locked memory, bytes.
pub fn may_lock(bytes: u64) -> bool {
    let wanted = Wanted {
        nofile: NOFILE,
        rtprio: 0,
        memlock_bytes: bytes,
    };
    (wanted.within_reach().iter())
        .any(|limit| limit.name == "RLIMIT_MEMLOCK" && limit.value == bytes)
}

struct Wanted {
    nofile: u64,
    rtprio: u64,
    memlock_bytes: u64,
}

impl Wanted {
    fn of(grants: &Grants) -> Wanted {
        Wanted {
            nofile: grants.open_files,
            rtprio: grants.priority().into(),
            memlock_bytes: grants.memlock_bytes.unwrap_or(u64::MAX),
        }
    }

    /// The limits that can be set. Raising a hard limit needs CAP_SYS_RESOURCE, which even root may lack.
    fn within_reach(&self) -> Vec<Limit> {
        let own = host::caps::limits().ok();
        let free = host::caps::effective().is_ok_and(|caps| caps.has("CAP_SYS_RESOURCE"))
            && !host::caps::in_user_namespace();
        let bound = |hard: Option<Option<u64>>| match hard {
            _ if free => u64::MAX,
            Some(Some(hard)) => hard,
            Some(None) => u64::MAX,
            None => 0,
        };
        let wanted = [
            (
                "RLIMIT_NOFILE",
                self.nofile,
                bound(own.map(|own| own.nofile.hard)),
            ),
            (
                "RLIMIT_RTPRIO",
                self.rtprio,
                bound(own.map(|own| own.rtprio.hard)),
            ),
            (
                "RLIMIT_MEMLOCK",
                self.memlock_bytes,
                bound(own.map(|own| own.memlock_bytes.hard)),
            ),
        ];
        wanted
            .into_iter()
            .map(|(name, value, bound)| Limit {
                name,
                value: value.min(bound),
            })
            .collect()
    }
}

/// The most processes and threads that may be granted, where the own limit is known.
pub(crate) fn processes() -> Option<u64> {
    const ENOUGH: u64 = 32_768;
    let hard = host::caps::limits().ok()?.nproc.hard;
    Some(hard.unwrap_or(ENOUGH).min(ENOUGH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_unasked() {
        let limits = of(&Rights::default());
        assert_eq!(limits.len(), 3);
        for limit in &limits[1..] {
            assert_eq!(limit.value, 0, "{}", limit.name);
        }
    }

    #[test]
    fn what_belongs_to_the_user_is_limited_too() {
        let value = |grants: &Grants, name: &str| {
            let all = of_app(grants);
            all.iter()
                .find(|limit| limit.name == name)
                .map(|limit| limit.value)
        };
        let mut grants = Grants {
            pending_signals: 7,
            message_queue_bytes: 0,
            ..Grants::default()
        };
        assert_eq!(value(&grants, "RLIMIT_SIGPENDING"), Some(7));
        assert_eq!(value(&grants, "RLIMIT_MSGQUEUE"), Some(0));
        assert_eq!(value(&grants, "RLIMIT_NPROC"), None);
        grants.processes = Some(3);
        assert_eq!(value(&grants, "RLIMIT_NPROC"), Some(3));
    }
}
