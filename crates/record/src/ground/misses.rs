//! Deadlines that were missed.

use serde::{Deserialize, Serialize};

/// Deadlines of one cell over some trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// Jobs that were asked for.
    pub jobs: u64,
    /// Jobs that ended after their deadlines.
    pub late: u64,
    /// Activations that never ran: an earlier job was so late that their own periods were over.
    pub skipped: u64,
    /// Trials.
    pub trials: u64,
    /// Trials in which at least one deadline was missed.
    pub trials_with: u64,
    /// Tasks, trial by trial, whose jobs took more cpu time in the mean than they declared, as the kernel bills it: what they
    /// miss is their own doing, or the host's.
    pub over_declared: u64,
    /// Jobs that took more cpu time than they declared, where they look at it themselves.
    #[serde(default)]
    pub jobs_over: u64,
    /// The largest lateness (response time less deadline) of a job that ran, ns; negative: all were early. `None`: none ran.
    pub worst_lateness_ns: Option<i64>,
}

impl Misses {
    /// Deadlines missed: late jobs and those that never ran.
    pub fn missed(&self) -> u64 {
        self.late + self.skipped
    }

    /// Of tasks that ran in the same trials: all of them, with trials counted once.
    #[must_use]
    pub fn together(tasks: &[Misses]) -> Misses {
        let sum = tasks.iter().copied().fold(Misses::default(), Misses::and);
        let most = |of: fn(&Misses) -> u64| tasks.iter().map(of).max().unwrap_or(0);
        Misses {
            trials: most(|task| task.trials),
            trials_with: most(|task| task.trials_with),
            ..sum
        }
    }

    /// Adds another account.
    #[must_use]
    pub fn and(self, other: Misses) -> Misses {
        Misses {
            jobs: self.jobs + other.jobs,
            late: self.late + other.late,
            skipped: self.skipped + other.skipped,
            trials: self.trials + other.trials,
            trials_with: self.trials_with + other.trials_with,
            over_declared: self.over_declared + other.over_declared,
            jobs_over: self.jobs_over + other.jobs_over,
            worst_lateness_ns: self.worst_lateness_ns.max(other.worst_lateness_ns),
        }
    }
}
