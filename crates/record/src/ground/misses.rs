//! Deadlines that were missed.

use serde::{Deserialize, Serialize};

/// Deadlines of one cell over some trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// Planned jobs.
    pub jobs: u64,
    /// Jobs that ended after their deadlines.
    pub late: u64,
    /// Activations that never ran because an earlier job was late until their own periods were over.
    pub skipped: u64,
    /// Trials.
    pub trials: u64,
    /// Trials in which at least one deadline was missed.
    pub trials_with: u64,
    /// Tasks, counted per trial, whose mean cpu time per job, as billed by the kernel, exceeds the declared wcet: their
    /// misses are due to themselves, or to the host.
    pub over_declared: u64,
    /// Jobs that took more cpu time than they declared, if they check it themselves.
    #[serde(default)]
    pub jobs_over: u64,
    /// The largest lateness (response time minus deadline) of a job that ran, ns; negative: all were early. `None`: none
    /// ran.
    pub worst_lateness_ns: Option<i64>,
}

impl Misses {
    /// Deadlines missed: late jobs and those that never ran.
    pub fn missed(&self) -> u64 {
        self.late + self.skipped
    }

    /// Sums up tasks that ran in the same trials, counting trials once.
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

    /// Adds the misses of other trials.
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
