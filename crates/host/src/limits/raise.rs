//! This process's own limits on open files and processes, raised as far as that takes no privilege: whoever looks after
//! thousands of cells has a descriptor for each, and unprivileged engines start several processes for each.

use super::Resource;

/// Raises the soft limits on open files (RLIMIT_NOFILE) and on processes of the user (RLIMIT_NPROC) to the hard ones, see
/// getrlimit(2); one that cannot be raised stays as it is. Returns how many files this process may have open from now on;
/// 0 where the kernel does not tell.
pub fn raise() -> u64 {
    Resource::Processes.raise();
    Resource::Files.raise().unwrap_or(0)
}

impl Resource {
    /// Soft and hard limit of this process.
    pub(super) fn limit(self) -> Option<libc::rlimit> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        let number = match self {
            Resource::Files => libc::RLIMIT_NOFILE,
            Resource::Processes => libc::RLIMIT_NPROC,
        };
        // SAFETY: plain data that the call fills in.
        let answer = unsafe { libc::getrlimit(number, &raw mut limit) };
        (answer == 0).then_some(limit)
    }

    /// The soft limit after it was raised.
    fn raise(self) -> Option<u64> {
        let limit = self.limit()?;
        let number = match self {
            Resource::Files => libc::RLIMIT_NOFILE,
            Resource::Processes => libc::RLIMIT_NPROC,
        };
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        // SAFETY: plain data that the call reads.
        match unsafe { libc::setrlimit(number, &raw const raised) } {
            0 => Some(raised.rlim_cur),
            _ => Some(limit.rlim_cur),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limits_become_the_hard_ones() {
        let files = raise();
        for resource in [Resource::Files, Resource::Processes] {
            let limit = resource.limit().unwrap();
            assert_eq!(limit.rlim_cur, limit.rlim_max, "{resource:?}");
        }
        assert_eq!(files, Resource::Files.limit().unwrap().rlim_cur);
        assert!(files > 0);
    }
}
