//! The health rules of a cell.

use super::keys::{COUNT, SOME_TIME};
use crate::Duration;
use crate::file::{Field, Kind, Node, Writer, table, tables};

/// The shortest time that a supervisor can tell from its own wake-up latency.
const SILENCE: Kind = Kind::Time {
    least_ns: 1_000_000,
};

table! {
    /// A health rule: the observation of the cell that is watched for, and the action on it.
    ///
    /// In the spirit of the health monitors of ARINC 653 and cFS: a table instead of code. Every observation is recorded,
    /// with or without a rule.
    pub struct Rule: "rule", "[[cell.health]]" {
        /// The observation.
        when: Observed, by observed;
        /// the observation
        "when" = Kind::Choice(&Observed::NAMES), Required "\"deadline-misses\"";
        /// the action
        action as "do": Action, Required "\"restart\"";
        /// the task that is watched; for `heartbeat`, `deadline-misses`, `overrun` and `unproved`
        "task" = Kind::Label, Without "any; misses are counted for each task separately";
        /// the longest silence or standstill; for `heartbeat` and `no-progress`
        "timeout" = SILENCE, Without "required";
        /// late or skipped jobs, at most `jobs`; for `deadline-misses`
        "misses" = COUNT, Without "required";
        /// number of latest jobs among which `misses` counts; for `deadline-misses`
        "jobs" = COUNT, Without "required";
        /// consecutive periods in which the budget was used up; for `budget-exhausted`
        "periods" = COUNT, Without "required";
        /// whether a status of 0 counts too; for `exit`
        "status" = ExitStatus::KIND, Without "`failure`";
        /// how often it must be observed within `window` before the rule acts
        ///
        /// From 1.
        times: u32 = COUNT, Default "1";
        /// how long an observation and an action count
        window: Option<Duration> = SOME_TIME, Without "required with `times` above 1 and with `escalate`";
        /// time after an action in which no other is taken; observations are still counted and recorded
        cooldown: Duration, Default "\"0ms\"";
        /// actions to take instead once the rule has acted often; ascending by `after`
        escalate: Vec<Escalation> = tables::<Escalation>(16), Without "never";
    }
}

table! {
    /// A step of escalation.
    pub struct Escalation(Copy): "step", "an item of `escalate`" {
        /// how often the rule must have acted within `window`
        ///
        /// From 1.
        after: u32 = COUNT, Required "3";
        /// action from then on
        action as "do": Action, Required "\"stop\"";
    }
}

mod observed {
    use super::{Duration, ExitStatus, Field, Node, Observed, Rule, Writer};

    pub(super) fn read(table: &Node<'_>) -> Observed {
        let task = table.some_text("task");
        let count = |key| u32::read(table, key);
        let timeout = Duration::read(table, "timeout");
        match table.text("when").as_str() {
            "heartbeat" => Observed::Heartbeat { task, timeout },
            "deadline-misses" => Observed::DeadlineMisses {
                task,
                misses: count("misses"),
                jobs: count("jobs"),
            },
            "budget-exhausted" => Observed::BudgetExhausted {
                periods: count("periods"),
            },
            "memory-limit" => Observed::MemoryLimit,
            "no-progress" => Observed::NoProgress { timeout },
            "overrun" => Observed::Overrun { task },
            "unproved" => Observed::Unproved { task },
            "restart-limit" => Observed::RestartLimit,
            _ => Observed::Exit {
                status: ExitStatus::read(table, "status"),
            },
        }
    }

    pub(super) fn write(rule: &Rule, out: &mut Writer) {
        rule.when.name().to_owned().write("when", out);
        rule.when.task().map(str::to_owned).write("task", out);
        match &rule.when {
            Observed::Exit { status } => status.write("status", out),
            Observed::Heartbeat { timeout, .. } | Observed::NoProgress { timeout } => {
                timeout.write("timeout", out);
            }
            Observed::DeadlineMisses { misses, jobs, .. } => {
                misses.write("misses", out);
                jobs.write("jobs", out);
            }
            Observed::BudgetExhausted { periods } => periods.write("periods", out),
            Observed::MemoryLimit
            | Observed::Overrun { .. }
            | Observed::Unproved { .. }
            | Observed::RestartLimit => {}
        }
    }
}

/// An observation of a cell.
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
        /// The number of late or skipped jobs m, from 1, that breaks it.
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
    /// The action of a rule.
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
