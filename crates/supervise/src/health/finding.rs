//! Observations, and the decisions about them.

use super::event::TaskTimes;
use crate::incident::{Evidence, Incident, SCHEMA, Seen, Taken};
use crate::{End, Stamp};

use model::mission::Action;
use text::units::{exact, time};

/// An observation, and the decision about it. Every one is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// When; CLOCK_MONOTONIC, ns.
    pub at_ns: i64,
    /// The observation.
    pub sight: Sight,
    /// The rule that observed it, by its index; `None`: the cell's restart policy, or nothing but the event.
    pub rule: Option<usize>,
    /// The decision.
    pub decision: Decision,
}

/// An observation of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Its program has ended without having been told to.
    Ended(End),
    /// No sign that it is well.
    Silent {
        /// The task that was expected to say so; `None`: any.
        task: Option<usize>,
        /// Since its last sign, in ns.
        silent_ns: i64,
        /// How long it may be silent.
        timeout_ns: i64,
    },
    /// Some of the last jobs of a task were late.
    Late {
        /// The task.
        task: usize,
        /// m.
        misses: u32,
        /// n.
        jobs: u32,
    },
    /// Its budget was used up in several periods in a row.
    Exhausted {
        /// The periods.
        periods: u32,
    },
    /// It has come up against its memory limit.
    MemoryLimit,
    /// Nothing has gone on.
    Still {
        /// For how long, ns.
        still_ns: i64,
        /// How long that may be.
        timeout_ns: i64,
    },
    /// A job ran for longer than the wcet of its task.
    Overran {
        /// The task; `None`: one of several.
        task: Option<usize>,
        /// For how long, ns, if known.
        ran_ns: Option<i64>,
    },
    /// The bound of a task counts no more.
    Unproved {
        /// The task.
        task: usize,
    },
    /// It would have to be restarted, and was restarted too often.
    RestartLimit {
        /// Observed this many times.
        restarts: u32,
        /// Within how long, ns.
        window_ns: i64,
    },
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This.
    Act {
        /// The action.
        action: Action,
        /// For restarts: how long the cell stays stopped before it is started again, in ns.
        wait_ns: i64,
        /// How often the rule had acted within its window before.
        before: u32,
    },
    /// Nothing, beyond the record.
    Nothing(Why),
}

/// Why no action is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The rule has not observed it often enough.
    Below {
        /// Observed this many times.
        seen: u32,
        /// Needed this many times.
        times: u32,
    },
    /// The rule has acted recently.
    Cooldown {
        /// How long it still does nothing, ns.
        left_ns: i64,
    },
    /// Something stronger is done: by this rule, or the restart policy (`None`).
    Stronger {
        /// The rule.
        rule: Option<usize>,
    },
    /// The cell has been restarted too often; it is stopped instead.
    RestartLimit,
    /// The restart policy leaves the cell as it is.
    Policy,
    /// No rule looks at it.
    NoRule,
}

/// The facts of an incident beyond a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context<'a> {
    /// Number of the incident.
    pub number: u64,
    /// Name of the mission.
    pub mission: &'a str,
    /// Name of the cell.
    pub cell: &'a str,
    /// How often it has been started.
    pub generation: u64,
    /// The wall clock at the finding, in ns since 1970.
    pub wall_unix_ns: i64,
    /// The tasks, as in [`super::Config::tasks`].
    pub tasks: &'a [TaskTimes],
}

impl Sight {
    /// The name used in mission files and incidents.
    pub const fn name(&self) -> &'static str {
        match self {
            Sight::Ended(_) => "exit",
            Sight::Silent { .. } => "heartbeat",
            Sight::Late { .. } => "deadline-misses",
            Sight::Exhausted { .. } => "budget-exhausted",
            Sight::MemoryLimit => "memory-limit",
            Sight::Still { .. } => "no-progress",
            Sight::Overran { .. } => "overrun",
            Sight::Unproved { .. } => "unproved",
            Sight::RestartLimit { .. } => "restart-limit",
        }
    }

    /// The task that it is about.
    pub const fn task(&self) -> Option<usize> {
        match self {
            Sight::Silent { task, .. } | Sight::Overran { task, .. } => *task,
            Sight::Late { task, .. } | Sight::Unproved { task } => Some(*task),
            _ => None,
        }
    }

    fn detail(&self) -> String {
        match *self {
            Sight::Ended(end) => end.to_string(),
            Sight::Silent {
                silent_ns,
                timeout_ns,
                ..
            } => format!(
                "no report for {}, {} is allowed",
                time(silent_ns as f64),
                exact(timeout_ns.unsigned_abs())
            ),
            Sight::Late { misses, jobs, .. } => match (misses, jobs) {
                (1, _) => "a job was late".to_owned(),
                _ => format!("{misses} of at most {jobs} consecutive jobs were late"),
            },
            Sight::Exhausted { periods: 1 } => "the budget was used up".to_owned(),
            Sight::Exhausted { periods } => {
                format!("the budget was used up in {periods} periods in a row")
            }
            Sight::MemoryLimit => "the memory limit was reached".to_owned(),
            Sight::Still {
                still_ns,
                timeout_ns,
            } => format!(
                "no progress for {}, {} is allowed",
                time(still_ns as f64),
                exact(timeout_ns.unsigned_abs())
            ),
            Sight::Overran { ran_ns, .. } => ran_ns.map_or_else(
                || "more cpu time was used than jobs within their wcet can use".to_owned(),
                |ns| format!("a job ran for {}, longer than its wcet", time(ns as f64)),
            ),
            Sight::Unproved { .. } => "its bound was withdrawn".to_owned(),
            Sight::RestartLimit {
                restarts,
                window_ns,
            } => format!(
                "{restarts} restarts within {}",
                exact(window_ns.unsigned_abs())
            ),
        }
    }
}

