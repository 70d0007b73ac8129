//! Why there are no real-time groups, or why one was refused.

/// Why there are no real-time groups here, or why one was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RtGroupError {
    /// The kernel or the mounts offer no such budgets.
    #[error("this machine has no real-time group budgets: {0}")]
    Absent(String),
    /// A name that is not a plain relative path of groups.
    #[error(
        "`{0}` is not a valid group name; use letters, digits, `-`, `_` and `.`, with `/` between groups"
    )]
    BadName(String),
    /// A runtime or period that no group can have.
    #[error(
        "a budget of {runtime_us} us every {period_us} us is not possible; the runtime must be 1 us or more and not above the period"
    )]
    BadBudget {
        /// Runtime asked for, in microseconds.
        runtime_us: u64,
        /// Period asked for, in microseconds.
        period_us: u64,
    },
    /// The group is there already.
    #[error("the group {0} exists already; remove it with `rmdir {0}` if nothing uses it")]
    Exists(String),
    /// An ancestor has too little runtime left.
    #[error(
        "{ancestor} refused a budget of {runtime_us} us every {period_us} us: it has {has_us} us every 1,000,000 us and {free_us} us of them are free"
    )]
    AncestorRefused {
        /// The directory of the ancestor that refused.
        ancestor: String,
        /// Runtime asked for, in microseconds.
        runtime_us: u64,
        /// Period asked for, in microseconds.
        period_us: u64,
        /// The ancestor's runtime, scaled to a period of 1 s, in microseconds.
        has_us: u64,
        /// The part that its groups leave free, scaled to a period of 1 s, in microseconds.
        free_us: u64,
    },
    /// The kernel refused although the files say that enough is free.
    #[error(
        "the kernel refused a budget of {runtime_us} us every {period_us} us for {group} ({reason}) although {free_us} us per 1,000,000 us look free; groups removed a moment ago may still count"
    )]
    Refused {
        /// The directory of the group.
        group: String,
        /// Runtime asked for, in microseconds.
        runtime_us: u64,
        /// Period asked for, in microseconds.
        period_us: u64,
        /// The runtime that looks free in the parent, scaled to a period of 1 s, in microseconds.
        free_us: u64,
        /// The kernel's reason.
        reason: String,
    },
    /// The group cannot be removed because processes are still in it.
    #[error("{group} still has processes ({pids}); end them before the group is removed")]
    TasksRemain {
        /// The directory of the group.
        group: String,
        /// Their process ids.
        pids: String,
    },
    /// A file of the group could not be read or written.
    #[error("{action} {path} failed: {reason}")]
    Io {
        /// The failed step.
        action: &'static str,
        /// The file or directory.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
}
