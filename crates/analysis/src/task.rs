//! A sporadic task.

use serde::{Deserialize, Serialize};

use crate::{MAX_NS, Ns};

/// A sporadic task (Mok 1983; Liu and Layland, JACM 1973, where arrivals are periodic): jobs of at most `wcet`, at least `period` apart, each due `deadline` after its arrival, released
/// up to `jitter` after its arrival.
///
/// All times in ns, 1 (jitter and blocking: 0) to [`MAX_NS`]. `wcet > period` and `deadline > period` are legal:
/// whether an analysis takes such tasks, it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Worst-case execution time C.
    pub wcet: Ns,
    /// Least time T between arrivals.
    pub period: Ns,
    /// Relative deadline D, counted from the arrival.
    pub deadline: Ns,
    /// Release jitter J: a job is released at most this long after its arrival.
    pub jitter: Ns,
    /// Blocking B: the longest time for which lower-priority work (a non-preemptive section, a lock, a measured
    /// wake-up latency) can delay a job of this task.
    pub blocking: Ns,
}

/// Why the parameters of a task are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A time that must be positive is 0.
    #[error("the {0} is 0; it must be at least 1 ns")]
    Zero(&'static str),
    /// A time is larger than [`MAX_NS`].
    #[error("the {0} of {1} ns is too long; the longest time is {MAX_NS} ns (36 years)")]
    TooLong(&'static str, Ns),
    /// A job cannot finish before its deadline even alone.
    #[error("the wcet of {wcet} ns exceeds the deadline of {deadline} ns")]
    BeyondDeadline {
        /// Worst-case execution time, ns.
        wcet: Ns,
        /// Relative deadline, ns.
        deadline: Ns,
    },
}

impl Task {
    /// A task with an implicit deadline (D = T) and neither jitter nor blocking.
    ///
    /// ```
    /// let task = timecell_analysis::Task::new(1_000_000, 10_000_000);
    /// assert_eq!((task.deadline, task.jitter), (10_000_000, 0));
    /// ```
    pub const fn new(wcet: Ns, period: Ns) -> Task {
        Task {
            wcet,
            period,
            deadline: period,
            jitter: 0,
            blocking: 0,
        }
    }

    /// The same task with another relative deadline.
    ///
    /// ```
    /// // A constrained deadline: due 4 ns before the next arrival.
    /// assert!(timecell_analysis::Task::new(1, 10).due(6).is_constrained());
    /// ```
    #[must_use]
    pub const fn due(self, deadline: Ns) -> Task {
        Task { deadline, ..self }
    }

    /// The same task with release jitter.
    ///
    /// ```
    /// use timecell_analysis::{Task, fp::response_times};
    ///
    /// // The response time counts from the arrival, so the job's own jitter is in it.
    /// assert_eq!(response_times(&[Task::new(2, 10).jittered(3)])[0].bound(), Some(5));
    /// ```
    #[must_use]
    pub const fn jittered(self, jitter: Ns) -> Task {
        Task { jitter, ..self }
    }

    /// The same task with blocking.
    ///
    /// ```
    /// use timecell_analysis::{Task, fp::response_times};
    ///
    /// assert_eq!(response_times(&[Task::new(2, 10).blocked(4)])[0].bound(), Some(6));
    /// ```
    #[must_use]
    pub const fn blocked(self, blocking: Ns) -> Task {
        Task { blocking, ..self }
    }

    /// Checks the ranges. Analyses may assume them of tasks that passed; of others they promise only not to panic
    /// and not to say yes wrongly.
    ///
    /// # Errors
    /// Names the time that is out of range.
    ///
    /// ```
    /// use timecell_analysis::{Task, TaskError};
    ///
    /// assert_eq!(Task::new(11, 10).due(20).check(), Ok(())); // more than one period of work, due in the second
    /// assert_eq!(Task::new(11, 10).check(), Err(TaskError::BeyondDeadline { wcet: 11, deadline: 10 }));
    /// assert_eq!(Task::new(0, 10).check(), Err(TaskError::Zero("wcet")));
    /// ```
    pub fn check(&self) -> Result<(), TaskError> {
        for (name, time) in [
            ("wcet", self.wcet),
            ("period", self.period),
            ("deadline", self.deadline),
        ] {
            if time == 0 {
                return Err(TaskError::Zero(name));
            }
        }
        for (name, time) in [
            ("wcet", self.wcet),
            ("period", self.period),
            ("deadline", self.deadline),
            ("jitter", self.jitter),
            ("blocking", self.blocking),
        ] {
            if time > MAX_NS {
                return Err(TaskError::TooLong(name, time));
            }
        }
        if self.wcet > self.deadline {
            return Err(TaskError::BeyondDeadline {
                wcet: self.wcet,
                deadline: self.deadline,
            });
        }
        Ok(())
    }

    /// Whether the deadline is at most the period.
    ///
    /// ```
    /// assert!(timecell_analysis::Task::new(1, 10).is_constrained());
    /// assert!(!timecell_analysis::Task::new(1, 10).due(11).is_constrained());
    /// ```
    pub const fn is_constrained(&self) -> bool {
        self.deadline <= self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked() {
        assert_eq!(Task::new(1, 2).check(), Ok(()));
        assert_eq!(
            Task::new(3, 2).due(5).check(),
            Ok(()),
            "needs an arbitrary deadline"
        );
        assert_eq!(Task::new(0, 2).check(), Err(TaskError::Zero("wcet")));
        assert_eq!(
            Task::new(1, u64::MAX).check(),
            Err(TaskError::TooLong("period", u64::MAX))
        );
        let late = Task::new(5, 10).due(4);
        assert!(matches!(
            late.check(),
            Err(TaskError::BeyondDeadline { .. })
        ));
    }
}