impl Finding {
    /// The incident that records it.
    pub fn incident(&self, context: &Context, evidence: Evidence) -> Incident {
        let at = Stamp {
            monotonic_ns: self.at_ns,
            wall_unix_ns: context.wall_unix_ns,
        };
        let task = self.sight.task();
        let name = |at: usize| context.tasks.get(at).map(|task| task.name.clone());
        let mut evidence = evidence.bounded();
        if let Sight::Ended(end) = self.sight {
            evidence.end = Some(end);
        }
        Incident {
            schema: SCHEMA,
            number: context.number,
            mission: context.mission.to_owned(),
            cell: Some(context.cell.to_owned()),
            generation: Some(context.generation),
            at,
            at_utc: at.utc(),
            observed: Seen {
                what: self.sight.name().to_owned(),
                task: task.map(|task| name(task).unwrap_or_else(|| format!("number {task}"))),
                detail: self.sight.detail(),
            },
            evidence,
            action: self.taken(),
        }
    }

    fn taken(&self) -> Taken {
        let by = by(self.rule);
        let (action, wait_ns, reason) = match self.decision {
            Decision::Act {
                action,
                wait_ns,
                before,
            } => {
                let again = match before {
                    0 => String::new(),
                    1 => ", which has acted once before".to_owned(),
                    _ => format!(", which has acted {before} times before"),
                };
                let wait = match wait_ns {
                    0 => String::new(),
                    _ => format!(", after {}", exact(wait_ns.unsigned_abs())),
                };
                let action = action.name().to_owned();
                (Some(action), wait_ns, format!("{by}{again}{wait}"))
            }
            Decision::Nothing(Why::NoRule) => (None, 0, "no rule covers it".to_owned()),
            Decision::Nothing(why) => (None, 0, format!("{by}{}", because(why))),
        };
        Taken {
            action,
            rule: self.rule,
            wait_ns,
            reason,
        }
    }
}

fn by(rule: Option<usize>) -> String {
    rule.map_or_else(
        || "restart policy".to_owned(),
        |rule| format!("rule {}", rule + 1),
    )
}

fn because(why: Why) -> String {
    match why {
        Why::Below { seen, times } => format!(": observed {seen} of {times} times"),
        Why::Cooldown { left_ns } => format!(": in cooldown for another {}", time(left_ns as f64)),
        Why::Stronger { rule } => format!(": {} takes precedence", by(rule)),
        Why::RestartLimit => ": restarted too often".to_owned(),
        Why::Policy => ": does not ask for a restart".to_owned(),
        Why::NoRule => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_becomes_an_incident_that_people_can_read() {
        let tasks = [TaskTimes {
            name: "loop".to_owned(),
            deadline_ns: None,
            wcet_ns: None,
        }];
        let context = Context {
            number: 4,
            mission: "rover",
            cell: "control",
            generation: 2,
            wall_unix_ns: 1_795_295_103_123_000_000,
            tasks: &tasks,
        };
        let line = |sight, rule, decision| {
            let at_ns = 7;
            let finding = Finding {
                at_ns,
                sight,
                rule,
                decision,
            };
            let incident = finding.incident(&context, Evidence::default());
            assert_eq!((incident.at.monotonic_ns, incident.number), (7, 4));
            let line = incident.to_string();
            line.strip_prefix("2026-11-21T21:05:03.123Z control: ")
                .unwrap()
                .to_owned()
        };
        let late = Sight::Late {
            task: 0,
            misses: 3,
            jobs: 10,
        };
        let act = |action, wait_ns, before| Decision::Act {
            action,
            wait_ns,
            before,
        };
        assert_eq!(
            line(late, Some(1), act(Action::RestartBackoff, 100_000_000, 2)),
            "deadline-misses of task loop: 3 of at most 10 consecutive jobs were late: restart-backoff \
             (rule 2, which has acted 2 times before, after 100 ms)"
        );
        assert_eq!(
            line(
                late,
                Some(0),
                Decision::Nothing(Why::Below { seen: 1, times: 2 })
            ),
            "deadline-misses of task loop: 3 of at most 10 consecutive jobs were late: no action \
             (rule 1: observed 1 of 2 times)"
        );
        let silent = Sight::Silent {
            task: None,
            silent_ns: 512_345_678,
            timeout_ns: 500_000_000,
        };
        assert_eq!(
            line(silent, Some(0), act(Action::Restart, 0, 0)),
            "heartbeat: no report for 512.3 ms, 500 ms is allowed: restart (rule 1)"
        );
        let ended = Sight::Ended(End::Exited { code: 0 });
        assert_eq!(
            line(ended, None, Decision::Nothing(Why::Policy)),
            "exit: exited with status 0: no action (restart policy: does not ask for a restart)"
        );
    }
}
