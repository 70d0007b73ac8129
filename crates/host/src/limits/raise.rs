//! This process's limits on open files and processes, raised as far as that needs no privilege: a supervisor of thousands of
//! cells has a descriptor for each, and unprivileged engines start several processes for each.

use rustix::process::{Rlimit, getrlimit, setrlimit};

use super::limit::Resource;

/// Raises the soft limits on open files (RLIMIT_NOFILE) and on processes of the user (RLIMIT_NPROC) to the hard ones, see
/// getrlimit(2); one that cannot be raised stays as it is. Returns how many files this process may have open from now on.
pub fn raise() -> u64 {
    Resource::Processes.raise();
    Resource::Files.raise()
}

impl Resource {
    /// The soft limit after it was raised.
    fn raise(self) -> u64 {
        let limit = getrlimit(self.number());
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        let _ = setrlimit(self.number(), raised);
        getrlimit(self.number()).current.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limits_become_the_hard_ones() {
        let files = raise();
        for resource in [Resource::Files, Resource::Processes] {
            let limit = getrlimit(resource.number());
            assert_eq!(limit.current, limit.maximum, "{resource:?}");
        }
        assert_eq!(Some(files), getrlimit(Resource::Files.number()).current);
        assert!(files > 0);
    }
}
