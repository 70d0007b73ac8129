//! This process's own soft limits on open files and processes, raised as far as it may without privilege: every cell
//! is watched by a descriptor, and unprivileged engines start several processes for each.

/// Raises them to the hard limits; where that is refused, they stay.
pub(super) fn raise() {
    for resource in [libc::RLIMIT_NOFILE, libc::RLIMIT_NPROC] {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: plain data that the first call fills in and the second reads.
        unsafe {
            if libc::getrlimit(resource, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(resource, &raw const limit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        super::raise();
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 1,
        };
        // SAFETY: plain data that the call fills in.
        let answer = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        assert_eq!(answer, 0);
        assert_eq!(limit.rlim_cur, limit.rlim_max);
    }
}
