//! The resource limits of a cell, kept inside what this process may grant.

use crate::Rights;

/// One limit, soft and hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The OCI name, such as `RLIMIT_NOFILE`.
    pub(crate) name: &'static str,
    pub(crate) value: u64,
}

/// Descriptors of a cell.
const NOFILE: u64 = 1024;

/// The limits to set. Raising a hard limit needs CAP_SYS_RESOURCE, which even root may lack.
pub(crate) fn of(rights: &Rights) -> Vec<Limit> {
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
            NOFILE,
            bound(own.map(|own| own.nofile.hard)),
        ),
        (
            "RLIMIT_RTPRIO",
            rights.rtprio.into(),
            bound(own.map(|own| own.rtprio.hard)),
        ),
        (
            "RLIMIT_MEMLOCK",
            rights.memlock_bytes,
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
}
