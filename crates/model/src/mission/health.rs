//! The health rules of a cell.

use crate::Duration;

/// A health rule of a cell: what is watched, and what is done when it is observed. In the spirit of the health monitors of
/// ARINC 653 and cFS: a table instead of code. Whatever is observed is recorded, with or without a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What is observed.
    pub when: Observed,
    /// How often it must be observed, within the window, before the rule acts; from 1.
    pub times: u32,
    /// How long an observation and an action count; `None` only if neither `times` nor an escalation needs it.
    pub window: Option<Duration>,
    /// Time after an action in which no other is taken; observations are still counted and recorded.
    pub cooldown: Duration,
    /// What is done.
    pub action: Action,
    /// Actions to take instead once the rule has acted often within the window; ascending by `after`.
    pub escalate: Vec<Escalation>,
}

/// A step of escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escalation {
    /// The step is taken once the rule has acted this many times within the window; from 1.
    pub after: u32,
    /// Action from then on.
    pub action: Action,
}

/// What is observed of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// Its program has ended on its own.
    Exit {
        /// Which ends count.
        status: ExitStatus,
    },
    /// Its application has not sent a heartbeat for this long.
    Heartbeat {
        /// The task that is to report; `None`: any of them.
        task: Option<String>,
        /// The longest silence.
        timeout: Duration,
    },
    /// Of the last n jobs, m were late: an (m, n) constraint was broken.
    DeadlineMisses {
        /// The task whose jobs are counted; `None`: each task separately.
        task: Option<String>,
        /// The number of late or missed jobs m, from 1, that breaks it.
        misses: u32,
        /// The number n of latest jobs; at least `misses`.
        jobs: u32,
    },
    /// The cell has used up its budget in this many consecutive periods.
    BudgetExhausted {
        /// The periods, from 1.
        periods: u32,
    },
    /// The cell has reached its memory limit.
    MemoryLimit,
    /// No thread of the cell has run for this long, or, if it reports its jobs, no job has ended.
    NoProgress {
        /// The longest standstill.
        timeout: Duration,
    },
    /// A job has run for longer than the wcet of its task.
    Overrun {
        /// The task whose jobs are watched; `None`: all of them.
        task: Option<String>,
    },
    /// The bound of a task was withdrawn: something that its proof assumes is otherwise.
    Unproved {
        /// The task; `None`: any.
        task: Option<String>,
    },
    /// The cell has used up its restarts and needs another one; it is stopped.
    RestartLimit,
}

choice! {
    /// Which ends of a program count.
    pub enum ExitStatus {
        /// A signal, or a status other than 0.
        Failure = "failure",
        /// Every end.
        Any = "any",
    }
}

impl Observed {
    /// The names of everything that can be observed.
    pub const NAMES: [&'static str; 9] = [
        "exit",
        "heartbeat",
        "deadline-misses",
        "budget-exhausted",
        "memory-limit",
        "no-progress",
        "overrun",
        "unproved",
        "restart-limit",
    ];

    /// The name used in files, tables and reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Observed::Exit { .. } => "exit",
            Observed::Heartbeat { .. } => "heartbeat",
            Observed::DeadlineMisses { .. } => "deadline-misses",
            Observed::BudgetExhausted { .. } => "budget-exhausted",
            Observed::MemoryLimit => "memory-limit",
            Observed::NoProgress { .. } => "no-progress",
            Observed::Overrun { .. } => "overrun",
            Observed::Unproved { .. } => "unproved",
            Observed::RestartLimit => "restart-limit",
        }
    }

    /// The task that it watches, if it watches a particular one.
    pub fn task(&self) -> Option<&str> {
        match self {
            Observed::Heartbeat { task, .. }
            | Observed::DeadlineMisses { task, .. }
            | Observed::Overrun { task }
            | Observed::Unproved { task } => task.as_deref(),
            _ => None,
        }
    }
}

choice! {
    /// What a rule does.
    pub enum Action {
        /// Nothing beyond the record that every incident leaves.
        Log = "log",
        /// The mission's `notify` program is started with the incident as JSON on its standard input, and subscribers are told.
        Notify = "notify",
        /// The cell is restarted at once; counts to its restart limit.
        Restart = "restart",
        /// The cell is restarted after the wait of [`super::Restart::wait`]; counts to its restart limit.
        RestartBackoff = "restart-backoff",
        /// The cell is stopped until it is started by hand.
        Stop = "stop",
        /// The next running cell in the order of shedding is shed until it is started by hand.
        Shed = "shed",
        /// The mission goes to high mode.
        SwitchMode = "switch-mode",
    }
}

impl Rule {
    /// The action when the rule has already acted `acted` times within its window.
    pub fn action_after(&self, acted: u32) -> Action {
        (self.escalate.iter().rev())
            .find(|step| acted >= step.after)
            .map_or(self.action, |step| step.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_step_that_was_reached_is_taken() {
        let step = |after, action| Escalation { after, action };
        let rule = Rule {
            when: Observed::RestartLimit,
            times: 1,
            window: Some(Duration::from_ns(1)),
            cooldown: Duration::from_ns(0),
            action: Action::Log,
            escalate: vec![step(2, Action::Notify), step(5, Action::Stop)],
        };
        let actions: Vec<&str> = (0..7).map(|n| rule.action_after(n).name()).collect();
        assert_eq!(
            actions,
            ["log", "log", "notify", "notify", "notify", "stop", "stop"]
        );
    }
}
